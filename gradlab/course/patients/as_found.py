"""A learner's own model and optimizer are left as they were before a run."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def left_as_found(names: Iterable[Any]) -> Iterator[None]:
    """Put back at the end: weights, buffers, ``.grad``, modes and parts of modules, and the state of all others."""
    given = {id(one): one for one in names}.values()
    modules = [one for one in given if isinstance(one, nn.Module)]
    inner = {id(part): part for module in modules for part in module.modules()}.values()
    parts = [(part, dict(part._modules), dict(part._parameters), part.training) for part in inner]
    loose = [one for one in given if isinstance(one, Tensor) and one.is_leaf]
    tensors = {id(t): t for module in modules for t in (*module.parameters(), *module.buffers())}
    tensors |= {id(t): t for t in loose}
    values = [(t, t.detach().clone(), None if t.grad is None else t.grad.detach().clone()) for t in tensors.values()]
    stateful = [one for one in given if not isinstance(one, (nn.Module, type)) and hasattr(one, "load_state_dict")]
    states = [(one, copy.deepcopy(one.state_dict())) for one in stateful]
    groups = [(one, [dict(group) for group in one.param_groups]) for one in stateful if _is_optimizer(one)]
    try:
        yield
    finally:
        for part, modules_of, parameters_of, training in parts:
            part._modules.clear()
            part._modules.update(modules_of)
            part._parameters.clear()
            part._parameters.update(parameters_of)
            part.training = training
        with torch.no_grad():
            for tensor, value, grad in values:
                tensor.data = tensor.data if tensor.shape == value.shape else value
                if not torch.equal(tensor, value):  # nothing is written where nothing has changed
                    tensor.copy_(value)
                tensor.grad = grad
        for one, kept in groups:
            one.param_groups[:] = kept
        for one, state in states:
            one.load_state_dict(state)


def _is_optimizer(one: object) -> bool:
    return isinstance(one, torch.optim.Optimizer)
