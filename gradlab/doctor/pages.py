"""Pages: the parameters that are watched, and what became of each one's ``.grad`` since somebody last looked.

There are no hooks on the learner's tensors: to look means to compare ``.grad`` and its version with what they were.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

import torch
from torch import Tensor

_NONE = (0, -1)


class Pages:
    """Watched parameters, each with a number; a set of them is a whole number with a bit for each."""

    def __init__(self) -> None:
        """Start with none."""
        self._numbers: dict[int, int] = {}
        self._params: list[weakref.ref[Tensor]] = []
        self._seen: list[tuple[int, int]] = []
        self.versions: list[int] = []
        """Version of each parameter when it was first seen: it rises when somebody moves the weights."""

    def __len__(self) -> int:
        return len(self._params)

    def page(self, param: Tensor) -> int:
        """Return the bit of a parameter, which is watched from now on."""
        number = self._numbers.get(id(param))
        if number is None or self._params[number]() is not param:
            number = self._numbers[id(param)] = len(self._params)
            self._params.append(weakref.ref(param))
            self._seen.append(_state(param))
            self.versions.append(param._version)
        return 1 << number

    def of(self, params: Iterable[Tensor]) -> int:
        """Return the pages of some parameters; they are watched from now on."""
        pages = 0
        for param in params:
            pages |= self.page(param)
        return pages

    def known(self, params: Iterable[Tensor]) -> int:
        """Return the pages of those parameters that are watched."""
        pages = 0
        for param in params:
            number = self._numbers.get(id(param))
            if number is not None and self._params[number]() is param:
                pages |= 1 << number
        return pages

    def param(self, number: int) -> Tensor | None:
        """Return a parameter, None if it is gone."""
        return self._params[number]()

    def look(self, pages: int = -1) -> tuple[int, int, int]:
        """Return the pages that now have a gradient, those that lost theirs, and those whose gradient has changed."""
        present = lost = changed = 0
        bit = 1
        seen = self._seen
        for number, reference in enumerate(self._params):
            if pages & bit:
                param = reference()
                if param is None:  # gone, and its gradient with it: nobody has cleared anything
                    bit <<= 1
                    continue
                grad = param.grad
                before = seen[number]
                if grad is None:
                    if before is not _NONE:
                        lost |= bit
                        seen[number] = _NONE
                else:
                    present |= bit
                    key, version = id(grad), grad._version
                    if before[0] != key or before[1] != version:
                        changed |= bit
                        seen[number] = (key, version)
            bit <<= 1
        return present, lost, changed

    def frozen(self, pages: int) -> int:
        """Return the pages whose parameter requires no gradient."""
        found = 0
        for number in numbers(pages):
            param = self._params[number]()
            if param is not None and not param.requires_grad:
                found |= 1 << number
        return found

    def holding(self, grads: Iterable[Tensor]) -> int:
        """Return the pages whose ``.grad`` is one of these tensors."""
        wanted = {id(grad) for grad in grads}
        return sum(
            1 << n for n in range(len(self._params)) if (grad := self._grad(n)) is not None and id(grad) in wanted
        )

    def moved(self, pages: int) -> int:
        """Return the pages whose weights were written to since they were first seen."""
        found = 0
        for number in numbers(pages):
            param = self._params[number]()
            if param is not None and param._version != self.versions[number]:
                found |= 1 << number
        return found

    def norms(self, pages: int) -> list[Tensor] | None:
        """Return the norms of the gradients on some pages, left on their device; zeros give exactly 0."""
        grads = [grad.detach() for grad in self.grads(pages)]
        if len(grads) < pages.bit_count():
            return None
        with torch.no_grad():
            plain = [grad if grad.layout is torch.strided else grad.to_dense() for grad in grads]
            return list(torch._foreach_norm(plain, 1))  # the 1-norm: squares of tiny numbers round to 0

    def grads(self, pages: int) -> list[Tensor]:
        """Return the gradients on some pages, as far as there are any."""
        return [grad for number in numbers(pages) if (grad := self._grad(number)) is not None]

    def _grad(self, number: int) -> Tensor | None:
        param = self._params[number]()
        return None if param is None else param.grad


def numbers(pages: int) -> list[int]:
    """Return the numbers of the bits that are set, lowest first."""
    found = []
    while pages:
        low = pages & -pages
        found.append(low.bit_length() - 1)
        pages ^= low
    return found


def _state(param: Tensor) -> tuple[int, int]:
    grad = param.grad if param.is_leaf else None
    return _NONE if grad is None else (id(grad), grad._version)
