"""The tasks against independent oracles: formulas, published counts, plain loops."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from gradlab import tasks
from gradlab.tasks import Task
from gradlab.tasks.text import characters

CPU_TASKS = [tasks.get(name, device="cpu") for name in tasks.names()]
EACH = pytest.mark.parametrize("task", CPU_TASKS, ids=lambda task: task.name)


def train(task: Task, epochs: int, accumulate: int = 1, divide: bool = True) -> tuple[nn.Module, list[float]]:
    """Train with plain SGD, written out; return the model and the loss of every micro-batch."""
    model = task.build()
    optimizer = torch.optim.SGD(model.parameters(), lr=task.lr)
    losses = []
    for _ in range(epochs):
        for i, (x, y) in enumerate(task.batches, start=1):
            x, y = x.to(task.device), y.to(task.device)
            loss = task.loss_fn(model(x), y)
            (loss / accumulate if divide else loss).backward()
            losses.append(loss.item())
            if i % accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
    return model, losses


def state(model: nn.Module) -> list[torch.Tensor]:
    return [p.detach().clone() for p in model.parameters()]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


# All tasks


@EACH
def test_weights_and_data_are_the_same_every_time(task: Task) -> None:
    before = torch.get_rng_state()
    torch.manual_seed(7)
    plain = state(task.builder(7))
    torch.set_rng_state(before)
    again = tasks.get(task.name, device="cpu")
    built, other = state(again.build(7)), state(again.build(4))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(plain, built, strict=True))
    same = all(torch.equal(a, b) for a, b in zip(plain, other, strict=True))
    assert same == (task.name == "bowl")  # the bowl starts at its ``start``
    for (x, y), (x2, y2) in zip(task.batches, again.batches, strict=True):
        assert torch.equal(x, x2)
        assert torch.equal(y, y2)


def assert_learns(task: Task) -> None:
    n = len(task.batches)
    _, losses = train(task, epochs=max(4, 120 // n))
    assert mean(losses[-n:]) < 0.95 * mean(losses[:n])


@pytest.mark.slow
@EACH
def test_loss_falls_at_the_tasks_own_rate(task: Task) -> None:
    assert_learns(task)


@EACH
def test_batches_stay_on_the_cpu_with_memory_of_their_own(task: Task) -> None:
    parts = [part for batch in task.batches for part in batch]
    assert {part.device.type for part in parts} == {"cpu"}
    assert all(part.untyped_storage().nbytes() == part.numel() * part.element_size() for part in parts)
    assert len({part.untyped_storage().data_ptr() for part in parts}) == len(parts)


@EACH
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_trains_under_autocast(task: Task, dtype: torch.dtype) -> None:
    model = task.build()
    x, y = task.batches[0]
    with torch.autocast("cpu", dtype=dtype):
        loss = task.loss_fn(model(x), y)
    loss.backward()
    plain = task.loss_fn(task.build()(x), y)
    assert loss.item() == pytest.approx(plain.item(), rel=0.05)
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@EACH
def test_runs_on_fake_tensors(task: Task) -> None:
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = task.build()
        x, y = (torch.empty(part.shape, dtype=part.dtype) for part in task.batches[0])
        task.loss_fn(model(x), y).backward()
    for p, real in zip(model.parameters(), task.build().parameters(), strict=True):
        assert p.grad is not None
        assert p.grad.shape == real.shape


@EACH
def test_has_words_and_a_known_picture(task: Task) -> None:
    assert task.title
    assert "\n" not in task.title
    assert task.picture is None or isinstance(task.picture, (tasks.TwoWeights, tasks.HeldOutImages))
    assert repr(task).startswith("Task(name=")
    assert len(repr(task)) < 300  # the data is not in it


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA GPU here")
@pytest.mark.parametrize("name", tasks.names())
def test_on_a_gpu(name: str) -> None:
    task = tasks.get(name)
    assert task.device == "cuda"
    before = torch.get_rng_state(), torch.cuda.get_rng_state()
    model = task.build()
    assert torch.equal(before[0], torch.get_rng_state())
    assert torch.equal(before[1], torch.cuda.get_rng_state())
    assert {p.device.type for p in model.parameters()} == {"cuda"}
    assert_learns(task)


# bowl


@pytest.mark.parametrize("curvatures", [(1.0, 0.1), (4.0, 0.25), (3.0, 7.0)])
def test_bowl_is_the_quadratic_it_says(curvatures: tuple[float, float]) -> None:
    task = tasks.bowl(curvatures, start=(2.0, -1.0), minimum=(0.5, 0.25), device="cpu")
    x, y = task.batches[0]

    def loss(w: torch.Tensor) -> torch.Tensor:
        return task.loss_fn(x @ w.unsqueeze(1), y)

    hessian = torch.autograd.functional.hessian(loss, torch.tensor([0.3, -0.7]))
    torch.testing.assert_close(hessian, torch.diag(torch.tensor(curvatures)))
    by_hand = 0.5 * (curvatures[0] * 1.5**2 + curvatures[1] * 1.25**2)
    assert task.loss_fn(task.build()(x), y).item() == pytest.approx(by_hand, rel=1e-6)
    assert loss(torch.tensor([0.5, 0.25])).item() == pytest.approx(0, abs=1e-12)


# line


def test_line_finds_the_prices() -> None:
    task = tasks.line(device="cpu")
    assert [tuple(x.shape) for x, _ in task.batches] == [(1, 2)] * 8
    model, _ = train(task, epochs=20)
    torch.testing.assert_close(next(iter(state(model))), torch.tensor([[1.0, 2.0]]), rtol=0, atol=0.01)


def test_line_learns_in_windows_only_if_the_loss_is_divided() -> None:
    task = tasks.line(device="cpu")
    _, divided = train(task, epochs=4, accumulate=4)
    _, summed = train(task, epochs=4, accumulate=4, divide=False)
    windows = [sum(divided[i : i + 4]) for i in range(0, 32, 4)]
    assert windows == sorted(windows, reverse=True)
    assert windows[-1] < windows[0] / 50
    windows = [sum(summed[i : i + 4]) for i in range(0, 32, 4)]
    assert windows == sorted(windows)
    assert windows[-1] > windows[0] * 10


# digits


def test_digits_are_all_there() -> None:
    task = tasks.digits(device="cpu")
    assert task.held_out is not None
    test_x, test_y = task.held_out
    x, y = torch.cat([x for x, _ in task.batches] + [test_x]), torch.cat([y for _, y in task.batches] + [test_y])
    assert x.shape == (1797, 64)
    # The class counts of the test part as the UCI documentation gives them.
    assert torch.bincount(y).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert (x.min().item(), x.max().item()) == (0, 1)
    assert torch.equal(x * 16, (x * 16).round())
    assert len(x.unique(dim=0)) == 1797  # no image twice: none of the held-out ones is among the others


# text


def test_text_padding_does_not_count() -> None:
    task = tasks.text(device="cpu")
    model = task.build().eval()
    x, y = task.batches[2]
    total, count = 0.0, 0
    for row, target in zip(x, y, strict=True):  # the oracle: every sequence alone, without padding, summed
        length = int((target != -100).sum())
        scores = model(row[:length].unsqueeze(0))[0]
        total += nn.functional.cross_entropy(scores, target[:length], reduction="sum").item()
        count += length
    assert task.loss_fn(model(x), y).item() == pytest.approx(total / count, rel=1e-5)


def test_text_reads_as_the_sonnets_and_lengths_differ() -> None:
    task = tasks.text(device="cpu")
    letters = characters()
    verses = 0
    for x, y in task.batches:
        for row, target in zip(x, y, strict=True):
            length = int((target != -100).sum())
            assert torch.equal(row[1:length], target[: length - 1])  # y is x, one place ahead
            assert (target[length:] == -100).all()
            verses += "".join(letters[i] for i in target[:length]).count("\n")
    assert verses == 140
    tokens = [int((y != -100).sum()) for _, y in task.batches]
    assert max(tokens) > 1.5 * min(tokens)


def test_text_model_does_not_look_ahead() -> None:
    task = tasks.text(device="cpu")
    model = task.build()
    x = task.batches[0][0].clone()
    before = model(x)
    x[:, 20:] = 1
    after = model(x)
    torch.testing.assert_close(before[:, :20], after[:, :20])
    assert not torch.allclose(before[:, 20:], after[:, 20:])
