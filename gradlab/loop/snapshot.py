"""A copy of all that a loop can change, to come back to when a learner's edit goes wrong."""

from __future__ import annotations

import copy
from typing import Any

from torch import nn

from ..gradients import Provenance
from .bound_program import BoundProgram
from .rng import RunRNG


class Snapshot:
    """Weights, buffers, gradients, optimizer and scaler state, random numbers and provenance at one boundary."""

    def __init__(self, model: nn.Module, loop: BoundProgram, provenance: Provenance, rng: RunRNG) -> None:
        """Copy everything; the loop goes on untouched."""
        self._model, self._loop, self._provenance, self._rng = model, loop, provenance, rng
        self._training = [(module, module.training) for module in model.modules()]
        self._frozen = [(param, param.requires_grad) for param in model.parameters()]
        self._random = rng.state()
        self._weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        self._grads = [None if p.grad is None else p.grad.detach().clone() for p in model.parameters()]
        states: dict[str, Any] = {**loop.optimizers, **loop.scalers}
        self._states: dict[str, Any] = {name: copy.deepcopy(o.state_dict()) for name, o in states.items()}
        self._histories = provenance.copy_histories()
        self.at = loop.position()

    def restore(self) -> None:
        """Put everything back, any number of times; the loop's generator is the caller's to renew."""
        self._rng.set_state(self._random)
        for module, training in self._training:
            module.training = training
        for param, requires_grad in self._frozen:
            param.requires_grad = requires_grad
        self._model.load_state_dict(self._weights)
        for param, grad in zip(self._model.parameters(), self._grads, strict=True):
            param.grad = None if grad is None else grad.clone()
        things: dict[str, Any] = {**self._loop.optimizers, **self._loop.scalers}
        for name, thing in things.items():
            thing.load_state_dict(copy.deepcopy(self._states[name]))
        self._provenance.restore_histories(copy.deepcopy(self._histories))
