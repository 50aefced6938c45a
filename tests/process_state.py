"""The state of PyTorch and Python that belongs to the whole process, to compare before and after."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from gradlab._process import lock


def process_state() -> dict[str, Any]:
    """Return the current hooks, modes, defaults and replaced functions."""
    state: dict[str, Any] = {
        f"{module.__name__}.{name}": list(value)
        for module in (torch.nn.modules.module, sys.modules["torch.optim.optimizer"])
        for name, value in vars(module).items()
        if name.startswith("_global_") and isinstance(value, dict)
    }
    for device in ("cpu", "cuda"):
        state[f"autocast {device}"] = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    return state | {
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "grad mode": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "anomaly": torch.is_anomaly_enabled(),
        "function modes": len(_get_current_function_mode_stack()),
        "dispatch modes": len(_get_current_dispatch_mode_stack()),
        "functions": [
            torch.Tensor.backward,
            torch.autograd.backward,
            torch.optim.Optimizer.zero_grad,
        ],
        "interrupt": signal.getsignal(signal.SIGINT),
        "alarm": signal.getsignal(getattr(signal, "SIGALRM", signal.SIGINT)),
        "recursion limit": sys.getrecursionlimit(),
        "lock": lock._is_owned(),  # type: ignore[attr-defined]
        "random numbers": torch.get_rng_state().tolist(),
    }


@contextmanager
def nothing_left() -> Iterator[None]:
    """Assert that the state of the process is unchanged."""
    before = process_state()
    yield
    after = process_state()
    assert {name: value for name, value in after.items() if value != before[name]} == {}
