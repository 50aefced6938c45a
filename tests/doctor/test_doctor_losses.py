"""Reading a loss changes nothing, and the doctor says what it could not read."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from gradlab.doctor import LiveDoctor, Report, watch

X = torch.linspace(-1, 1, 96).reshape(16, 6)
Y = torch.arange(16) % 3


def train(loss_of, updates: int = 4, *, rate: float = 0.1) -> torch.Tensor:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(updates):
        optimizer.zero_grad()
        loss_of(model(X)).backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.fixture
def as_if_nothing_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another test of this process may have compiled something: calls would not be traced."""
    monkeypatch.setattr("gradlab._torch.compiled_anything", lambda: False)


def watched(loss_of, **options) -> tuple[Report, torch.Tensor]:
    with watch() as report:
        weights = train(loss_of, **options)
    assert "failed" not in report.watched
    return report, weights


def twice(logits: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.softmax(1), Y)


@pytest.mark.usefixtures("as_if_nothing_was_compiled")
def test_calls_are_followed_in_a_few_updates_only() -> None:
    modes: list[bool] = []

    def loss_of(logits: torch.Tensor) -> torch.Tensor:
        modes.append(torch._C._len_torch_function_stack() > 0)
        return twice(logits)

    report, weights = watched(loss_of, updates=8)
    assert report.codes == ["softmax-before-cross-entropy"]
    assert modes == [True, True, True, False, True, False, False, False]
    assert torch.equal(weights, train(twice, updates=8))


@pytest.mark.parametrize("updates", [1, 2, 3, 5])
def test_a_loop_that_ends_early_leaves_no_mode(updates: int) -> None:
    report, _ = watched(twice, updates=updates)
    assert report.codes == ["softmax-before-cross-entropy"]
    assert not torch._C._len_torch_function_stack()


def test_a_mode_of_the_learners_own_keeps_its_place() -> None:
    with torch.device("cpu"):
        outer = watch()
        outer.__enter__()
        train(twice, updates=2)
    with torch.device("cpu"):
        train(twice, updates=1)
        outer.__exit__(None, None, None)
        assert torch._C._len_torch_function_stack() == 1
    assert not torch._C._len_torch_function_stack()


def test_the_learners_own_anomaly_mode_stays() -> None:
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        watched(twice)
        assert torch.is_anomaly_enabled()


@pytest.mark.parametrize("mine", [F.mse_loss, F.l1_loss, F.huber_loss, lambda a, b: torch.square(a - b).mean()])
@pytest.mark.parametrize(
    ("prediction", "target", "pairs"),
    [
        ((16, 1), (16,), (16, 16)),
        ((16,), (16, 1), (16, 16)),
        ((1, 16), (1, 16, 1), (1, 16, 16)),
        ((2, 1, 8), (2, 8), (2, 2, 8)),
        ((4, 4), (4, 4, 1), (4, 4, 4)),
        ((2, 8, 1, 1), (2, 8), (2, 8, 2, 8)),
        ((16, 1), (16, 16), (16, 16)),  # a target that was broadcast before
        ((16, 1), (1, 16), None),
        ((16, 1), (16, 3), None),
        ((4, 4), (4,), None),
        ((2, 8), (2, 1), None),
        ((2, 8), (1, 2, 8), None),
        ((16,), (), None),
    ],
)
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_shapes_are_told_as_they_were_before_any_broadcast(mine, prediction, target, pairs) -> None:
    y = torch.ones(target)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch() as report:
        for _ in range(3):
            optimizer.zero_grad()
            loss = mine(model(X)[: math.prod(prediction), 0].view(prediction), y)
            loss.backward()
            optimizer.step()
    assert report.codes == (["loss-broadcasts"] if pairs else [])
    for finding in report:
        assert f"shape {prediction} and a target of shape {target} were broadcast to {pairs}" in finding.evidence


def test_a_nan_behind_a_checkpoint_is_named_and_not_run_again() -> None:
    runs: list[int] = []

    def inside(logits: torch.Tensor) -> torch.Tensor:
        runs.append(1)
        return logits.exp()

    def loss_of(logits: torch.Tensor) -> torch.Tensor:
        probabilities = checkpoint(inside, logits, use_reentrant=False)
        return torch.log(probabilities * 0).mean()

    report, _ = watched(loss_of)
    assert report.codes == ["nan-loss"]
    assert "torch.log of 0" in report.findings[0].message
    assert len(runs) == 2 * 4  # forward and backward of each update, as without the doctor


def test_a_rate_too_large_is_no_impossible_operation() -> None:
    report, _ = watched(lambda logits: logits.pow(2).mean() * 1e3, updates=30, rate=1.0)
    assert report.codes == ["nan-loss"]
    assert "learning rate is too large" in report.findings[0].message


@pytest.mark.slow
def test_the_inside_of_a_compiled_model_is_named_as_unseen() -> None:
    torch.manual_seed(0)
    for backend, blind in (("eager", False), ("aot_eager", True)):
        torch._dynamo.reset()
        model = torch.compile(nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3)), backend=backend)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with watch() as report:
            for _ in range(3):
                for _ in range(4):
                    optimizer.zero_grad()
                    F.cross_entropy(model(X), Y).backward()
                    optimizer.step()
                with torch.no_grad():
                    for part in X.split(2):
                        model(part)
        assert report.codes == ["validation-in-train-mode"]
        assert ("compiled model" in report.checked) is blind


@pytest.mark.usefixtures("as_if_nothing_was_compiled")
def test_a_live_doctor_follows_the_first_slice_and_what_waits() -> None:
    model, doctor = nn.Linear(6, 3), LiveDoctor()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    followed = []
    for _ in range(8):
        with doctor:
            followed.append(torch._C._len_torch_function_stack())
            optimizer.zero_grad()
            F.cross_entropy(model(X), Y).backward()
            optimizer.step()
        assert not torch._C._len_torch_function_stack()
    assert followed == [1, 1, 1, 0, 1, 0, 0, 0]


@pytest.mark.usefixtures("as_if_nothing_was_compiled")
def test_a_literal_is_no_number_of_the_model() -> None:
    def loss_of(logits: torch.Tensor) -> torch.Tensor:
        assert (logits * 0 + 0.5).mean().item() == 0.5  # an accuracy, say
        return F.cross_entropy(logits, Y) + 0.5

    assert watched(loss_of, updates=6)[0].codes == []


@pytest.mark.usefixtures("as_if_nothing_was_compiled")
def test_a_number_of_the_model_that_is_added_is_told() -> None:
    def loss_of(logits: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(logits, Y) + logits.square().mean().item()

    assert watched(loss_of, updates=6)[0].codes == ["loss-term-detached"]


@pytest.mark.parametrize(
    ("sizes", "message"), [([1e6, 1, 1, 1], "the first operation"), ([1, 1e2, 1e4, 1e6], "grew from batch to batch")]
)
def test_a_loss_that_was_large_only_at_first_did_not_grow(sizes: list[float], message: str) -> None:
    weight = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=1e-12)
    with watch() as report:
        for size in (*sizes, 0):
            optimizer.zero_grad()
            loss = (weight * size).sum() if size else (weight * 0).log().sum()
            loss.backward()
            optimizer.step()
    assert [message in bug.message for bug in report.findings] == [True]
