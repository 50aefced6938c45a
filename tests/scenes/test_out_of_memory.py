"""Out of memory inside the Lab: it says where, cleans up, and the Lab lives on. The error is simulated."""

from __future__ import annotations

import dataclasses
import gc
from typing import Any

import pytest
import torch
from page import Page
from torch import nn
from torch.utils.weak import TensorWeakRef

from gradlab import Lab, Recipe, tasks
from gradlab.loop.program import LoopError
from gradlab.scenes.sentences import find_oom

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
SAID = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 14.56 GiB of which 1.50 GiB is free."
)


class Hungry(nn.Module):
    """Passes its input on while autocast is on or it is not armed, and else finds no memory."""

    armed = False
    where = "forward"
    saved: TensorWeakRef | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.grad_fn is not None:  # ReLU keeps its result for backward
            Hungry.saved = TensorWeakRef(x)
        if self.armed and not torch.is_autocast_enabled("cpu"):
            if self.where == "forward":
                raise torch.OutOfMemoryError(SAID)
            if x.requires_grad:
                x.register_hook(self._refuse)
        return x

    @staticmethod
    def _refuse(grad: torch.Tensor) -> None:
        raise torch.OutOfMemoryError(SAID)


def build(seed: int) -> nn.Module:
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), Hungry(), nn.Linear(256, 10))


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(Hungry, "armed", False)
    monkeypatch.setattr(Hungry, "where", "forward")
    return Lab(dataclasses.replace(tasks.digits(), builder=build), Recipe(lr=0.05, optimizer="adam")).run(3)


def note_of(lab: Lab) -> str:
    """The note of the Lab under its state."""
    return lab.model.note


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_it_is_explained_and_the_graph_is_let_go(lab: Lab, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setattr(Hungry, "where", where)
    monkeypatch.setattr(Hungry, "armed", True)
    before = [p.detach().clone() for p in lab.runner.model.parameters()]
    gc.disable()
    try:
        lab.handle({"do": "update"})
        assert Hungry.saved is not None
        assert Hungry.saved() is None  # the graph is gone
    finally:
        gc.enable()
    assert all(torch.equal(a, b) for a, b in zip(before, lab.runner.model.parameters(), strict=True))
    assert not any(isinstance(v, torch.Tensor) and v.grad_fn for v in lab.runner.loop.namespace.values())
    note = note_of(lab)
    line = {"forward": "line 7, output = model(x)", "backward": "line 9, loss.backward()"}[where]
    assert note.startswith(f"Out of memory at {line}. Try smaller batches")
    assert Page(lab).shown["wrong"] == {"forward": 7, "backward": 9}[where]


def test_the_lab_lives_on(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hungry, "armed", True)
    page = Page(lab)
    before = page.panels["picture"]
    page.ask("pause")
    assert page.panels["picture"] is before  # held-out digits need a forward pass, too
    page.play(3)
    assert page.stopped
    assert not lab.model.playing
    page.ask("update")  # it still does not fit, and says so again
    assert "Out of memory" in note_of(lab)
    assert lab.runner.updates == 3
    page.turn("amp", "bf16")
    assert note_of(lab) == ""  # what it said of memory is over
    page.ask("update")
    assert lab.runner.updates == 4
    page.turn("amp", "off")
    for _ in range(5):
        page.ask("statement")
    assert "Out of memory" in note_of(lab)
    monkeypatch.setattr(Hungry, "armed", False)
    lab.reset().run(2)
    assert lab.runner.updates == 2


def test_running_from_a_cell_is_explained_too(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hungry, "armed", True)
    assert lab.run(20) is lab  # only the last of these would have been watched
    assert lab.runner.updates == 3
    assert "Out of memory" in lab.text


def test_a_loop_of_ones_own_is_got_over_too(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    source = lab.runner.source.replace("loss.backward()", "(loss * 1.0).backward()")
    lab.edit(source)
    lab.run(2)
    monkeypatch.setattr(Hungry, "armed", True)
    lab.handle({"do": "update"})
    assert "Out of memory at line 7, output = model(x)." in note_of(lab)
    monkeypatch.setattr(Hungry, "armed", False)
    lab.run(2)
    assert lab.runner.source == source
    assert lab.runner.updates == 7


@pytest.mark.parametrize(
    ("error", "yes"),
    [
        (torch.OutOfMemoryError(SAID), True),
        (MemoryError(), True),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
            True,
        ),
        (RuntimeError("shapes do not match"), False),
        (LoopError(3, "KeyError"), False),
        (None, False),
    ],
)
def test_it_is_recognised_however_deep(error: Any, yes: bool) -> None:
    assert (find_oom(error) is error) == yes or error is None
    with pytest.raises(LoopError) as outer:
        raise LoopError(3, "what it said") from error
    assert (find_oom(outer.value) is not None) == yes
