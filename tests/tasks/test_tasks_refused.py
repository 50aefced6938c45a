"""Arguments that the tasks refuse, and the messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from process_state import nothing_left
from torch import nn

from gradlab import tasks
from gradlab.tasks import HeldOutImages, Task, TwoWeights

NAN, INF = float("nan"), float("inf")
BAD: list[tuple[str, dict[str, Any], str]] = [
    *(("bowl", {"curvatures": v}, "curvatures") for v in (1.0, "ab", (1.0,), (1.0, 0.0), (-1.0, 1.0), (NAN, 1.0))),
    *(("bowl", {"curvatures": v}, "curvatures") for v in ((1.0, INF), (True, 1.0), ("1", 1.0), None, (1, 2, 3))),
    *(("bowl", {"start": v}, "start") for v in (0, (NAN, 0), (0, -INF), (0, None), (1e300, 0), (False, 0))),
    *(("bowl", {"minimum": v}, "minimum") for v in ("00", (0, INF), [], (0, 1j))),
    *((name, {"batch": v}, "batch") for name in ("digits", "text") for v in (0, 1e1, True, 10**6)),
    *((name, {"device": v}, "device") for name in tasks.names() for v in ("gpu", "", 0, None, "cuda:99", "CPU")),
]


@pytest.mark.parametrize(("name", "options", "field"), BAD)
def test_bad_options_are_named(name: str, options: dict[str, Any], field: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        tasks.get(name, **options)
    message = str(refused.value)
    assert message.startswith(f"{name}: {field}")
    assert " must be " in message
    value = options[field]
    worst = value if not isinstance(value, tuple | list) else None
    assert ", got " in message
    assert worst is None or repr(worst) in message


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("name", tasks.names())
def test_cuda_without_a_gpu_is_said(name: str) -> None:
    with pytest.raises(ValueError, match=r"device must be .* got 'cuda': PyTorch sees no CUDA GPU"):
        tasks.get(name, device="cuda")
    assert tasks.get(name, device="auto").device == "cpu"


def test_get_names_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"name must be one of 'bowl', .* got 'mnist'"):
        tasks.get("mnist")
    with pytest.raises(TypeError, match="name must be one of 'bowl'"):
        tasks.get(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="curvatures"):
        tasks.get("line", curvatures=(1, 2))


X, Y = torch.zeros(2, 2), torch.zeros(2, 1)
GOOD: dict[str, Any] = {
    "name": "mine",
    "builder": lambda seed: nn.Linear(2, 1),
    "batches": [(X, Y)],
    "loss_fn": nn.functional.mse_loss,
}


def test_a_task_of_ones_own() -> None:
    task = Task(**GOOD)
    assert (task.device, task.picture, task.title, task.held_out) == ("cpu", None, "", None)
    first, second = (next(task.build(seed).parameters()) for seed in (0, 1))
    assert not torch.equal(first, second)
    GOOD["batches"].append((X, Y))
    assert len(task.batches) == 1  # a later change to the caller's list is not a change to the task
    GOOD["batches"].pop()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("name", v) for v in (None, 3, "", "  ")),
        *(("builder", v) for v in (None, "Linear", nn.Parameter(X))),
        *(("batches", v) for v in (None, [], (), 4, "xy", {1: 2}, iter([(X, Y)]), X, (X, Y))),
        *(("batches", v) for v in ([{}], [()], [{"x": 1}], [{1: X}], [{"x": X[:0]}], [(X, Y, 1)], [X[:0]])),
        *(("batches", v) for v in ([(X, Y), X], [X, {"x": X}], [(X, Y), (X, Y, X)])),
        *(("batches", v) for v in ([(X, None)], [([1.0], Y)], [(X, Y), "xy"], [(torch.zeros(0, 2), Y)])),
        *(("loss_fn", v) for v in (None, "mse", 3)),
        *(("device", v) for v in (None, "auto", "tpu", "", torch.device("cpu"), 0)),
        *(("title", v) for v in (None, 3)),
        *(("picture", v) for v in ("bars", "samples", "", 3, ["plane"])),
        *(("lr", v) for v in (0, -0.1, NAN, INF, True, "0.1", None)),
    ],
)
def test_bad_fields_of_a_task_are_named(field: str, value: object) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        Task(**{**GOOD, field: value})
    assert re.search(rf"(?s)^Task: {field} must (be|contain) .*[,;] got ", str(refused.value))


@pytest.mark.parametrize("seed", [-1, 1.0, True, None, "0", 2**32])
def test_bad_seed_of_build(seed: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^Task.build: seed must be a whole number"):
        Task(**GOOD).build(seed)


def test_a_builder_must_make_a_model() -> None:
    with pytest.raises(TypeError, match=r"Task: builder must return a torch.nn.Module, got 3"):
        Task(**{**GOOD, "builder": lambda seed: 3}).build()


def test_random_numbers_are_restored_when_the_builder_fails() -> None:
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError):
        Task(**{**GOOD, "builder": lambda seed: torch.rand(1) / 0 if seed < 0 else 1 / 0}).build()
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TwoWeights("here"), "minimum must be two numbers"),
        (lambda: TwoWeights((0, NAN)), r"minimum\[1\] must be a number"),
        (lambda: HeldOutImages(None, Y, (2, 2)), "x must be a tensor with elements, got None"),
        (lambda: HeldOutImages(X, torch.zeros(2), (8, 8)), "n images of 8 x 8 and n labels, got"),
        (lambda: HeldOutImages(X, torch.zeros(2), 8), r"shape must be a tuple \(height, width\), got 8"),
        (lambda: HeldOutImages(torch.zeros(0, 4), Y, (2, 2)), "x must be a tensor with elements"),
    ],
)
def test_bad_pictures_are_named(make: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


class OtherLoss(nn.Module):
    """A loss as a class, of which an instance is wanted."""


class LearnedLoss(nn.Module):
    """A loss with a parameter that the optimizer of a loop does not get."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (self.scale * output - y).square().mean()


MODEL = nn.Linear(4, 2)


def raising(seed: int) -> nn.Module:
    raise TypeError("not the signature's fault")


REFUSED: list[tuple[Callable[[], object], str]] = [
    (
        lambda: Task(**{**GOOD, "builder": MODEL}),
        r"Task: builder must be a function .* got Linear\(in_features=4",
    ),
    (
        lambda: Task(**{**GOOD, "loss_fn": OtherLoss}),
        r"Task: loss_fn must .* the class OtherLoss; give an instance: OtherLoss\(\)",
    ),
    (
        lambda: Task(**{**GOOD, "builder": lambda seed: nn.Linear(2, 1, device="meta")}).build(),
        "Task: builder must return a model with values, got one with weights on the meta device",
    ),
    (
        lambda: Task(**{**GOOD, "builder": lambda: nn.Linear(4, 2)}),
        r"Task: builder must be a function .* got <lambda>\(\)$",
    ),
    (lambda: Task(**{**GOOD, "loss_fn": lambda output: output}), r"Task: loss_fn must .* got <lambda>\(output\)$"),
    (lambda: Task(**{**GOOD, "builder": raising}).build(), "^not the signature's fault$"),
    (
        lambda: Task(**{**GOOD, "batches": [(X.repeat(99, 99), [1])]}),
        r"Task: batches must .*; got y = \[1\] in batches\[0\]$",
    ),
    (
        lambda: Task(**{**GOOD, "batches": [(X, Y), (X.repeat(99, 99), Y, Y)]}),
        r"got \[a tensor of shape \(198, 198\) and torch.float32, .*\] as batches\[1\]; all .* batches\[0\], \[a t",
    ),
    (
        lambda: Task(**{**GOOD, "loss_fn": LearnedLoss()}),
        "^Task: loss_fn must be a function without parameters to train, got LearnedLoss with 'scale': the loop's "
        "optimizer gets only the model's parameters, so make it a part of the model$",
    ),
    (lambda: Task(**{**GOOD, "loss_fn": LearnedLoss().forward}), "Task: loss_fn must .* got LearnedLoss with 'scale'"),
    (
        lambda: Task(**{**GOOD, "lr": torch.arange(7.0)}),
        r"^Task: lr must be a number from .*, got a tensor of shape \(7,\) and torch.float32$",
    ),
    (
        lambda: Task(**{**GOOD, "batches": [(X, [[Y, None]])]}),
        r"got y = \[\[a tensor of shape \(2, 1\) and torch.float32, None\]\] in batches\[0\]$",
    ),
    (lambda: tasks.get("digts"), r"tasks.get: name must be one of .* got 'digts'; did you mean 'digits'\?"),
    (
        lambda: tasks.resolve("digit", "Lab"),
        r"Lab: task must be a Task or one of .* got 'digit'; did you mean 'digits'\?",
    ),
    (lambda: tasks.digits(batch=np.int64(0)), r"digits: batch must be a whole number from 1 to 1,500, got .*0"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_a_refusal_is_one_sentence_and_leaves_nothing(make: Callable[[], object], message: str) -> None:
    with nothing_left(), pytest.raises((TypeError, ValueError), match=message) as refused:
        make()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("whole", [np.int64(16), np.uint8(16), torch.tensor(16)])
def test_whole_numbers_of_other_libraries_are_taken(whole: Any) -> None:
    assert len(tasks.digits(batch=whole).batches[0][0]) == 16
    assert tasks.text(batch=whole).batches[0][0].shape[0] == 16
