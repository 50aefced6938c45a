"""The optimizers that are watched, each with a number, and the parameters that it holds."""

from __future__ import annotations

import weakref

from torch.optim.optimizer import Optimizer

from .param_index import ParamIndex

_MANY = 64  # numbers; from then on those of optimizers that are gone are given to new ones


class WatchedOptimizer:
    """An optimizer that is watched."""

    __slots__ = ("count", "named", "number", "params", "reference", "written")

    def __init__(self, optimizer: Optimizer, number: int) -> None:
        self.reference, self.number = weakref.ref(optimizer), number
        self.params = self.named = 0
        """Its parameters, and what they were when names were looked for."""
        self.count = self.written = -1
        """The number of its parameters, and how often their weights had been written to after its last step."""


class OptimizerIndex:
    """All optimizers, by identity and by number."""

    def __init__(self, index: ParamIndex) -> None:
        self._index = index
        self._last = 0
        self._known: dict[int, WatchedOptimizer] = {}
        self._references: list[weakref.ref[Optimizer]] = []

    def __len__(self) -> int:
        return len(self._references)

    def __getitem__(self, number: int) -> Optimizer | None:
        """Return an optimizer by its number; None if it is gone."""
        return self._references[number]()

    def numbers(self) -> dict[int, int]:
        """Return the numbers of those that are alive, by their ids."""
        return {id(one): number for number, known in enumerate(self._references) if (one := known()) is not None}

    def find(self, optimizer: Optimizer) -> WatchedOptimizer | None:
        """Return an optimizer that is known, with its parameters as they are now; None for a new one."""
        one = self._known.get(id(optimizer))
        if one is None or one.reference() is not optimizer:
            return None
        groups = optimizer.param_groups
        count = len(groups[0]["params"]) if len(groups) == 1 else sum([len(group["params"]) for group in groups])
        if count != one.count:
            one.count, one.params = count, self._index.bits(p for group in groups for p in group["params"])
        return one

    def add(self, optimizer: Optimizer) -> WatchedOptimizer:
        """Give a new optimizer a number; when there have been many, that of one that is gone."""
        number = self._free_number()
        if len(self._known) > 2 * _MANY:
            self._known = {key: one for key, one in self._known.items() if one.reference() is not None}
        self._references[number : number + 1] = [weakref.ref(optimizer)]
        self._known[id(optimizer)] = WatchedOptimizer(optimizer, number)
        one = self.find(optimizer)
        assert one is not None
        return one

    def _free_number(self) -> int:
        count = len(self._references)
        numbers = [(self._last + offset) % count for offset in range(1, count + 1)] if count >= _MANY else []
        self._last = next((number for number in numbers if self._references[number]() is None), count)
        return self._last
