"""Simulation of two updates of a recipe's loop on fake tensors, whose bytes a Ledger counts.

The first update creates the optimizer's state, ``.grad``, ``output`` and ``loss``; the second is measured.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import _torch
from .._frames import Owner, code_owner, raised_at
from .._process import RandomStream
from ..loop import Program
from ..memory import Ledger, MemoryPoint
from .checkpointing import checkpoint_blocks, repeated_blocks
from .cuda_rules import cuda_rules
from .fake_mode import FakeTensors, ReplaceRealTensors, restoring_module
from .training import WEIGHT_TYPES, AdamW8bit, Training
from .workload import Workload, as_movable, map_tensors, tensors_in

LARGE = 100_000_000
"""From this number of parameters on, only three micro-batches of a window are run; the others repeat the third."""
_MICRO_BATCHES = 3


class ForecastError(ValueError):
    """Raised if a model cannot be run on tensors without memory; the message names the line and the remedy."""


@dataclass(frozen=True)
class SimulatedUpdate:
    """The memory of the second simulated update, as a Ledger counts it, and some facts about the model."""

    peak_at: MemoryPoint
    timeline: list[MemoryPoint]
    parameters: int
    largest_block: int = 0
    """Bytes of the parameters in the largest repeated block, or in the whole model if no block repeats."""
    recurrent: bool = False
    """Whether the model has recurrent layers, such as nn.LSTM."""


def simulate(workload: Workload, training: Training) -> SimulatedUpdate:
    """Return a workload's second update, simulated by the rules of ``training.device``; raises ForecastError."""
    program = Program(training.source(workload.samples[0]))
    on_cuda = training.device == "cuda"
    rules = cuda_rules() if on_cuda else nullcontext()
    restoring = nullcontext() if workload.reader_model is None else restoring_module(workload.reader_model)
    with RandomStream(), torch.enable_grad(), _quiet_fake_tensor_log(), rules, restoring:
        mode = FakeTensors(cuda=on_cuda)
        with _as_forecast_error(workload.name, program):
            model = workload.build(mode)
            if training.dtype is not None:
                mode.convert(model, WEIGHT_TYPES[training.dtype])
        if training.checkpoint:
            checkpoint_blocks(model)
        replacing = nullcontext() if workload.size is not None else ReplaceRealTensors(mode)
        with replacing, _as_forecast_error(workload.name, program):
            return _run(workload, training, program, mode, model)


def number_from_one(points: Sequence[MemoryPoint]) -> list[MemoryPoint]:
    """Return the points of a timeline with their statements numbered from 1."""
    return [replace(point, number=point.number - points[0].number + 1) for point in points]


def _run(
    workload: Workload, training: Training, program: Program, mode: FakeTensors, model: nn.Module
) -> SimulatedUpdate:
    parameters = sum(p.numel() for p in model.parameters())
    namespace, inputs = _namespace(workload, training, mode, model, large=parameters >= LARGE)
    with mode:
        for _ in program.setup(namespace):
            pass
        optimizer = namespace["optimizer"]
        for group in optimizer.param_groups if training.uses_foreach else ():
            if group["foreach"] is None:
                group["foreach"] = True
        ledger = Ledger(model, [optimizer], inputs)
        ledger.current_statement = lambda: ""  # ``ledger.mark`` names a statement when it ends
        with ledger:
            _run_updates(program, namespace, ledger)
    if any(p.grad is not None and p.grad.is_sparse for p in model.parameters()):
        raise ForecastError(
            f"forecast: {workload.name} has sparse gradients, whose size depends on values. A forecast has shapes but "
            "no values: use nn.Embedding(sparse=False)"
        )
    *timeline, peak_at = number_from_one([*(p for p in ledger.timeline if p.statement), ledger.peak_at])
    block = max(map(_bytes, repeated_blocks(model).values()), default=_bytes(model))
    recurrent = any(isinstance(module, (nn.RNNBase, nn.RNNCellBase)) for module in model.modules())
    return SimulatedUpdate(peak_at, timeline, parameters, block, recurrent)


def _namespace(
    workload: Workload, training: Training, mode: FakeTensors, model: nn.Module, *, large: bool
) -> tuple[dict[str, Any], list[Tensor]]:
    """Return the loop's global variables, whose tensors are fake, and the list of the batches' tensors."""
    window = training.recipe.accumulate
    batches, epochs = workload.batches(mode, window)
    if training.dtype is not None and workload.size is None:
        narrow = WEIGHT_TYPES[training.dtype]
        with mode:
            batches = map_tensors(lambda t: t.to(narrow) if t.dtype == torch.float32 else t, batches)
    inputs = tensors_in(batches)
    if large and window > _MICRO_BATCHES:
        batches, epochs = batches[:_MICRO_BATCHES], 2
    batches = [as_movable(batch) for batch in batches]
    names = {"model": model, "loss_fn": workload.loss_fn, "batches": batches, "device": "cpu", "epochs": epochs}
    return {"torch": torch, "AdamW8bit": AdamW8bit, **names}, inputs


def _run_updates(program: Program, namespace: dict[str, Any], ledger: Ledger) -> None:
    statements, loop = program.statements, program.loop(namespace)
    updates = 0
    for index in loop:
        ledger.mark(statements[index].label)
        if index == len(statements) - 1:  # the loop's last statement completes an update
            updates += 1
            if updates == 2:
                break
            ledger.forget()
    loop.close()


def _bytes(module: nn.Module) -> int:
    return sum(p.numel() * p.element_size() for p in module.parameters())


@contextmanager
def _quiet_fake_tensor_log() -> Iterator[None]:
    """Keep PyTorch from logging this thread's errors about fake tensors, which a ForecastError reports."""
    logger, thread = logging.getLogger("torch._subclasses.fake_tensor"), threading.get_ident()
    logger.addFilter(of_others := lambda record: record.thread != thread)
    try:
        yield
    finally:
        logger.removeFilter(of_others)


@contextmanager
def _as_forecast_error(name: str, program: Program) -> Iterator[None]:
    """Turn any error in the block into a ForecastError that names the model's line, the reason and the remedy."""
    try:
        yield
    except ForecastError:
        raise
    except Exception as error:
        loop_error = program.explain(error)
        advice = "A forecast uses fake tensors, which have shapes but no values: "
        if isinstance(error, _torch.DataDependentOutputException):
            problem = f"reads a value ({error.func}: .item(), float(), or an if on a tensor)"
            advice += "remove this operation, or decide with torch.where"
        elif isinstance(error, _torch.DynamicOutputShapeException):
            problem = f"computes a shape that depends on values ({error.func}: nonzero, unique, or a mask as an index)"
            advice += "use torch.where or a fixed number of entries"
        elif "UninitializedParameter" in str(error):
            problem = "has a lazy layer, such as nn.LazyLinear, whose weights have no shape before the first batch"
            advice = "A forecast needs the shape of each weight: give the layer its number of inputs, as for nn.Linear"
        else:
            problem = f"fails on fake tensors, which have no data: {loop_error.problem}"
            cuda = "cuda" in loop_error.problem.lower()
            advice = "A forecast runs on CPU tensors: remove .cuda() and .to('cuda'). " if cuda else ""
            calls = re.findall(r"^ *(?:output|loss) = (.*)$", program.text, re.MULTILINE)
            what = " and ".join(calls) or "this loop"
            advice += f"Check that {what} run on a real batch of this shape, all of it on one device"
        lines = program.text.splitlines()
        where = f" at `{lines[loop_error.line - 1].strip()}`" if loop_error.line else " while it is built"
        raised = raised_at(error, lambda file: file != program.filename and code_owner(file) is not Owner.OURS)
        if raised is not None:
            code, line = raised
            where += f", in {code.co_name}() at {Path(code.co_filename).name}:{line}"
        raise ForecastError(f"forecast: {name} {problem}{where}. {advice}") from error
