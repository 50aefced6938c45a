"""What the experiments of notebook 12 share: the same each time, and instruments that notice."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from gradlab import tasks
from gradlab.course import (
    OperationLog,
    flat_weights,
    is_deprecated,
    linear_stack,
    peak_bytes,
    race_clearing,
    small_batch,
    small_net,
)


def test_the_network_and_the_data_are_the_same_each_time() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, two = small_net(), small_net()
    assert torch.equal(flat_weights(one), flat_weights(two))
    assert all(torch.equal(*pair) for pair in zip(small_batch(), small_batch(), strict=True))
    assert torch.equal(torch.rand(3), expected)  # the learner's random numbers go on as they were


def test_flat_weights_are_a_copy() -> None:
    model = small_net()
    kept = flat_weights(model)
    nn.init.zeros_(model[0].weight)
    assert kept.numel() == 4 * 8 + 8 + 8 + 1
    assert not torch.equal(kept, flat_weights(model))


def test_a_transfer_is_noticed_and_its_absence_too() -> None:
    with OperationLog() as log:
        torch.ones(3).to("meta")
    assert log.transfers == 1
    with OperationLog() as log:
        torch.ones(3).add(1)
    assert (log.transfers, len(log.seen)) == (0, 2)


def gone() -> None:
    raise AttributeError("no such name")


def warns() -> None:
    warnings.warn("will be removed", FutureWarning, stacklevel=1)


@pytest.mark.parametrize(("call", "expected"), [(gone, True), (warns, True), (lambda: None, False)])
def test_what_is_deprecated(call: object, expected: bool) -> None:
    assert is_deprecated(call) is expected  # type: ignore[arg-type]


def test_the_peak_holds_what_must_be_alive() -> None:
    """At the end of backward all weights and all gradients are there; a window keeps fewer activations."""
    model, x = linear_stack(64, 8), torch.randn(512, 64)
    weights = sum(p.nbytes for p in model.parameters())
    whole, parts, zeros = peak_bytes(model, x), peak_bytes(model, x, window=4), peak_bytes(model, x, set_to_none=False)
    assert whole > 2 * weights + 8 * x.nbytes
    assert parts < whole < zeros
    assert peak_bytes(model, x, cut=4) < whole
    assert peak_bytes(model, x[:8], torch.optim.Adam) >= 4 * weights


def test_the_race_is_the_same_training_twice() -> None:
    race = race_clearing(tasks.digits(device="cpu"), updates=8)
    assert race.same_weights
    assert race.kept == sum(p.nbytes for p in tasks.digits(device="cpu").build(seed=0).parameters())
    assert race.operations[1] > race.operations[0]
    assert min(race.seconds) > 0
