"""Refusals: why a model cannot be forecast, in one sentence that names the line and says what to do."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from .. import _torch
from ..loop import Program


class ForecastError(ValueError):
    """A model that cannot be run on tensors without memory; the message says where and what to do."""


@contextmanager
def quiet_fake_tensor_log() -> Iterator[None]:
    """Keep PyTorch from logging what the ForecastError is about to say."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


@contextmanager
def as_forecast_error(name: str, program: Program) -> Iterator[None]:
    """Turn any error of the block into a ForecastError about the model of that name."""
    try:
        yield
    except ForecastError:
        raise
    except Exception as error:
        raise _explained(name, program, error) from error


def _explained(name: str, program: Program, error: Exception) -> ForecastError:
    """Say which line failed, why, and what to do."""
    where = program.explain(error)
    place = _place(error)
    if isinstance(error, _torch.DataDependentOutputException):
        said = f"asks for a value ({error.func}: .item(), float(), or an if on a tensor)"
        advice = "A forecast knows shapes and no values: leave it out, or decide with torch.where"
    elif isinstance(error, _torch.DynamicOutputShapeException):
        said = f"has a shape that depends on values ({error.func}: nonzero, unique, or a mask as an index)"
        advice = "A forecast knows shapes and no values: use torch.where or a fixed number of entries"
    else:
        said = f"fails without memory: {where.problem}"
        cuda = "cuda" in where.problem.lower()
        advice = "A forecast runs on the CPU's kernels: leave out .cuda() and .to() a GPU. " if cuda else ""
        advice += (
            "Check that model(x) and loss_fn(output, y) run on a real batch of this shape, all of it on one device"
        )
    line = f" at `{program.text.splitlines()[where.line - 1].strip()}`" if where.line else " while it is built"
    return ForecastError(f"forecast: {name} {said}{line}{place}. {advice}")


def _place(error: Exception) -> str:
    """Name the innermost line of the model's own code that the error came through."""
    ours = (str(Path(torch.__file__).parent), str(Path(__file__).parent.parent), "<")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(ours)]
    if not frames:
        return ""
    return f", in {frames[-1].name}() at {Path(frames[-1].filename).name}:{frames[-1].lineno}"
