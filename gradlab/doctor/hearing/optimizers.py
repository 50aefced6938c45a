"""Optimizers: how they are made, step, and clear."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.optim.optimizer import Optimizer

from ..clerk import Clerk
from ..events import Added, Clear, Edit, Step
from ..patches import carefully
from ..sites import site


class Optimizers(Clerk):
    """Listens to optimizers, and to ``zero_grad`` of modules."""

    def _optimizer_init(self, original: Any) -> Any:
        def init(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            self._new(optimizer)

        return init

    @carefully
    def _new(self, optimizer: Optimizer) -> None:
        if self._mine():
            self.optimizer(optimizer, site())

    @carefully
    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if not self._mine():
            return
        index = self.optimizer(optimizer)
        pages = self._cover(optimizer)
        if self._current is not None:
            present, _, changed = self.pages.look(pages)
            self._full |= changed
            self._emit(Added(self._current, changed))
        else:
            present = self._scan(pages)
        unfinished = [step.optimizer for step in self._stepping]
        if index in unfinished:  # its last step has ended in an exception
            del self._stepping[unfinished.index(index) :]
        step = Step(site(), index, pages, present)
        if present and not present & self._full:
            step.norms = self.pages.norms(present)
        step.frozen = self.pages.frozen(pages) if not present else 0
        step.scaler, step.backward = self._in_scaler > 0, self._current is not None
        step.moved = self._weights.get(index, written := _written(optimizer)) != written
        self._stepping.append(step)
        self._steps += 1
        self._updated()
        self._emit(step)

    @carefully
    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if self._mine() and self._stepping:
            step = self._stepping[-1]
            if (args[1] if len(args) > 1 else None) is not None or kwargs.get("closure") is not None:
                self._after_closure(step)
            self._stepping.pop()
            self._weights[step.optimizer] = _written(optimizer)
            self._rest()

    def _after_closure(self, step: Step) -> None:
        """Note whether a closure that ran no backward pass has cleared or filled gradients by itself."""
        self._scan(step.pages)
        for event in reversed(self._events):
            if event is step:
                break
            step.closure = step.closure or isinstance(event, (Clear, Edit))

    def _zero_grad(self, original: Any) -> Any:
        def zero_grad(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            if self._mine():
                self._cleared(optimizer)

        return zero_grad

    def _module_zero_grad(self, original: Any) -> Any:
        def zero_grad(module: nn.Module, *args: Any, **kwargs: Any) -> None:
            original(module, *args, **kwargs)
            if self._mine():
                self._cleared(module)

        return zero_grad

    @carefully
    def _cleared(self, what: Optimizer | nn.Module) -> None:
        if isinstance(what, Optimizer):
            self.optimizer(what)
            pages = self._cover(what)
        else:
            pages = self.pages.of(what.parameters())
        self.pages.look(pages)  # what happened to them before does not matter any more
        self._full &= ~pages
        self._updated()
        self._emit(Clear(site(3), pages))


def _written(optimizer: Optimizer) -> int:
    """Return how often an optimizer's weights have been written to; the first of a group stands for it."""
    return sum(group["params"][0]._version for group in optimizer.param_groups if group["params"])
