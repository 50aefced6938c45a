"""The parameters that are watched: what became of each one's ``.grad``, and of its weights, since the last look.

There are no hooks on the learner's tensors: to look means to compare ``.grad`` and its version with what they were.
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
_MANY = 1024  # numbers; from then on those of parameters that are gone are given to new ones

_SMALL = 100_000  # elements
_MOST_CHOSEN = 16  # sets of parameters


class ParamIndex:
    """Watched parameters, each with a number; a set of them is a whole number with a bit for each."""

    def __init__(self, reused: Callable[[int], None]) -> None:
        """Start with none; ``reused(bit)`` is called when the bit of a parameter that is gone goes to a new one."""
        self._reused = reused
        self._numbers: dict[int, int] = {}
        self._params: list[weakref.ref[Tensor]] = []
        self._ids: list[int] = []
        self._chosen: dict[int, list[tuple[int, int, weakref.ref[Tensor]]]] = {}  # params -> those of this thread
        self._threads: dict[int, threading.Thread] = {}  # which first saw a parameter, if not the one that begins here
        self._first = threading.current_thread()
        self._free: list[int] = []
        self._many = _MANY
        self._seen: list[tuple[int, int, int]] = []
        self._asked: dict[int, tuple[int, float]] = {}
        self.versions: list[int] = []
        """Version of each parameter when it was first seen: it rises when somebody moves the weights."""
        self.with_new_grad = 0
        """Parameters that a backward pass has added to, and that were not cleared since."""
        self.expected_changes = 0
        """Parameters whose change is a clipping."""
        self.wanted_values = 0
        """Parameters whose gradients the rules would like to be looked at when a backward begins."""
        self.wanted_values_after = 0
        """Those on which zeros may come from a clearing or from a backward: looked at when it ends."""

    def __len__(self) -> int:
        return len(self._params)

    def bit(self, param: Tensor) -> int:
        """Return the bit of a parameter, which is watched from now on."""
        number = self._numbers.get(id(param))
        if number is None or self._params[number]() is not param:
            number = self._number(param)
        return 1 << number

    def _number(self, param: Tensor) -> int:
        """Return a number for a new parameter."""
        reference = weakref.ref(param)
        if not self._free and len(self._params) >= self._many:
            self._free = [number for number, known in enumerate(self._params) if known() is None]
            self._many = max(_MANY, 2 * (len(self._params) - len(self._free)))
        reused = bool(self._free)
        number = self._free.pop() if reused else len(self._params)
        if reused and self._numbers.get(self._ids[number]) == number:
            del self._numbers[self._ids[number]]
        at = slice(number, number + 1)  # a new one comes behind the last
        self._params[at], self._ids[at] = [reference], [id(param)]
        self._seen[at], self.versions[at] = [_state(param)], [_version(param)]
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
        """Look at other parameters from now on: another thread is watched."""
        self._chosen.clear()

    def _is_elsewhere(self, number: int) -> bool:
        """Return whether another thread trains this parameter.

        To read its ``.grad`` while that thread's backward pass writes it can crash Python (seen with PyTorch 2.13).
        """
        thread = self._threads.get(number)
        return thread is not None and thread is not threading.current_thread() and thread.is_alive()

    def bits(self, tensors: Iterable[Tensor]) -> int:
        """Return the bits of some parameters; they are watched from now on."""
        return union_bits(
            self.bit(one) for one in tensors if one.is_leaf
        )  # others, as of functional_call, have no .grad

    def known_bits(self, tensors: Iterable[Tensor]) -> int:
        """Return the bits of those parameters that are watched."""
        known = ((self._numbers.get(id(one)), one) for one in tensors)
        return union_bits(1 << number for number, one in known if number is not None and self._params[number]() is one)

    def all(self) -> int:
        """Return all parameters that are alive."""
        return sum(1 << number for number, reference in enumerate(self._params) if reference() is not None)

    def alive(self, params: int) -> list[tuple[int, Tensor]]:
        """Return those of some parameters that are not gone, each with its number."""
        return [(number, param) for number in bit_positions(params) if (param := self._params[number]()) is not None]

    def changes(self, params: int = -1) -> tuple[int, int, int]:
        """Return the parameters that have a gradient now, that have lost theirs, and whose gradient has changed."""
        present = lost = changed = 0
        for number, bit, reference in self._chosen.get(params) or self._choose(params):
            if (param := reference()) is None:  # and its gradient with it: nobody has cleared anything
                continue
            before, now = self._seen[number], _state(param)
            self._seen[number] = now
            if now is _NONE:
                lost |= 0 if before is _NONE else bit
            else:
                present |= bit
                changed |= 0 if now == before else bit
        return present, lost, changed

    def _choose(self, params: int) -> list[tuple[int, int, weakref.ref[Tensor]]]:
        """Return some parameters with their numbers and bits; kept, since the same sets are asked for again."""
        if len(self._chosen) >= _MOST_CHOSEN:
            self._chosen.clear()
        some = [(number, 1 << number, reference) for number, reference in enumerate(self._params)]
        some = [one for one in some if params & one[1] and one[2]() is not None and not self._is_elsewhere(one[0])]
        self._chosen[params] = some
        return some

    def frozen(self, params: int) -> int:
        """Return those that require no gradient."""
        return union_bits(1 << number for number, param in self.alive(params) if not param.requires_grad)

    def owning_grads(self, grads: Iterable[Tensor]) -> int:
        """Return the parameters whose ``.grad`` is one of these tensors."""
        wanted = {id(grad) for grad in grads}
        return sum(1 << n for n in range(len(self._params)) if id(self._grad(n)) in wanted)

    def weights_changed(self) -> int:
        """Return the params whose weights have changed since this was asked last, for loops without an optimizer.

        A write through ``.data`` raises no version, so small weights on a CPU are told by their norm as well.
        """
        found = 0
        for number, reference in enumerate(self._params):
            if (param := reference()) is None:
                continue
            small = param.device.type == "cpu" and param.numel() <= _SMALL and param.layout is torch.strided
            has_norm = small and (param.is_floating_point() or param.is_complex())
            state = (_version(param), float(param.detach().norm()) if has_norm else 0.0)
            if state != self._asked.get(number, state):
                found |= 1 << number
            self._asked[number] = state
        return found

    def weights_ever_written(self, params: int) -> int:
        """Return the parameters whose weights were written to since they were first seen."""
        changed = (number for number, param in self.alive(params) if _version(param) != self.versions[number])
        return union_bits(1 << number for number in changed)

    def versions_of(self, params: int) -> int:
        """Return how often some parameters have been written to, all together."""
        return sum(_version(param) for _, param in self.alive(params))

    def norms(self, params: int) -> Tensor | None:
        """Return the norms of the gradients on some params, left on their device; zeros give exactly 0, and only they.

        None for what has no values to look at, as on the device "meta", or is not known to have them.
        """
        grads = self.grads(params)
        if not grads or len(grads) < params.bit_count() or any(type(one) is not Tensor or one.is_meta for one in grads):
            return None
        with torch.no_grad(), _torch.disable_current_modes():  # the learner's own modes are not to see this
            plain = [grad.detach() if grad.layout is torch.strided else grad.detach().to_dense() for grad in grads]
            norms = list(_torch.foreach_norm(plain, 1))  # the 1-norm: squares of tiny numbers round to 0
            if len({(norm.device, norm.dtype) for norm in norms}) > 1:
                norms = [(norm != 0).to(norms[0].device, non_blocking=True) for norm in norms]
            return torch.stack(norms)

    def grads(self, params: int) -> list[Tensor]:
        """Return the gradients on some parameters, as far as there are any."""
        return [grad for number in bit_positions(params) if (grad := self._grad(number)) is not None]

    def _grad(self, number: int) -> Tensor | None:
        param = self._params[number]()
        return None if param is None or self._is_elsewhere(number) else param.grad


def _version(param: Tensor) -> int:
    try:
        return param._version
    except RuntimeError:  # made in inference mode
        return 0


def _state(param: Tensor) -> tuple[int, int, int]:
    """Return which tensor ``.grad`` is, its version, and where its values are: ``.grad.data = x`` changes only that."""
    grad = param.grad if param.is_leaf else None
    if grad is None:
        return _NONE
    plain = type(grad) is Tensor and grad.layout is torch.strided  # others (sparse, fake) have no one place
    return id(grad), grad._version, grad.data_ptr() if plain else 0


def fetch_norms(events: list[Any]) -> None:
    """Put plain numbers in the place of the norms and losses in events; one transfer a device and a type."""
    waiting: defaultdict[Any, list[tuple[Any, str, Tensor]]] = defaultdict(list)
    for event in events:
        for name in ("norms", "loss", "tokens"):
            if isinstance(value := getattr(event, name, None), Tensor):
                waiting[value.device, value.dtype].append((event, name, value))
    for group in waiting.values():
        with torch.no_grad(), _torch.disable_current_modes():  # the learner's own modes are not to see this
            numbers = iter(torch.cat([value.reshape(-1) for _, _, value in group]).tolist())
        for event, name, value in group:
            own = list(islice(numbers, value.numel()))
            setattr(event, name, own if name == "norms" else own[0])


def first_values(param: Tensor, most: int) -> Tensor:
    """Return a view of the first values, in one row where the rows do not follow one another."""
    row = param.detach()
    while row.dim() > 1 and not row.is_contiguous():
        row = row[0]
    return row.view(-1)[:most]
