"""Storages: which untyped storages are alive, what each is for, and how that changes."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, ValuesView
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .totals import Tally
from .timeline import ACTIVATIONS, GRADIENTS, INPUTS, OPTIMIZER, OTHER, WEIGHTS

_PLAIN = (Tensor, nn.Parameter)


class Entry:
    """One storage: its bytes, what it is for, and how many nodes of the graph have saved it."""

    __slots__ = ("base", "bytes", "found", "number", "saved", "tally", "watch")

    def __init__(self, tally: Tally, size: int, base: int, number: int, *, found: bool) -> None:
        """``found`` marks a storage that was there before anybody looked."""
        self.tally, self.bytes, self.base, self.number, self.found = tally, size, base, number, found
        self.saved = 0
        self.watch: Any = None

    @property
    def category(self) -> int:
        """What it counts as: a weight or a batch stays one while it is saved for backward, too."""
        return ACTIVATIONS if self.saved and self.base == OTHER else self.base


class Storages:
    """Every storage seen so far that is alive, each counted once, on the tally of its device."""

    def __init__(self) -> None:
        """Start with none."""
        self.tallies: dict[str, Tally] = {}
        self._entries: dict[int, Entry] = {}
        self._number = 0
        self._leaves: dict[int, weakref.ref[Tensor]] = {}
        self._grads: dict[int, Entry] = {}
        self.statement = self.module = ""
        self._statements = 1

    def see(self, tensor: Tensor, base: int = OTHER, *, found: bool = False) -> list[Entry]:
        """Count the storages of a tensor if they are new, and return their entries; sparse tensors have several."""
        if type(tensor) in _PLAIN and tensor.layout is torch.strided and torch._C._has_storage(tensor):  # nearly always
            return [self._entry(tensor, base, found)]
        return [self._entry(part, base, found) for part in parts(tensor)]

    def _entry(self, tensor: Tensor, base: int, found: bool) -> Entry:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        entry = self._entries.get(key)
        if entry is None:
            self._number += 1
            tally = self._tally(tensor.device.type)
            entry = self._entries[key] = Entry(tally, size, base, self._number, found=found)
            # The storage's Python object lives as long as the storage itself, whoever holds it: torch sees to that.
            entry.watch = weakref.ref(storage, lambda _: self._died(key))
            tally.add(base, size, self._number)
        elif entry.bytes != size:  # resize_() and the like
            entry.tally.change(entry.category, size - entry.bytes)
            entry.bytes = size
        return entry

    def _tally(self, device: str) -> Tally:
        if device not in self.tallies:
            self.tallies[device] = Tally((self.statement, self.module, self._statements))
        return self.tallies[device]

    def _died(self, key: int) -> None:
        entry = self._entries.pop(key)
        entry.tally.change(entry.category, -entry.bytes)

    def call(self, tensor: Tensor, base: int) -> None:
        """Say what a tensor's storages are for, and have been for since they are alive; weights stay weights."""
        for entry in self.see(tensor, base):
            if entry.base != WEIGHTS:
                self._become(entry, base, entry.number)

    def call_input(self, tensor: Tensor) -> None:
        """Say that a tensor is (part of) a batch, unless it is known to be something else."""
        for entry in self.see(tensor, INPUTS):
            if entry.base == OTHER:
                self._become(entry, INPUTS, entry.number)

    def _become(self, entry: Entry, base: int, number: int | None = None) -> None:
        before = entry.category
        entry.base = base
        if entry.category != before and entry.watch() is not None:
            entry.tally.move(before, entry.category, entry.bytes, number)

    def save(self, entry: Entry, by: int = 1) -> None:
        """Note that one more node of the graph has saved this storage, or with -1 that one has let go of it."""
        before = entry.category
        entry.saved += by
        if entry.category != before and entry.watch() is not None:
            entry.tally.move(before, entry.category, entry.bytes)

    def call_state(self, optimizer: torch.optim.Optimizer) -> None:
        """Say that what an optimizer holds is weights and its state."""
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self.call_weight(parameter)
        for tensor in tensors(optimizer.state.values()):
            self.call(tensor, OPTIMIZER)

    def call_weight(self, tensor: Tensor) -> None:
        """Say that a tensor is a parameter or a buffer."""
        self.call(tensor, WEIGHTS)
        if tensor.requires_grad:
            self.leaf(tensor)

    def leaf(self, tensor: Tensor) -> None:
        """Watch the ``.grad`` of a leaf, and see what is in it now."""
        key = id(tensor)
        if key not in self._leaves:
            self._leaves[key] = weakref.ref(tensor, lambda _: self._leaves.pop(key, None) and None)
        self._grad(tensor)

    def _grad(self, leaf: Tensor) -> list[Entry]:
        if not leaf.is_leaf or leaf.grad is None:
            return []
        entries = self.see(leaf.grad, GRADIENTS)
        for entry in entries:
            if entry.base in (OTHER, INPUTS):
                self._become(entry, GRADIENTS)
            self._grads[entry.number] = entry
        return entries

    def look_at_gradients(self) -> None:
        """See which storages are somebody's ``.grad`` now: it can be set, taken away and kept by hand."""
        leaves = [leaf for reference in list(self._leaves.values()) if (leaf := reference()) is not None]
        now = {entry.number: entry for leaf in leaves for entry in self._grad(leaf)}
        for number, entry in self._grads.items():
            if number not in now and entry.base == GRADIENTS:
                self._become(entry, OTHER)
        self._grads = now

    def burst(self, device: str, size: int) -> None:
        """Count bytes that came and went within one operation."""
        tally = self._tally(device)
        tally.change(OTHER, size)
        tally.change(OTHER, -size)

    def rest(self, *, resting: bool) -> None:
        """Leave the timeline as it is for a while, or go on with it."""
        for tally in self.tallies.values():
            tally.rest(resting=resting)

    def turn(self, statement: str, module: str, *, anew: bool = False) -> None:
        """Begin another stretch of the timeline; ``anew`` says that the same statement runs once more."""
        self._statements += anew or statement != self.statement
        self.statement, self.module = statement, module
        for tally in self.tallies.values():
            tally.turn((statement, module, self._statements))


def tensors(values: Any) -> Iterator[Tensor]:
    """Find the tensors in values, however deep in lists, tuples and dicts."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, dict):
        yield from tensors(values.values())
    elif isinstance(values, (list, tuple, set, ValuesView)):  # not any iterable: a generator would be used up
        for value in values:
            yield from tensors(value)


def is_wrapping(tensor: Any) -> bool:
    """Tell whether a tensor has no bytes of its own but is made of others, as in torch.nested."""
    return is_traceable_wrapper_subclass(tensor)


def parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors that hold a tensor's bytes: itself, or what a sparse or wrapping one is made of."""
    if is_wrapping(tensor):
        whole: Any = tensor
        inner = [getattr(tensor, name) for name in whole.__tensor_flatten__()[0]]
        return tuple(part for one in inner if isinstance(one, Tensor) for part in parts(one))
    if tensor.layout is torch.strided:
        return (tensor,) if torch._C._has_storage(tensor) else ()
    if tensor.layout is torch.sparse_coo:
        return (tensor._indices(), tensor._values())
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return (tensor.crow_indices(), tensor.col_indices(), tensor.values())
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return (tensor.ccol_indices(), tensor.row_indices(), tensor.values())
    return ()  # such as mkldnn's own layout, which shows nobody its bytes
