"""The ring of orders: every verdict against a plain ``exec`` of the text that is shown, and against loops by hand."""

from __future__ import annotations

from functools import cache
from itertools import cycle, permutations
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab import tasks
from gradlab.course import ring_of_orders, run_order
from gradlab.course.instruments.ring import RingOfOrders
from gradlab.course.instruments.ring_trial import OPTIMIZERS, run_trial
from gradlab.course.instruments.ring_verdict import OrderRun

CALLS = ("zero_grad", "forward", "backward", "step")
ALL_24 = [" ".join(order) for order in permutations(CALLS)]
WITHOUT_ONE = [" ".join(call for call in CALLS if call != left) for left in CALLS]
DOUBLED = sorted({" ".join((*CALLS[:at], call, *CALLS[at:])) for call in CALLS for at in range(5)})
ORDERS = ALL_24 + WITHOUT_ONE + DOUBLED
TURNS = 60
LATE = "step zero_grad forward backward"


@cache
def ring() -> RingOfOrders:
    return ring_of_orders()  # one for all tests: it runs each loop once


def ran(order: str, **options: Any) -> OrderRun:
    return ring().ran({**ring().values, "order": order, **options})


def flat(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@cache
def task() -> tasks.Task:
    return tasks.digits(batch=16, device="cpu")


def bare(first: int = 0) -> dict[str, Any]:
    """The names that a text needs, made here from the public task."""
    loss_fn = nn.functional.cross_entropy
    return {
        "torch": torch,
        "model": task().build(seed=0),
        "loss_fn": loss_fn,
        "batches": task().batches[: TURNS + first],
    }


def execute(text: str, first: int = 0) -> tuple[Tensor, BaseException | None]:
    """Run a text as a learner would, in a namespace of its own; return the weights and the error."""
    names = bare(first)
    try:
        exec(text, names)
    except Exception as error:
        return flat(names["model"]), error
    return flat(names["model"]), None


def after_each_turn(optimizer: str = "torch.optim.SGD(model.parameters(), lr=0.3)") -> list[Tensor]:
    """The weights of the usual loop, written down by hand, before the loop and after each of its turns."""
    names = bare()
    model = names["model"]
    chosen = eval(optimizer, names)
    found = [flat(model)]
    for x, y in names["batches"]:
        chosen.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        chosen.step()
        found.append(flat(model))
    return found


@pytest.fixture(scope="module")
def usual() -> list[Tensor]:
    return after_each_turn()


def gets_a_loss(order: str) -> bool:
    """Whether the first turn needs a loss from before the loop."""
    calls = order.split()
    return "backward" in calls and "forward" not in calls[: calls.index("backward")]


CASES = [(order, first) for order in ORDERS for first in ((False, True) if gets_a_loss(order) else (False,))]


def test_there_are_24_orders_and_20_with_one_call_missing_or_doubled() -> None:
    assert len(set(ORDERS)) == 44
    recorded = {(at["order"], at["call"]) for at in ring_of_orders().recorded()}
    assert recorded == {(order, call) for order in ORDERS for call in range(13)}


@pytest.mark.parametrize(("order", "first_loss"), CASES)
def test_the_verdict_is_that_of_a_plain_exec(order: str, first_loss: bool, usual: list[Tensor]) -> None:
    tried = ran(order, first_loss=first_loss)
    weights, error = execute(tried.code, first=first_loss)
    assert torch.equal(tried.trial.weights, weights)
    if error is not None:
        assert (tried.verdict, tried.trial.error is None) == ("error", False)
        assert type(error).__name__ in tried.judged.result
        return
    assert tried.trial.error is None
    if torch.equal(weights, usual[TURNS]):
        assert tried.verdict == "right"
    elif torch.equal(weights, usual[TURNS - 1]):
        assert tried.verdict == "harmless"
        assert "1 update late" in tried.judged.result
    else:
        assert tried.verdict == "wrong"
        assert ("never move" in tried.judged.result) == torch.equal(weights, usual[0])


@pytest.mark.parametrize(("optimizer", "set_to_none"), list(zip(OPTIMIZERS, cycle((False, True)))))
def test_other_optimizers_run_as_their_text_says(optimizer: str, set_to_none: bool) -> None:
    expected = after_each_turn(OPTIMIZERS[optimizer])
    for order, turns in ((" ".join(CALLS), TURNS), (LATE, TURNS - 1)):
        tried = ran(order, optimizer=optimizer, set_to_none=set_to_none)
        assert tried.verdict == ("right" if turns == TURNS else "harmless")
        assert torch.equal(tried.trial.weights, expected[turns])
        assert torch.equal(execute(tried.code)[0], expected[turns])


@pytest.mark.parametrize(
    "order",
    [
        LATE,
        "forward backward step",
        "zero_grad forward backward zero_grad step",
        "zero_grad forward backward step step",
    ],
)
def test_grad_holds_the_backwards_that_are_told(order: str) -> None:
    """After each call ``.grad`` is the sum of the gradients, taken by autograd.grad, of the backwards that it holds."""
    calls = [call for call in ran(order).trial.calls if call.turn <= 6]
    names = bare()
    model = names["model"]
    parameters = list(model.parameters())
    names["optimizer"] = torch.optim.SGD(parameters, lr=0.3)
    lines = ran(order).code.splitlines()
    gradients: dict[int, list[Tensor]] = {}
    used: set[int] = set()
    for call in calls:
        names["x"], names["y"] = names["batches"][call.turn - 1]
        if call.piece == "backward":
            grads = torch.autograd.grad(names["loss"], parameters, retain_graph=True)
            gradients[call.added] = list(grads)
            assert torch.equal(names["loss"], nn.functional.cross_entropy(model(names["x"]), names["y"]))
        exec(lines[call.line - 1].strip(), names)
        held = {number for first, last in call.after.holds for number in range(first, last + 1)}
        if call.piece == "step":
            used |= held
        stale = {number for first, last in call.after.stale for number in range(first, last + 1)}
        assert stale == held & used
        assert (call.after.kind == "None") == all(parameter.grad is None for parameter in parameters)
        for at, parameter in enumerate(parameters):
            if held:
                expected = torch.stack([gradients[number][at] for number in sorted(held)]).sum(0)
                torch.testing.assert_close(parameter.grad, expected)
            else:
                assert parameter.grad is None or not parameter.grad.any()


def test_a_doubled_step_applies_each_gradient_twice() -> None:
    names = bare()
    model = names["model"]
    for x, y in names["batches"]:
        grads = torch.autograd.grad(nn.functional.cross_entropy(model(x), y), list(model.parameters()))
        with torch.no_grad():
            for _ in range(2):
                for parameter, grad in zip(model.parameters(), grads, strict=True):
                    parameter.sub_(grad, alpha=0.3)
    tried = ran("zero_grad forward backward step step")
    assert torch.equal(tried.trial.weights, flat(model))
    assert "60 of 120 steps apply a gradient that was applied before" in tried.why


def test_without_zero_grad_the_last_step_applies_all() -> None:
    tried = ran("forward backward step")
    last = tried.trial.steps[-1].before
    assert (last.count, last.fresh) == (TURNS, 1)
    assert "59 of 60 steps" in tried.why
    assert "60 gradients in `.grad`, 59 of them stale" in tried.why


def test_a_single_layer_applies_gradients_that_are_one_update_old() -> None:
    order = "forward step zero_grad backward"
    assert ran(order).verdict == "error"
    tried = ran(order, layers=1)
    start = ran("forward", layers=1).trial.weights  # nothing moves there
    model = nn.Linear(64, 10)
    torch.nn.utils.vector_to_parameters(start, model.parameters())
    old: tuple[Tensor, ...] = ()
    for x, y in bare()["batches"]:
        new = torch.autograd.grad(nn.functional.cross_entropy(model(x), y), list(model.parameters()))
        with torch.no_grad():
            for parameter, grad in zip(model.parameters(), old, strict=False):
                parameter.sub_(grad, alpha=0.3)
        old = new
    torch.testing.assert_close(tried.trial.weights, flat(model))
    assert tried.verdict == "wrong"
    assert "58 of 60 steps apply an outdated gradient" in tried.why  # the first finds None, the second one is in time


@pytest.mark.parametrize(("order", "layers"), list(zip(ORDERS[::2], cycle((1, 1, 3)))))
def test_a_gradient_is_outdated_if_a_step_moves_the_weights_between_its_forward_and_its_backward(
    order: str, layers: int
) -> None:
    moved = outdated = False  # a step since the newest forward; whether the newest gradient is from before it
    for call in ran(order, first_loss=True, layers=layers).trial.calls:
        if call.piece == "step":
            assert bool(call.age) == bool(call.before.outdated)
            moved, outdated = moved or call.moved, False
        elif call.piece == "forward":
            moved = False
        elif call.piece == "backward":
            outdated = moved and not call.failed
        elif call.piece == "zero_grad":
            outdated = False
        assert bool(call.after.outdated) == outdated


@pytest.mark.parametrize(
    ("order", "options", "result", "why"),
    [
        ("backward step zero_grad forward", {}, "NameError", "no loss yet"),
        ("zero_grad backward step", {}, "NameError", "Nothing computes a loss"),
        ("zero_grad backward step", {"first_loss": True}, "Turn 2", "a second time"),
        ("zero_grad forward backward backward step", {}, "Turn 1", "a second time"),
        ("forward step zero_grad backward", {}, "Turn 2", "`step()` writes to the weights"),
        ("zero_grad forward step backward", {"set_to_none": False}, "Turn 2", "even zeros"),
    ],
)
def test_an_error_is_explained_by_what_went_before(order: str, options: dict[str, Any], result: str, why: str) -> None:
    tried = ran(order, **options)
    assert tried.verdict == "error"
    assert result in tried.judged.result
    assert why in tried.why


def test_momentum_moves_on_at_zeros_but_not_at_none() -> None:
    order = "zero_grad step forward backward step"
    assert ran(order, optimizer="SGD with momentum").verdict == "right"
    tried = ran(order, optimizer="SGD with momentum", set_to_none=False)
    assert tried.verdict == "wrong"
    assert "59 of 120 steps find zeros and still move the weights" in tried.why


def test_twice_forward_and_backward_makes_one_double_gradient() -> None:
    tried = ran("zero_grad forward backward forward backward step")
    assert tried.verdict == "wrong"
    assert "60 of 60 steps apply 2 fresh gradients at once" in tried.why


def test_running_an_order_leaves_torch_as_it_was() -> None:
    run_trial.cache_clear()
    torch.manual_seed(3)
    before = torch.get_rng_state()
    with torch.no_grad():
        assert run_order(" ".join(CALLS)).verdict == "right"
        assert not torch.is_grad_enabled()
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("order", ["", "zero forward", 7, " ".join(["step"] * 9)])
def test_a_bad_order_is_refused_in_words(order: Any) -> None:
    with pytest.raises(ValueError, match="order must be"):
        run_order(order)
    with pytest.raises(ValueError, match="order must be"):
        ring_of_orders(order=order)
