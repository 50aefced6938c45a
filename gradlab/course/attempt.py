"""Calls that are expected to fail: a notebook shows the error in one line and goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def attempt(call: Callable[..., Any], *arguments: Any) -> None:
    """Call it, and print "no error", or the kind of the error and its first sentence.

    Only RuntimeError and ValueError are caught, the errors that PyTorch raises for a use of autograd that is wrong.
    """
    try:
        call(*arguments)
    except (RuntimeError, ValueError) as error:
        print(f"{type(error).__name__}: {str(error).split('. ')[0]}")
    else:
        print("no error")
