"""Each category of the Ledger against a count by hand, at every statement, after every module and inside backward.

Weights, gradients, the optimizer's state and batches are enumerated storage by storage. Activations are counted by
saved-tensor hooks of the test's own in a second run of the same loop, and where a block is computed again in backward,
by what PyTorch's checkpointing itself holds.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from covering import covering
from ledger_cases import MODELS, Case, Loop, case
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import _CheckpointFrame

from gradlab import Ledger

ROWS = covering(
    {
        "name": tuple(MODELS),
        "again": (False, True),
        "amp": ("off", "bf16"),
        "accumulate": (1, 2),
        "set_to_none": (True, False),
        "optimizer": ("sgd", "momentum", "adamw"),
    }
)


def sizes(tensors: Iterable[Tensor]) -> dict[int, int]:
    """Bytes of each storage behind some tensors."""
    return {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors}


def by_hand(loop: Loop) -> dict[str, dict[int, int]]:
    """The storages of every category but activations: those of tensors that have a name."""
    optimizer = loop.names.get("optimizer")
    parameters = list(loop.model.parameters())
    state = optimizer.state.values() if optimizer else ()
    return {
        "weights": sizes([*parameters, *loop.model.buffers()]),
        "gradients": sizes(p.grad for p in parameters if p.grad is not None),
        "optimizer": sizes(t for part in state for t in part.values() if isinstance(t, Tensor)),
        "inputs": sizes([loop.x, loop.y]),
    }


def run_with(case: Case, sample: Callable[[Loop], None]) -> Loop:
    """Run a case with ``sample`` after every statement, every module, and every gradient of a weight."""
    loop: Loop

    def take_sample(*_: Any) -> None:
        sample(loop)

    loop = case.ready(take_sample)
    for module in loop.model.modules():
        module.register_forward_hook(take_sample)
    for p in loop.model.parameters():
        p.register_post_accumulate_grad_hook(take_sample)
    return loop


class Saved:
    """A tensor saved by the graph."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor.detach() if tensor.grad_fn is not None else tensor


class Pencil:
    """Every saved tensor that the graph has not released, and those that checkpointing keeps."""

    def __init__(self) -> None:
        self.saved: weakref.WeakSet[Saved] = weakref.WeakSet()
        self.frames: weakref.WeakSet[Any] = weakref.WeakSet()
        self.activations: list[int] = []

    def pack(self, tensor: Tensor) -> Saved:
        saved = Saved(tensor)
        self.saved.add(saved)
        return saved

    def observe(self, loop: Loop) -> None:
        named = set().union(*by_hand(loop).values())
        again = [t for frame in self.frames for part in frame.recomputed.values() for t in part.values()]
        storages = sizes([*(saved.tensor for saved in list(self.saved)), *again])
        self.activations.append(sum(size for key, size in storages.items() if key not in named))


@pytest.mark.parametrize("case", [case(**row) for row in ROWS], ids=str)
def test_each_category_is_what_a_count_by_hand_gives(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    pencil = Pencil()
    loop = run_with(case, pencil.observe)
    begin = _CheckpointFrame.__init__

    def noted(frame: Any, *args: Any) -> None:
        begin(frame, *args)
        pencil.frames.add(frame)

    monkeypatch.setattr(_CheckpointFrame, "__init__", noted)
    with saved_tensors_hooks(pencil.pack, lambda saved: saved.tensor):
        loop.run()
    monkeypatch.undo()
    assert max(pencil.activations) > 50_000
    del loop
    gc.collect()

    activations = []

    def compare(loop: Loop) -> None:
        now = ledger.by_category
        for name, storages in by_hand(loop).items():
            assert now[name] == sum(storages.values()), name
        activations.append(now["activations"])

    loop = run_with(case, compare)
    ledger = Ledger(loop.model, (), (loop.x, loop.y))
    with ledger:
        loop.run()
    assert activations == pencil.activations
