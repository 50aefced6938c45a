"""The watched parameters, and the changes to each ``.grad`` and to the weights since the last comparison.

The doctor registers no hooks on the learner's tensors: it compares each ``.grad`` with its recorded id and version.
"""

from __future__ import annotations

import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from ... import _torch
from ..events import bit_positions, union_bits

_NONE = (0, -1, 0)
_REUSE_ABOVE = 1024  # number of parameters above which indices of freed parameters are reused
_MOST_ELEMENTS = 100_000  # largest number of elements of a weight whose norm is compared
_MOST_CHOSEN = 16  # number of cached sets of parameters


class ParamIndex:
    """The watched parameters, each with an index, which is its bit in an int that represents a set of parameters."""

    def __init__(self, reused: Callable[[int], None]) -> None:
        """Create an index that calls ``reused(bit)`` when a new parameter gets the bit of one that no longer exists."""
        self._reused = reused
        self._numbers: dict[int, int] = {}
        self._params: list[weakref.ref[Tensor]] = []
        self._ids: list[int] = []
        self._chosen: dict[int, list[tuple[int, int, weakref.ref[Tensor]]]] = {}  # parameter set -> its live parameters
        self._threads: dict[int, threading.Thread] = {}  # index of a parameter from another thread -> the thread
        self._first = threading.current_thread()
        self._free: list[int] = []
        self._reuse_above = _REUSE_ABOVE
        self._states: list[tuple[int, int, int]] = []
        self._weight_states: dict[int, tuple[int, float]] = {}
        self.versions: list[int] = []
        """Version counter of each parameter at its registration; each write to the weights increments the counter."""
        self.with_new_grad = 0
        """Parameters whose gradients a backward pass has added to since they were last cleared."""
        self.expected_changes = 0
        """Parameters whose next change of ``.grad`` comes from clipping."""
        self.wanted_values = 0
        """Parameters whose gradients are read when a backward pass begins, because a rule needs their values."""
        self.wanted_values_after = 0
        """Parameters whose gradients are read when a backward pass ends, to recognize zeros that the pass left."""

    def __len__(self) -> int:
        return len(self._params)

    def bit(self, param: Tensor) -> int:
        """Return the bit of a parameter, and watch the parameter from now on."""
        number = self._numbers.get(id(param))
        if number is None or self._params[number]() is not param:
            number = self._number(param)
        return 1 << number

    def _number(self, param: Tensor) -> int:
        reference = weakref.ref(param)
        if not self._free and len(self._params) >= self._reuse_above:
            self._free = [number for number, param_ref in enumerate(self._params) if param_ref() is None]
            self._reuse_above = max(_REUSE_ABOVE, 2 * (len(self._params) - len(self._free)))
        reused = bool(self._free)
        number = self._free.pop() if reused else len(self._params)
        if reused and self._numbers.get(self._ids[number]) == number:
            del self._numbers[self._ids[number]]
        slot = slice(number, number + 1)  # a new index appends
        self._params[slot], self._ids[slot] = [reference], [id(param)]
        self._states[slot], self.versions[slot] = [_state(param)], [_version(param)]
        if reused:
            others = ~(1 << number)
            self.with_new_grad &= others
            self.expected_changes &= others
            self.wanted_values &= others
            self.wanted_values_after &= others
            self._reused(1 << number)
        self._numbers[id(param)] = number
        self._threads.pop(number, None)
        if threading.current_thread() is not self._first:
            self._threads[number] = threading.current_thread()
        self._chosen.clear()
        return number

    def thread_changed(self) -> None:
        """Forget the cached sets, since another thread is watched now."""
        self._chosen.clear()

    def _is_elsewhere(self, number: int) -> bool:
        """Return whether a parameter belongs to another thread that is still running.

        Reading its ``.grad`` while a backward pass of that thread writes to it can crash Python (PyTorch 2.13).
        """
        thread = self._threads.get(number)
        return thread is not None and thread is not threading.current_thread() and thread.is_alive()

    def bits(self, tensors: Iterable[Tensor]) -> int:
        """Return the set of the leaves among ``tensors``, and watch these leaves from now on."""
        # tensors that are not leaves, such as those in functional_call, have no .grad
        return union_bits(self.bit(param) for param in tensors if param.is_leaf)

    def known_bits(self, tensors: Iterable[Tensor]) -> int:
        """Return the set of the watched parameters among ``tensors``."""
        numbered = ((self._numbers.get(id(tensor)), tensor) for tensor in tensors)
        return union_bits(1 << n for n, tensor in numbered if n is not None and self._params[n]() is tensor)

    def all(self) -> int:
        """Return the set of all watched parameters that still exist."""
        return sum(1 << number for number, reference in enumerate(self._params) if reference() is not None)

    def alive(self, params: int) -> list[tuple[int, Tensor]]:
        """Return (index, parameter) for each of ``params`` that still exists."""
        return [(number, param) for number in bit_positions(params) if (param := self._params[number]()) is not None]

    def changes(self, params: int = -1) -> tuple[int, int, int]:
        """Return the subsets of ``params`` with a gradient, with one lost since the last call, and with one changed."""
        present = lost = changed = 0
        for number, bit, reference in self._chosen.get(params) or self._choose(params):
            if (param := reference()) is None:  # the gradient was freed with its parameter, not cleared
                continue
            before, now = self._states[number], _state(param)
            self._states[number] = now
            if now is _NONE:
                lost |= 0 if before is _NONE else bit
            else:
                present |= bit
                changed |= 0 if now == before else bit
        return present, lost, changed

    def _choose(self, params: int) -> list[tuple[int, int, weakref.ref[Tensor]]]:
        """Return and cache (index, bit, reference) of each live parameter in ``params`` that belongs to this thread."""
        if len(self._chosen) >= _MOST_CHOSEN:
            self._chosen.clear()
        self._chosen[params] = chosen = [
            (number, 1 << number, reference)
            for number, reference in enumerate(self._params)
            if params >> number & 1 and reference() is not None and not self._is_elsewhere(number)
        ]
        return chosen

    def frozen(self, params: int) -> int:
        """Return the parameters in ``params`` that do not require gradients."""
        return union_bits(1 << number for number, param in self.alive(params) if not param.requires_grad)

    def owning_grads(self, grads: Iterable[Tensor]) -> int:
        """Return the parameters whose ``.grad`` is one of ``grads``."""
        wanted = {id(grad) for grad in grads}
        return sum(1 << n for n in range(len(self._params)) if id(self._grad(n)) in wanted)

    def weights_changed(self) -> int:
        """Return the parameters whose weights have changed since the last call.

        A write through ``.data`` does not raise the version, so the norm of small weights on a CPU is compared as well.
        """
        changed = 0
        for number, reference in enumerate(self._params):
            if (param := reference()) is None:
                continue
            small = param.device.type == "cpu" and param.numel() <= _MOST_ELEMENTS and param.layout is torch.strided
            has_norm = small and (param.is_floating_point() or param.is_complex())
            state = (_version(param), float(param.detach().norm()) if has_norm else 0.0)
            if state != self._weight_states.get(number, state):
                changed |= 1 << number
            self._weight_states[number] = state
        return changed

    def weights_ever_written(self, params: int) -> int:
        """Return the parameters in ``params`` whose version counters have changed since their registration."""
        return sum(1 << number for number, param in self.alive(params) if _version(param) != self.versions[number])

    def versions_of(self, params: int) -> int:
        """Return the sum of the version counters of ``params``, which grows with each write to their weights."""
        return sum(_version(param) for _, param in self.alive(params))

    def norms(self, params: int) -> Tensor | None:
        """Return a tensor with one number for each gradient of ``params``: 0 if the gradient is all zeros, else not 0.

        Return None if ``params`` is empty, if a parameter has no gradient, or if the values of a gradient cannot be
        read, because the gradient is on the device "meta" or is an instance of a Tensor subclass.
        """
        grads = self.grads(params)
        if not grads or len(grads) < params.bit_count() or any(type(g) is not Tensor or g.is_meta for g in grads):
            return None
        with torch.no_grad(), _torch.disable_current_modes():  # the learner's modes must not see these calls
            plain = [grad.detach() if grad.layout is torch.strided else grad.detach().to_dense() for grad in grads]
            norms = list(_torch.foreach_norm(plain, 1))  # the 1-norm, since squares of tiny numbers round to 0
            if len({(norm.device, norm.dtype) for norm in norms}) > 1:
                norms = [(norm != 0).to(norms[0].device, non_blocking=True) for norm in norms]
            return torch.stack(norms)

    def grads(self, params: int) -> list[Tensor]:
        """Return the existing gradients of the parameters in ``params``."""
        return [grad for number in bit_positions(params) if (grad := self._grad(number)) is not None]

    def _grad(self, number: int) -> Tensor | None:
        param = self._params[number]()
        return None if param is None or self._is_elsewhere(number) else param.grad


def _version(param: Tensor) -> int:
    try:
        return param._version
    except RuntimeError:  # a tensor created in inference mode has no version
        return 0


def _state(param: Tensor) -> tuple[int, int, int]:
    """Return (id, version, address) of ``.grad``, or _NONE for None. ``.grad.data = x`` changes only the address."""
    grad = param.grad if param.is_leaf else None
    if grad is None:
        return _NONE
    plain = type(grad) is Tensor and grad.layout is torch.strided  # sparse and fake tensors have no single address
    return id(grad), grad._version, grad.data_ptr() if plain else 0


def fetch_norms(events: list[Any]) -> None:
    """Replace tensors in events (norms, losses, target weights) with numbers, in one transfer per device and dtype."""
    waiting: defaultdict[Any, list[tuple[Any, str, Tensor]]] = defaultdict(list)
    for event in events:
        for name in ("norms", "loss", "tokens"):
            if isinstance(value := getattr(event, name, None), Tensor):
                waiting[value.device, value.dtype].append((event, name, value))
    for group in waiting.values():
        with torch.no_grad(), _torch.disable_current_modes():  # the learner's modes must not see this call
            numbers = iter(torch.cat([value.reshape(-1) for _, _, value in group]).tolist())
        for event, name, value in group:
            event_values = list(islice(numbers, value.numel()))
            setattr(event, name, event_values if name == "norms" else event_values[0])


def first_values(param: Tensor, most: int) -> Tensor:
    """Return a view of the first ``most`` values of ``param``, or of its first row if ``param`` is not contiguous."""
    row = param.detach()
    while row.dim() > 1 and not row.is_contiguous():
        row = row[0]
    return row.view(-1)[:most]
