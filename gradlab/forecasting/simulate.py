"""Simulate: a recipe's own text run on fake tensors under a ledger, up to and through its second update.

The first update makes the optimizer's state and leaves behind what a loop leaves behind: ``.grad``, ``output``,
``loss``. The second one is the steady state, and the one that is measured. A model that cannot be run without values is
refused in one sentence that names the line and says what to do.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import GeneratorType
from typing import Any

import torch
from torch import Tensor, nn

from .. import _torch
from .._frames import Owner, code_owner, raised_at
from .._process import RandomStream, learner_threads
from ..loop import Program
from ..memory import Ledger, LineTracker, MemoryPoint
from .checkpointing import checkpointing, repeated_blocks
from .cuda_rules import cuda_rules
from .fake_mode import FakeTensors, StandIns, left_as_it_was
from .optimizers import factory_of
from .training import WEIGHT_TYPES, Training
from .workload import Spread, SpreadModel, Workload, map_tensors, models_of, tensors_in


class ForecastError(ValueError):
    """A model that cannot be run on tensors without memory; the message says where and what to do."""


@contextmanager
def quiet_fake_tensor_log() -> Iterator[None]:
    """Keep PyTorch from logging, on this thread, what the ForecastError is about to say."""
    logger, thread = logging.getLogger("torch._subclasses.fake_tensor"), threading.get_ident()
    logger.addFilter(of_others := lambda record: record.thread != thread)
    try:
        yield
    finally:
        logger.removeFilter(of_others)


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
    place = _place(program, error)
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


def _place(program: Program, error: Exception) -> str:
    """Name the innermost line of the model's own code that the error came through."""
    text = program.filename
    found = raised_at(error, lambda file: file != text and code_owner(file) is not Owner.OURS)
    if found is None:
        return ""
    code, line = found
    return f", in {code.co_name}() at {Path(code.co_filename).name}:{line}"


LARGE = 100_000_000
"""Parameters from which on a long window is cut short."""
MICRO_BATCHES = 3
"""Micro-batches of a large model's window that are run; the others would repeat the third."""
_AMP = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class SimulatedUpdate:
    """What the ledger said of the measured update."""

    peak: int
    at_peak: dict[str, int]
    peak_at: MemoryPoint
    timeline: list[MemoryPoint]
    parameters: int
    micro_batches: int
    """How many of the window were run."""
    largest_block: int = 0
    """Bytes of the parameters of the largest repeated block, or of the whole model where none repeats."""
    recurrent: bool = False
    """Whether the model has layers such as nn.LSTM."""


def simulate(
    workload: Workload,
    training: Training,
    *,
    skip_first_update: bool | None = None,
    on_calls: Callable[[int, int], None] | None = None,
) -> SimulatedUpdate:
    """Run a workload as the training says; on device "cuda" by CUDA's rules, and as on a CPU otherwise.

    ``skip_first_update`` puts the state that a first update leaves behind in place instead of running it; that is
    known for the published sizes with an optimizer of a Recipe only, where it is the default. Raises ForecastError.
    """
    program = Program(training.source() if workload.update is None else training.update_source())
    known = workload.size is not None and factory_of(training.optimizer) is None and training.optimizer != "fused"
    skip_first_update = known if skip_first_update is None else skip_first_update
    on_cuda = training.device == "cuda"
    if workload.compiled and (threads := learner_threads()):  # its stance counts for all threads
        raise ForecastError(
            f"forecast: {workload.name} went through torch.compile, which can be switched off only for all threads at "
            f"once, and {', '.join(map(repr, threads))} runs code of yours. Forecast the model before torch.compile, "
            "or when the thread has ended"
        )
    with ExitStack() as stack:
        stack.enter_context(RandomStream())
        stack.enter_context(torch.enable_grad())
        stack.enter_context(quiet_fake_tensor_log())
        stack.enter_context(cuda_rules() if on_cuda else nullcontext())
        stack.enter_context(nullcontext() if workload.own is None else left_as_it_was(workload.own))
        stack.enter_context(torch.compiler.set_stance("force_eager") if workload.compiled else nullcontext())
        mode = FakeTensors(cuda=on_cuda)
        with as_forecast_error(workload.name, program):
            model = workload.build(mode)
            if training.dtype is not None:
                _to_dtype(model, WEIGHT_TYPES[training.dtype], mode)
        stack.enter_context(checkpointing(model) if training.checkpoint else nullcontext())
        stack.enter_context(nullcontext() if workload.size is not None else StandIns(mode))
        mode.on_step = partial(_check_step, workload.name)
        with as_forecast_error(workload.name, program):
            simulation = _Simulation(workload, training, program, mode, model)
            if on_calls is not None:
                expected = simulation.expected(skip_first_update=skip_first_update)
                mode.on_calls = lambda calls: on_calls(calls, expected)
            return simulation.measured(skip_first_update=skip_first_update)


def from_one(points: Sequence[MemoryPoint]) -> list[MemoryPoint]:
    """Count the statements of a timeline from 1."""
    return [replace(point, number=point.number - points[0].number + 1) for point in points]


def _to_dtype(model: nn.Module, dtype: torch.dtype, mode: FakeTensors) -> None:
    """Give the floating-point parameters and buffers of a fake model another type; tied ones stay tied."""
    made: dict[int, Tensor] = {}

    def converted(tensor: Tensor) -> Tensor:
        if id(tensor) not in made:
            with mode, torch.no_grad():
                new = tensor.to(dtype)
                is_parameter = isinstance(tensor, nn.Parameter)
                made[id(tensor)] = nn.Parameter(new, tensor.requires_grad) if is_parameter else new
            mode.exchange(tensor, made[id(tensor)])
        return made[id(tensor)]

    for module in model.modules():
        tables: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
        for table in tables:
            for name, tensor in table.items():
                if tensor is not None and tensor.is_floating_point():
                    table[name] = converted(tensor)


def _check_step(name: str, optimizer: torch.optim.Optimizer) -> None:
    """Refuse an optimizer of the reader's that lies outside of the copy."""
    if not all(isinstance(p, _torch.FakeTensor) for group in optimizer.param_groups for p in group["params"]):
        raise ForecastError(
            f"forecast: {name} steps an optimizer of yours ({type(optimizer).__name__}), made outside of the forecast "
            "from your own parameters, which it must not touch. Make it in setup, a function (model) -> what the "
            "update needs: forecast(update, model=model, setup=setup, batch=batch)"
        )


class _Simulation:
    """The names that the loop sees, all of them fake."""

    def __init__(
        self, workload: Workload, training: Training, program: Program, mode: FakeTensors, model: nn.Module
    ) -> None:
        self.workload, self.training, self.program, self.mode, self.model = workload, training, program, mode, model
        window = training.recipe.accumulate
        batches, epochs = workload.batches(mode, window)
        if training.dtype is not None and workload.size is None:
            batches = map_tensors(self._narrowed, batches)
        self.inputs = tensors_in(batches)
        self.parameters = sum(p.numel() for p in model.parameters())
        self.run = min(window, MICRO_BATCHES) if self.parameters >= LARGE else window
        cut = self.run < window
        self.namespace: dict[str, Any] = {
            "torch": torch,
            "model": model if workload.update is None else models_of(model),
            "loss_fn": workload.loss_fn,
            "batches": batches[: self.run] if cut else batches,
            "device": "cpu",
            "epochs": 2 if cut else epochs,
            "update": workload.update,
            "setup": workload.setup or (lambda model: None),
            "make_optimizer": factory_of(training.optimizer),
        }
        if workload.update is None and not all(isinstance(t, Tensor) for pair in batches for t in pair):
            self._spread()

    def _narrowed(self, tensor: Tensor) -> Tensor:
        assert self.training.dtype is not None
        with self.mode:
            return tensor.to(WEIGHT_TYPES[self.training.dtype]) if tensor.dtype == torch.float32 else tensor

    def _spread(self) -> None:
        """Let the loop's text, which knows one x and one y, run with batches that are made of more."""
        loss_fn = self.workload.loss_fn
        assert loss_fn is not None

        def loss(output: Any, y: Any) -> Tensor:
            return loss_fn(output, y.value if isinstance(y, Spread) else y)

        batches = [[t if isinstance(t, Tensor) else Spread(t) for t in pair] for pair in self.namespace["batches"]]
        self.namespace.update(model=SpreadModel(self.model), loss_fn=loss, batches=batches)

    def expected(self, *, skip_first_update: bool) -> int:
        """Guess how many operations there are to run, from what a transformer takes for each parameter tensor."""
        tensors = sum(1 for _ in self.model.parameters())
        return tensors * (20 * self.run * (1 if skip_first_update else 2) + 10)

    def measured(self, *, skip_first_update: bool) -> SimulatedUpdate:
        """Run the loop's own set-up and updates, and return what the ledger saw of the last one."""
        with self.mode:
            for _ in self.program.setup(self.namespace):
                pass
            optimizer, scaler = self.namespace.get("optimizer"), self.namespace.get("scaler")
            if self.training.at_once and optimizer is not None:
                for group in optimizer.param_groups:
                    group["foreach"] = True
            ledger = Ledger(self.model, [] if optimizer is None else [optimizer], self.inputs)
            ledger.place = lambda: ""  # statements are named as they end
            with ledger:
                if skip_first_update:
                    assert optimizer is not None
                    self._put_state_in_place(optimizer, scaler)
                self._run(ledger, updates=1 if skip_first_update else 2)
        if any(p.grad is not None and p.grad.is_sparse for p in self.model.parameters()):
            raise ForecastError(
                f"forecast: {self.workload.name} has sparse gradients, whose size depends on values. A forecast knows "
                "shapes and no values: use nn.Embedding(sparse=False)"
            )
        points = [point for point in ledger.timeline if point.statement]
        *timeline, peak_at = from_one([*points, ledger.peak_at])
        largest = max(map(_bytes, repeated_blocks(self.model).values()), default=_bytes(self.model))
        recurrent = any(isinstance(module, (nn.RNNBase, nn.RNNCellBase)) for module in self.model.modules())
        at = ledger.peak, ledger.at_peak, peak_at, timeline
        return SimulatedUpdate(*at, self.parameters, self.run, largest, recurrent)

    def _run(self, ledger: Ledger, updates: int) -> None:
        statements = self.program.statements
        if updates == 1:
            ledger.forget()
        loop = self.program.loop(self.namespace)
        if self.workload.update is not None:  # its own lines are the statements
            assert isinstance(loop, GeneratorType)
            lines = LineTracker()
            lines.set_root_frame(loop.gi_frame)
            ledger.place = lines.now
        for index in loop:
            if self.workload.update is None:
                ledger.mark(statements[index].label)
            if index == len(statements) - 1:  # the loop's last line completes an update
                updates -= 1
                if updates == 0:
                    break
                if updates == 1:
                    ledger.forget()
        loop.close()

    def _put_state_in_place(self, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler | None) -> None:
        """Leave behind what a first update does: both states, ``.grad``, ``output`` and ``loss``."""
        assert self.workload.size is not None
        for parameter in self.model.parameters():
            parameter.grad = torch.empty_like(parameter)
        at_once = [group["foreach"] for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["foreach"] = True  # the quickest way to the same state
        loss = torch.empty(())
        if scaler is None:
            optimizer.step()
        else:
            scaler.scale(loss)
            scaler.step(optimizer)
            scaler.update()
        for group, before in zip(optimizer.param_groups, at_once, strict=True):
            group["foreach"] = before
        if self.training.zero_grad_at == "after step" and self.training.recipe.zero_grad:
            optimizer.zero_grad(set_to_none=self.training.recipe.set_to_none)
        tokens, weights = self.inputs[0], next(self.model.parameters()).dtype
        output = torch.empty(
            *tokens.shape, self.workload.size.vocabulary, dtype=_AMP.get(self.training.recipe.amp, weights)
        )
        self.namespace.update(output=output, loss=loss)


def _bytes(module: nn.Module) -> int:
    return sum(p.numel() * p.element_size() for p in module.parameters())
