"""Records of all living untyped storages, each with its category and the history of its size and category."""

from __future__ import annotations

import weakref
from bisect import insort
from collections.abc import Iterable, Iterator, ValuesView
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn

from .. import _torch
from .attribution import LineTracker
from .timeline import ACTIVATIONS, GRADIENTS, INPUTS, OPTIMIZER, OTHER, WEIGHTS, CategoryTotals

_PLAIN = (Tensor, nn.Parameter)
_MOST_CHANGES = 32


class StorageRecord:
    """The record of one storage: its bytes, its category, and the number of saved tensors that use the storage.

    The category may become known only after other code has run. Past totals are then corrected from a history of the
    newest 32 sizes and categories of the storage, so that no total becomes negative.
    """

    __slots__ = (
        *("_history", "base", "bytes", "category", "computed", "line", "module", "number", "output", "preexisting"),
        *("saved", "totals", "watch"),
    )

    def __init__(
        self, totals: CategoryTotals, size: int, base: int, number: int = 0, *, preexisting: bool = False
    ) -> None:
        """Count a storage of ``size`` bytes from now on; ``preexisting`` means that it is older than the ledger."""
        self.totals, self.bytes, self.base, self.number, self.preexisting = totals, size, base, number, preexisting
        self.category = base
        self._history = [(totals.change(base, size), base, size)]
        self.saved = 0
        self.computed = False  # whether the storage holds a computed result, which never counts as a batch
        self.output = False  # whether a module has returned a tensor in this storage
        self.line, self.module = ("", 0), ""
        self.watch: Any = None

    def set_category(self, base: int, *, retroactive: bool = False) -> None:
        """Set the category for a storage that no graph saves, from now on or, if ``retroactive``, for all time."""
        self.base = base
        if not retroactive:
            self._recount()
            return
        history, self.category = self._history, self._counts_as()
        self._history = [(moment, self.category, size) for moment, _, size in history]
        self.totals.correct(history, self.category)

    def save(self, by: int = 1) -> None:
        """Add ``by`` to the number of saved tensors that use this storage: 1 for each saved, -1 for each released."""
        self.saved += by
        self._recount()

    def resize(self, size: int) -> None:
        """Set the size to ``size`` bytes from now on, which is 0 if the storage has been freed."""
        more, self.bytes = size - self.bytes, size
        self._note(self.totals.change(self.category, more), self.category, size)

    def _recount(self) -> None:
        category = self._counts_as()
        if category != self.category:
            before, self.category = self.category, category
            self._note(self.totals.move(before, category, self.bytes), category, self.bytes)

    def _counts_as(self) -> int:
        """Return the category that counts: ``base``, but ACTIVATIONS for a storage in OTHER that a graph saves."""
        return ACTIVATIONS if self.saved and self.base == OTHER else self.base

    def _note(self, moment: int, category: int, size: int) -> None:
        insort(self._history, (moment, category, size))  # a garbage collection may have added a later change
        if len(self._history) > _MOST_CHANGES:
            del self._history[0]


class Storages:
    """The records of the living storages that are tracked, and each device's totals, which count a storage once."""

    def __init__(self, lines: LineTracker) -> None:
        self._lines = lines
        self.totals_by_device: dict[str, CategoryTotals] = {}
        self._entries: dict[int, StorageRecord] = {}
        self.newest = 0  # number of the newest storage
        self._leaves: dict[int, weakref.ref[Tensor]] = {}
        self._grads: dict[int, StorageRecord] = {}
        self.statement = self.module = ""
        self._statements = 1

    def track(self, tensor: Tensor, base: int = OTHER, *, preexisting: bool = False) -> list[StorageRecord]:
        """Return the records of a tensor's storages, usually one, and begin to count new storages as ``base``."""
        if type(tensor) in _PLAIN and tensor.layout is torch.strided and _torch.has_storage(tensor):  # the usual case
            return [self._entry(tensor, base, preexisting)]
        return [self._entry(part, base, preexisting) for part in dense_parts(tensor)]

    def _entry(self, tensor: Tensor, base: int, preexisting: bool) -> StorageRecord:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        entry = self._entries.get(key)
        if entry is None:
            self.newest += 1
            totals = self._totals(tensor.device.type)
            entry = self._entries[key] = StorageRecord(totals, size, base, self.newest, preexisting=preexisting)
            entry.line, entry.module = self._lines.innermost, self.module
            # torch keeps the storage's Python object alive as long as the storage itself.
            entry.watch = weakref.ref(storage, lambda _: self._entries.pop(key).resize(0))
        elif entry.bytes != size:  # resize_() and the like
            entry.resize(size)
        return entry

    def _totals(self, device: str) -> CategoryTotals:
        if device not in self.totals_by_device:
            self.totals_by_device[device] = CategoryTotals((self.statement, self.module, self._statements))
        return self.totals_by_device[device]

    def set_category(self, tensor: Tensor, base: int) -> None:
        """Set the category of a tensor's storages to ``base`` retroactively, except for storages that are weights."""
        for entry in self.track(tensor, base):
            if entry.base not in (base, WEIGHTS):
                entry.set_category(base, retroactive=True)

    def mark_input(self, tensor: Tensor) -> None:
        """Mark a tensor as part of a batch, unless it was computed or is a weight, a gradient or optimizer state."""
        for entry in self.track(tensor, INPUTS):
            if entry.base in (OTHER, ACTIVATIONS) and not entry.computed:
                entry.set_category(INPUTS, retroactive=True)

    def mark_optimizer_state(self, optimizer: torch.optim.Optimizer) -> None:
        """Mark an optimizer's parameters as weights and the tensors in its state as optimizer state."""
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self.mark_weight(parameter)
        for tensor in iter_tensors(optimizer.state.values()):
            self.set_category(tensor, OPTIMIZER)

    def mark_output(self, output: object) -> None:
        """Mark the tensors in ``output`` as returned by a module."""
        for tensor in iter_tensors(output):
            for entry in self.track(tensor):
                entry.output = True

    def settle_outputs(self, after: int, to: int) -> None:
        """Count the living module outputs with storage numbers above ``after`` and up to ``to`` as activations.

        In the update that creates an output, the output is an activation only if a graph saves it. An output that lives
        longer, for example in a list that a hook fills, is always an activation.
        """
        for entry in reversed(self.alive()):
            if entry.number <= after:
                break
            if entry.number <= to and entry.output and entry.base == OTHER:
                entry.set_category(ACTIVATIONS)

    def alive(self) -> list[StorageRecord]:
        """Return a list of the living storages' records, oldest first, which does not change if a storage is freed."""
        return list(self._entries.values())

    def mark_weight(self, tensor: Tensor) -> None:
        """Mark a tensor as a parameter or buffer, and watch its ``.grad`` if it requires grad."""
        self.set_category(tensor, WEIGHTS)
        if tensor.requires_grad:
            self.watch_leaf(tensor)

    def watch_leaf(self, tensor: Tensor) -> None:
        """Track the ``.grad`` of a leaf now and at every ``refresh_gradients()``."""
        key = id(tensor)
        if key not in self._leaves:
            self._leaves[key] = weakref.ref(tensor, lambda _: self._leaves.pop(key, None) and None)
        self._grad(tensor)

    def _grad(self, leaf: Tensor) -> list[StorageRecord]:
        if not leaf.is_leaf or leaf.grad is None:
            return []
        entries = self.track(leaf.grad, GRADIENTS)
        for entry in entries:
            if entry.base in (OTHER, INPUTS, ACTIVATIONS):
                entry.set_category(GRADIENTS)
            self._grads[entry.number] = entry
        return entries

    def refresh_gradients(self) -> None:
        """Update the set of storages that count as gradients, because user code may have set or removed a ``.grad``."""
        leaves = [leaf for reference in list(self._leaves.values()) if (leaf := reference()) is not None]
        now = {entry.number: entry for leaf in leaves for entry in self._grad(leaf)}
        for number, entry in self._grads.items():
            if number not in now and entry.base == GRADIENTS:
                entry.set_category(OTHER)
        self._grads = now

    def pause(self, *, paused: bool) -> None:
        """Pause or resume the timelines of all devices."""
        for totals in self.totals_by_device.values():
            totals.pause(paused=paused)

    def begin_interval(self, statement: str, module: str, *, anew: bool = False) -> None:
        """Begin an interval in all timelines; if ``anew``, the same ``statement`` counts as a new execution."""
        self._statements += anew or statement != self.statement
        self.statement, self.module = statement, module
        for totals in self.totals_by_device.values():
            totals.begin_interval((statement, module, self._statements))


def iter_tensors(values: Any) -> Iterator[Tensor]:
    """Yield the tensors in ``values``, at any depth of nested lists, tuples, sets and dicts."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, dict):
        yield from iter_tensors(values.values())
    elif isinstance(values, (list, tuple, set, ValuesView)):  # generators are skipped, because a loop consumes them
        for value in values:
            yield from iter_tensors(value)


def is_wrapping(tensor: Any) -> bool:
    """Return whether ``tensor`` has no storage of its own and wraps other tensors, as a nested tensor does."""
    return type(tensor) not in _PLAIN and bool(_torch.is_traceable_wrapper_subclass(tensor))


def dense_parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors that hold a tensor's bytes: itself or its parts, or () if its storage is not accessible."""
    if is_wrapping(tensor):
        whole: Any = tensor
        inner = [getattr(tensor, name) for name in whole.__tensor_flatten__()[0]]
        return tuple(part for value in inner if isinstance(value, Tensor) for part in dense_parts(value))
    if tensor.layout is torch.strided:
        return (tensor,) if _torch.has_storage(tensor) else ()
    if tensor.layout is torch.sparse_coo:
        return (tensor._indices(), tensor._values())
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return (tensor.crow_indices(), tensor.col_indices(), tensor.values())
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return (tensor.ccol_indices(), tensor.row_indices(), tensor.values())
    return ()  # the storage of other layouts, such as mkldnn, is not accessible


def footprint(model: nn.Module, optimizers: Iterable[torch.optim.Optimizer]) -> dict[str, int]:
    """Return a dict with the bytes of "weights" (parameters and buffers), "gradients" and "optimizer" (state).

    The bytes are those of storages, not of elements: tied weights count once, and a small view counts with the large
    storage that it keeps alive. A storage that belongs to two of these categories is counted in the first.
    """
    counted: set[int] = set()
    return {
        "weights": _bytes([*model.parameters(), *model.buffers()], counted),
        "gradients": _bytes(iter_tensors(list(map(attrgetter("grad"), model.parameters()))), counted),
        "optimizer": _bytes(iter_tensors(list(map(attrgetter("state"), optimizers))), counted),
    }


def _bytes(tensors: Iterable[Tensor], counted: set[int]) -> int:
    total = 0
    for tensor in tensors:
        for part in dense_parts(tensor):
            storage = part.untyped_storage()
            if (key := storage._cdata) not in counted:
                counted.add(key)
                total += storage.nbytes()
    return total
