"""What the graphs that are alive when a Ledger begins have saved for backward: no hook has told of it.

What they have saved is given the hooks that it would have if the Ledger had been there. Where others have put hooks of
their own, what those hold counts as saved until it dies. Nothing here keeps a graph alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch import Tensor

from .. import _torch
from .saved_tensors import SavedTensor, unpack
from .storages import StorageRecord, Storages, iter_tensors
from .timeline import ACTIVATIONS, INPUTS, OTHER


def find_saved(nodes: Iterable[Any], storages: Storages, wanted: Callable[[Tensor], bool]) -> None:
    """Count what the graphs behind these nodes have saved; ``wanted`` tells which tensors are to be counted.

    The tensors that Python knows must have been found before: a batch is one of them. What nobody but the graph has,
    such as the mask of a dropout, is none.
    """
    packed: list[StorageRecord] = []

    def pack(tensor: Tensor) -> SavedTensor:
        saved = SavedTensor(tensor, [storages])
        packed.extend(saved.entries)
        return saved

    entries: list[StorageRecord] = []
    for saved, tensor in _saved_by(nodes):
        if tensor is not None:
            if wanted(tensor):
                saved.register_hooks(pack, unpack)  # packs at once
                for entry in packed:  # as the node gives it away: an output is packed without its grad_fn
                    entry.computed |= tensor.grad_fn is not None
                entries += packed
                packed.clear()
        elif isinstance(saved.data, SavedTensor):  # that of another ledger
            if wanted(saved.data.tensor):
                saved.data.watch_too(storages)
        else:
            for entry in (entry for kept in filter(wanted, iter_tensors(saved.data)) for entry in storages.track(kept)):
                if entry.base == OTHER:
                    entry.set_category(ACTIVATIONS)
    for entry in entries:
        entry.computed |= not entry.found
    for entry in entries:
        if entry.base == OTHER and not entry.computed:
            entry.set_category(INPUTS, retroactive=True)


def _saved_by(nodes: Iterable[Any]) -> Iterator[tuple[Any, Tensor | None]]:
    """Yield what the graphs have saved, with its tensor, or with None if it is in the hands of hooks."""
    hook = _torch.saved_unpack_hook
    if hook is None:
        return
    for node in _graph(nodes):
        for name in [name for name in dir(node) if name.startswith("_raw_saved_")]:
            plain = name.removeprefix("_raw")  # a Function of the user's own calls it saved_tensors
            try:
                saved = _tuple(getattr(node, name))
                if any(hook.__get__(one) is not None for one in saved):
                    tensors: tuple[Tensor | None, ...] = (None,) * len(saved)
                else:
                    tensors = _tuple(getattr(node, plain) if hasattr(type(node), plain) else node.saved_tensors)
            except RuntimeError:  # freed, or modified in place: then backward must say so
                continue
            for one, tensor in zip(saved, tensors, strict=True):
                if one is not None and (tensor is not None or hook.__get__(one) is not None):
                    yield one, tensor


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _graph(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield the nodes and all that they lead to, each once."""
    seen: set[Any] = set()
    ahead = list(nodes)
    while ahead:
        node = ahead.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            ahead += [before for before, _ in node.next_functions]
