"""Storages: which untyped storages are alive, what each is for, and how that changes."""

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
    """One storage: its bytes, what it is for, and how many nodes of the graph have saved it.

    What a storage is may be known late. With the history of what it counted as, it is then taken from that at each
    moment, and no category becomes negative. Of a storage that changes often, the oldest changes are forgotten.
    """

    __slots__ = (
        *("_history", "base", "bytes", "category", "computed", "found", "line", "module", "number", "output", "saved"),
        *("totals", "watch"),
    )

    def __init__(self, totals: CategoryTotals, size: int, base: int, number: int = 0, *, found: bool = False) -> None:
        """Count a storage that has just come to life, or that was ``found``: it was there before anybody looked."""
        self.totals, self.bytes, self.base, self.number, self.found = totals, size, base, number, found
        self.category = base
        self._history = [(totals.change(base, size), base, size)]
        self.saved = 0
        self.computed = False
        """Whether a tensor with a ``grad_fn`` has had it: then it is no batch, detached or not."""
        self.output = False
        """Whether a module has returned it."""
        self.line, self.module = ("", 0), ""
        self.watch: Any = None

    def set_category(self, base: int, *, retroactive: bool = False) -> None:
        """Be for something else, from now on or ever since it is alive."""
        self.base = base
        if not retroactive:
            self._recount()
            return
        history, self.category = self._history, self._counts_as()
        self._history = [(moment, self.category, size) for moment, _, size in history]
        self.totals.correct(history, self.category)

    def save(self, by: int = 1) -> None:
        """Note that one more node of the graph has saved it, or with -1 that one has let go of it."""
        self.saved += by
        self._recount()

    def resize(self, size: int) -> None:
        """Count other bytes from now on; 0 when the storage has died."""
        more, self.bytes = size - self.bytes, size
        self._note(self.totals.change(self.category, more), self.category, size)

    def _recount(self) -> None:
        category = self._counts_as()
        if category != self.category:
            before, self.category = self.category, category
            self._note(self.totals.move(before, category, self.bytes), category, self.bytes)

    def _counts_as(self) -> int:
        """A weight or a batch stays one while it is saved for backward, too."""
        return ACTIVATIONS if self.saved and self.base == OTHER else self.base

    def _note(self, moment: int, category: int, size: int) -> None:
        insort(self._history, (moment, category, size))  # a collection of garbage may have noted a later one by now
        if len(self._history) > _MOST_CHANGES:
            del self._history[0]


class Storages:
    """Every storage seen so far that is alive, each counted once, in the totals of its device."""

    def __init__(self, lines: LineTracker) -> None:
        """Start with none; ``lines`` knows the line that makes the next one."""
        self._lines = lines
        self.totals_by_device: dict[str, CategoryTotals] = {}
        self._entries: dict[int, StorageRecord] = {}
        self.newest = 0  # its number
        self._leaves: dict[int, weakref.ref[Tensor]] = {}
        self._grads: dict[int, StorageRecord] = {}
        self.statement = self.module = ""
        self._statements = 1

    def track(self, tensor: Tensor, base: int = OTHER, *, found: bool = False) -> list[StorageRecord]:
        """Count the storages of a tensor if they are new, and return their entries; sparse tensors have several."""
        if type(tensor) in _PLAIN and tensor.layout is torch.strided and _torch.has_storage(tensor):  # nearly always
            return [self._entry(tensor, base, found)]
        return [self._entry(part, base, found) for part in dense_parts(tensor)]

    def _entry(self, tensor: Tensor, base: int, found: bool) -> StorageRecord:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        entry = self._entries.get(key)
        if entry is None:
            self.newest += 1
            totals = self._totals(tensor.device.type)
            entry = self._entries[key] = StorageRecord(totals, size, base, self.newest, found=found)
            entry.line, entry.module = self._lines.innermost, self.module
            # The storage's Python object lives as long as the storage itself, whoever holds it: torch sees to that.
            entry.watch = weakref.ref(storage, lambda _: self._entries.pop(key).resize(0))
        elif entry.bytes != size:  # resize_() and the like
            entry.resize(size)
        return entry

    def _totals(self, device: str) -> CategoryTotals:
        if device not in self.totals_by_device:
            self.totals_by_device[device] = CategoryTotals((self.statement, self.module, self._statements))
        return self.totals_by_device[device]

    def set_category(self, tensor: Tensor, base: int) -> None:
        """Say what a tensor's storages are for, and have been for since they are alive; weights stay weights."""
        for entry in self.track(tensor, base):
            if entry.base not in (base, WEIGHTS):
                entry.set_category(base, retroactive=True)

    def mark_input(self, tensor: Tensor) -> None:
        """Say that a tensor is (part of) a batch, unless it is known to be something else."""
        for entry in self.track(tensor, INPUTS):
            if entry.base in (OTHER, ACTIVATIONS) and not entry.computed:
                entry.set_category(INPUTS, retroactive=True)

    def mark_optimizer_state(self, optimizer: torch.optim.Optimizer) -> None:
        """Say that what an optimizer holds is weights and its state."""
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self.mark_weight(parameter)
        for tensor in iter_tensors(optimizer.state.values()):
            self.set_category(tensor, OPTIMIZER)

    def mark_output(self, output: object) -> None:
        """Say that a module has returned the tensors in ``output``."""
        for tensor in iter_tensors(output):
            for entry in self.track(tensor):
                entry.output = True

    def settle_outputs(self, after: int, to: int) -> None:
        """Count as activations the outputs of modules numbered above ``after`` and up to ``to`` that are still alive.

        In the update that made it, an output is one if the graph saves it. Who keeps it longer, as a list in a hook
        does, keeps an activation.
        """
        for entry in reversed(self.alive()):
            if entry.number <= after:
                break
            if entry.number <= to and entry.output and entry.base == OTHER:
                entry.set_category(ACTIVATIONS)

    def alive(self) -> list[StorageRecord]:
        """Return the storages that are alive, the oldest first; a list, since one may die while the caller looks."""
        return list(self._entries.values())

    def mark_weight(self, tensor: Tensor) -> None:
        """Say that a tensor is a parameter or a buffer."""
        self.set_category(tensor, WEIGHTS)
        if tensor.requires_grad:
            self.leaf(tensor)

    def leaf(self, tensor: Tensor) -> None:
        """Watch the ``.grad`` of a leaf, and see what is in it now."""
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
        """See which storages are somebody's ``.grad`` now: it can be set, taken away and kept by hand."""
        leaves = [leaf for reference in list(self._leaves.values()) if (leaf := reference()) is not None]
        now = {entry.number: entry for leaf in leaves for entry in self._grad(leaf)}
        for number, entry in self._grads.items():
            if number not in now and entry.base == GRADIENTS:
                entry.set_category(OTHER)
        self._grads = now

    def pause(self, *, paused: bool) -> None:
        """Leave the timeline as it is for a while, or go on with it."""
        for totals in self.totals_by_device.values():
            totals.pause(paused=paused)

    def begin_interval(self, statement: str, module: str, *, anew: bool = False) -> None:
        """Begin another interval of the timeline; ``anew`` says that the same statement runs once more."""
        self._statements += anew or statement != self.statement
        self.statement, self.module = statement, module
        for totals in self.totals_by_device.values():
            totals.begin_interval((statement, module, self._statements))


def iter_tensors(values: Any) -> Iterator[Tensor]:
    """Find the tensors in values, however deep in lists, tuples and dicts."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, dict):
        yield from iter_tensors(values.values())
    elif isinstance(values, (list, tuple, set, ValuesView)):  # not any iterable: a generator would be used up
        for value in values:
            yield from iter_tensors(value)


def is_wrapping(tensor: Any) -> bool:
    """Tell whether a tensor has no bytes of its own but is made of others, as in torch.nested."""
    return type(tensor) not in _PLAIN and bool(_torch.is_traceable_wrapper_subclass(tensor))


def dense_parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors that hold a tensor's bytes: itself, or what a sparse or wrapping one is made of."""
    if is_wrapping(tensor):
        whole: Any = tensor
        inner = [getattr(tensor, name) for name in whole.__tensor_flatten__()[0]]
        return tuple(part for one in inner if isinstance(one, Tensor) for part in dense_parts(one))
    if tensor.layout is torch.strided:
        return (tensor,) if _torch.has_storage(tensor) else ()
    if tensor.layout is torch.sparse_coo:
        return (tensor._indices(), tensor._values())
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return (tensor.crow_indices(), tensor.col_indices(), tensor.values())
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return (tensor.ccol_indices(), tensor.row_indices(), tensor.values())
    return ()  # such as mkldnn's own layout, which shows nobody its bytes


def footprint(model: nn.Module, optimizers: Iterable[torch.optim.Optimizer]) -> dict[str, int]:
    """Return bytes for "weights" (parameters and buffers), "gradients" and "optimizer".

    Storages are counted, not elements: views and tied weights share one, and a small view keeps a large one alive. A
    storage that serves two categories is counted for the first.
    """
    seen: set[int] = set()
    return {
        "weights": _bytes([*model.parameters(), *model.buffers()], seen),
        "gradients": _bytes(iter_tensors(list(map(attrgetter("grad"), model.parameters()))), seen),
        "optimizer": _bytes(iter_tensors(list(map(attrgetter("state"), optimizers))), seen),
    }


def _bytes(these: Iterable[Tensor], seen: set[int]) -> int:
    total = 0
    for tensor in these:
        for part in dense_parts(tensor):
            storage = part.untyped_storage()
            if (key := storage._cdata) not in seen:
                seen.add(key)
                total += storage.nbytes()
    return total
