"""Global settings by a loop of the learner's own hold in that loop, and nowhere else."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from process_state import nothing_left, process_state

from gradlab import Run, tasks
from gradlab.loop import LoopError

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing")

LINE = tasks.line(device="cpu")
SETTINGS = """
from torch.optim.optimizer import register_optimizer_step_post_hook
dtypes, devices, calls, steps = [], [], [], []
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
torch.nn.modules.module.register_module_forward_hook(lambda *call, **named: calls.append(1), with_kwargs=True)
torch.nn.modules.module.register_module_full_backward_hook(lambda *call: calls.append(-1))
register_optimizer_step_post_hook(lambda *step: steps.append(1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(epochs):
    for x, y in batches:
        dtypes.append(torch.zeros(1).dtype)
        devices.append(torch.ones(1).device.type)
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        if len(steps) == 5:
            torch.set_default_device(None)
"""
NAMES = ("dtypes", "devices", "calls", "steps")


def plain_lists() -> dict[str, list[Any]]:
    """Return the lists that the text fills in one epoch of plain Python; the process is then as before."""
    before = process_state()
    names = {"torch": torch, "model": LINE.build(0), "loss_fn": LINE.loss_fn, "batches": LINE.batches, "epochs": 1}
    hooks = {name: dict(value) for name, value in hook_lists()}
    exec(SETTINGS, names)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.nn.modules.module._global_is_full_backward_hook = None  # type: ignore[attr-defined]
    for name, value in hook_lists():
        for number in value.keys() - hooks[name].keys():
            del value[number]
    assert process_state() == before
    return {name: list(names[name]) for name in NAMES}  # type: ignore[call-overload]


def hook_lists() -> list[tuple[str, Any]]:
    owners = torch.nn.modules.module, sys.modules["torch.optim.optimizer"]
    return [item for owner in owners for item in vars(owner).items() if "_hooks" in item[0] and hasattr(item[1], "pop")]


def test_settings_are_the_loops_own_in_every_slice() -> None:
    expected = plain_lists()
    assert set(expected["dtypes"]) == {torch.float64}
    assert set(expected["devices"]) == {"meta", "cpu"}
    run, beside = Run(LINE), Run(LINE, seed=1)
    with nothing_left():
        run.edit(SETTINGS)
    for _ in LINE.batches:
        with nothing_left():
            run.advance(updates=1)
        with nothing_left():
            beside.advance(updates=1)
    assert {name: run.loop.namespace[name][: len(expected[name])] for name in NAMES} == expected
    with nothing_left():
        run.switch(run.recipe)
        run.advance(updates=3)
        run.reset()
        run.close()
        beside.close()


@pytest.mark.parametrize("text", ["1 / 0\nfor x, y in batches: pass", "for x, y in batches:\n    1 / 0"])
def test_a_loop_that_fails_leaves_no_setting(text: str) -> None:
    run = Run(LINE)
    with nothing_left():
        with pytest.raises(LoopError, match="ZeroDivisionError"):
            run.edit(f"torch.set_default_dtype(torch.float64)\n{text}") or run.advance(updates=1)
        assert run.advance(updates=2) == 2
        assert not run.loop.is_edited
    run.close()
