"""The recorder: stands between the learner's loop and PyTorch, and writes down what happens."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.weak import WeakIdKeyDictionary

from . import graphs
from .events import (
    BY_HAND,
    NOWHERE,
    Added,
    Backward,
    Clear,
    Clip,
    Edit,
    Made,
    Mode,
    Reused,
    ScalerStep,
    ScalerUpdate,
    Schedule,
    Site,
    Step,
    Unscale,
)
from .events import Forward as ForwardEvent
from .keeping import keeper
from .lines import updates_by_hand
from .models import Models
from .pages import Pages, numbers
from .patches import Patches, carefully
from .settling import settle
from .sites import learner, outside, rank, route, site

_FIRST_FLUSH, _FLUSH = 24, 512
_NO_THREAD = 0
_MANY_OPTIMIZERS = 64
_MOST_WAITING = 8192
_SMALL = 1_000_000  # elements
_LOOKS = 12  # how often gradients that were there when a backward began are looked at


class Recorder:
    """Writes events and hands them on in batches; ``start()`` and ``stop()`` put PyTorch's names out and back."""

    def __init__(self, judge: Callable[[list[Any]], None]) -> None:
        """``judge(events)`` gets the events, in order, some hundred at a time."""
        self._judge = judge
        self._patches = Patches()
        self._handles: list[Any] = []
        self._thread = _NO_THREAD
        self.pages = Pages(self._reused_page)
        self.models = Models(self.pages)
        self.optimizers: list[weakref.ref[Optimizer]] = []
        self._last_index = 0
        self._indices: dict[int, int] = {}
        self._covers: dict[int, tuple[int, int]] = {}
        self.scaler_step: Site = NOWHERE
        """Where a scaler has stepped last."""
        self._serials: Any = WeakIdKeyDictionary()
        self._registrations: Any = WeakIdKeyDictionary()
        self._serial_count = 0
        self._losses, self._outputs = graphs.Roots(), graphs.Roots()
        self._events: list[Any] = []
        self._flush_at = _FIRST_FLUSH
        self._depth = 0  # of module calls
        self._backwards = self._retained = 0
        self._current: Backward | None = None
        self.newest: Backward | None = None
        """The pass that began last."""
        self._stepping: list[int] = []
        self._weights: dict[int, int] = {}  # optimizer -> how often its weights had been written to after its last step
        self._in_scaler = self._in_schedule = self._steps = 0
        self._last_step = 0  # autograd's number for the first node made after it
        self._scaling = False
        self._given = False
        self._full = 0  # pages that a backward pass has added to, and that were not cleared since
        self._absorbed = 0  # pages whose change is a clipping
        self._looks = _LOOKS
        self._replaced: list[Tensor] = []
        self.suspects = 0
        """Pages on which the judge would like the values to be looked at."""
        self.trouble = ""
        """What went wrong in here, "" if nothing did; then nothing is looked at any more."""

    def start(self) -> None:
        """Begin to listen, to the thread that calls this."""
        self._thread = _NO_THREAD if self.trouble else threading.get_ident()
        put = self._patches.replace
        put(torch.autograd, "_engine_run_backward", self._run_backward)
        put(torch.autograd, "_make_grads", self._make_grads)
        put(nn.Module, "__call__", self._call)
        put(nn.Module, "zero_grad", self._module_zero_grad)
        put(nn.Module, "train", self._train)
        put(Optimizer, "__init__", self._optimizer_init)
        put(Optimizer, "zero_grad", self._zero_grad)
        clipping = sys.modules["torch.nn.utils.clip_grad"]
        put(clipping, "_clip_grads_with_norm_", self._clip)
        put(clipping, "_group_tensors_by_device_and_dtype", self._clip_value)
        scaler = torch.amp.GradScaler
        put(scaler, "scale", self._scale)
        put(scaler, "unscale_", self._unscale)
        put(scaler, "step", self._scaler_step)
        put(scaler, "update", self._scaler_update)
        for kind in _with_subclasses(LRScheduler, ReduceLROnPlateau):
            # LRScheduler.step itself says whose line is to blame for a warning: no frame may come between.
            put(kind, "_update_lr" if kind is LRScheduler and hasattr(kind, "_update_lr") else "step", self._schedule)
        self._handles = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
            register_module_parameter_registration_hook(self._registered),
        ]

    def stop(self) -> None:
        """Put everything back, and hand on what is left."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._patches.undo()
        self._thread = _NO_THREAD  # whoever has kept one of our functions gets what it stands for, and no more
        self._finish()

    @carefully
    def _finish(self) -> None:
        self._scan()
        self.flush()

    def flush(self) -> None:
        """Hand on the events."""
        events, self._events = self._events, []
        settle(events)
        self._judge(events)

    def give_up(self, error: Exception) -> None:
        """Look no further, after a failure of our own; the learner's loop goes on."""
        self.trouble = f"{type(error).__name__}: {error}"
        self._thread, self._current, self._events, self._replaced = _NO_THREAD, None, [], []

    def younger(self, pages: int, optimizer: int) -> bool:
        """Was one of these parameters made after an optimizer was?"""
        params = (self.pages.param(number) for number in numbers(pages))
        return any(self._registrations.get(param, 0) > optimizer for param in params if param is not None)

    @carefully
    def _registered(self, module: nn.Module, name: str, param: Any) -> None:
        if isinstance(param, Tensor) and self._mine() and self._registrations.get(param) is None:
            self._registrations[param] = len(self.optimizers)

    def optimizer(self, optimizer: Optimizer, where: Any = NOWHERE) -> int:
        """Return the number of an optimizer, which is watched from now on."""
        index = self._indices.get(id(optimizer))
        if index is None or self.optimizers[index]() is not optimizer:
            index = self._indices[id(optimizer)] = self._index()
            self.optimizers[index : index + 1] = [weakref.ref(optimizer)]
            self._covers.pop(id(optimizer), None)  # of one that had this id before
            kind = type(optimizer)
            own = not kind.__module__.startswith("torch.optim")
            self._emit(Made(where, index, kind.__name__, self._cover(optimizer), own))
        return index

    def _index(self) -> int:
        """Return a number for an optimizer; when there have been many, that of one that is gone."""
        count = len(self.optimizers)
        if count >= _MANY_OPTIMIZERS:
            for offset in range(1, count + 1):
                index = (self._last_index + offset) % count
                if self.optimizers[index]() is None:
                    self._last_index = index
                    return index
        self._last_index = count
        return count

    @property
    def seen(self) -> int:
        """How many backward passes there were."""
        return self._backwards

    def _reused_page(self, page: int) -> None:
        self._full &= ~page
        self._absorbed &= ~page
        self.suspects &= ~page
        self._emit(Reused(page))

    def _emit(self, event: Any) -> None:
        self._events.append(event)
        if len(self._events) >= self._flush_at:
            self._rest()

    def _rest(self) -> None:
        """Hand events on when there are many, and nothing is half done."""
        waiting = len(self._events)
        half_done = self._current is not None or self._stepping or self._in_scaler
        if waiting >= self._flush_at and (not half_done or waiting >= _MOST_WAITING):
            self._flush_at = min(_FLUSH, 2 * self._flush_at)
            self.flush()

    def _mine(self) -> bool:
        """Is this the watching thread, or one of autograd's that works for it?"""
        return threading.get_ident() == self._thread or (
            self._current is not None and torch._C._current_graph_task_id() >= 0
        )

    def _cover(self, optimizer: Optimizer) -> int:
        """Return the pages of an optimizer; its groups are gone through again when their number has changed."""
        count = sum(len(group["params"]) for group in optimizer.param_groups)
        known = self._covers.get(id(optimizer))
        if known is None or known[0] != count:
            known = (count, self.pages.of(p for group in optimizer.param_groups for p in group["params"]))
            self._covers[id(optimizer)] = known
        return known[1]

    def _scan(self, pages: int = -1) -> int:
        """See what has happened to gradients outside of PyTorch's own calls; return the pages that have one."""
        present, lost, changed = self.pages.look(pages)
        if lost:
            self._full &= ~lost
            self._emit(Clear(NOWHERE, lost))
        edited = changed & ~self._absorbed
        self._absorbed &= ~changed
        if edited:
            self._emit(Edit(edited, self.pages.norms(edited)))
        return present

    # Backward ---------------------------------------------------------------------------------------------------------

    def _make_grads(self, original: Any) -> Any:
        def make_grads(outputs: Any, grads: Any, *args: Any, **kwargs: Any) -> Any:
            self._given = any(grad is not None for grad in grads)
            return original(outputs, grads, *args, **kwargs)

        return make_grads

    def _run_backward(self, original: Any) -> Any:
        def run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if not kwargs.get("accumulate_grad") or self._current is not None or not self._mine():
                return original(outputs, *args, **kwargs)
            backward = self._begin(outputs, args)
            try:
                return original(outputs, *args, **kwargs)
            except RuntimeError:
                self._failed(backward, outputs)
                raise
            finally:
                self._ended(backward)

        return run_backward

    @carefully
    def _failed(self, backward: Backward, outputs: Any) -> None:
        backward.old = any(graphs.older(one.grad_fn, self._last_step) for one in _tensors(outputs))

    @carefully
    def _ended(self, backward: Backward) -> None:
        _, _, changed = self.pages.look()
        self._full |= changed
        self._emit(Added(backward, changed))
        self._current, self._replaced = None, []
        self._rest()

    @carefully
    def _begin(self, outputs: Any, args: Any) -> Backward:
        self._backwards += 1
        present, where = self._scan(), site(3)
        if not self.optimizers:
            self._moved_by_hand(present, where)
        backward = Backward(self._backwards, where, route(sys._getframe(2)), present)
        retain, backward.create, inputs = args[1], args[2], args[3]
        backward.retain, backward.given = bool(retain) and not backward.create, self._given or bool(inputs)
        if self._stepping:
            backward.inside = self._stepping[-1]
        root = outputs[0] if isinstance(outputs[0], Tensor) else None
        node = None if root is None else root.grad_fn
        if root is not None and node is not None:
            backward.autocast = graphs.enabled_autocast(root)
            backward.mean = len(outputs) == 1 and graphs.mean(node)
            backward.scaled = self._scaling and graphs.scaled(node)
            self._look_at_graph(backward, node)
        if backward.create:  # puts new tensors into .grad: while the old ones live, no new one can pass for one of them
            self._replaced = self.pages.grads(backward.found)
        if backward.found and (self._looks or self.suspects & backward.found):
            self._looks = max(0, self._looks - 1)
            backward.values = (backward.found, self.pages.norms(backward.found))
        self.newest = self._current = backward
        self._emit(backward)
        return backward

    def _moved_by_hand(self, present: int, where: Site) -> None:
        """The learner's own lines may step: weights have moved, and their gradients are still there."""
        moved = self.pages.stirred() & present
        if moved:
            self._emit(Made(NOWHERE, BY_HAND, "your own update", moved, own=True))
            self._emit(Step(updates_by_hand(where), BY_HAND, moved, moved))

    def _look_at_graph(self, backward: Backward, node: Any) -> None:
        number = backward.number
        if number in (1, 2, 8) or number % 512 == 0:  # parameters that no module and no optimizer has told of
            leaves = graphs.leaves(node)
            self.pages.of(leaf for leaf in leaves if isinstance(leaf, nn.Parameter) or not self.optimizers)
            self.models.reach(node)
        if backward.retain:
            self._retained += 1
            if self._retained <= 16 or self._retained & (self._retained - 1) == 0:
                backward.nodes = sum(1 for _ in graphs.nodes(node))
        if number % graphs.LOOK == 0:
            backward.alive = max(self._losses.alive(number), self._outputs.alive(number))
            if backward.alive >= 6:
                backward.keeper = keeper(sys._getframe(4), number)
        self._losses.add(node, number)

    # Optimizers -------------------------------------------------------------------------------------------------------

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
        closure = (args[1] if len(args) > 1 else None) is not None or kwargs.get("closure") is not None
        if index in self._stepping:  # its last step has ended in an exception
            del self._stepping[self._stepping.index(index) :]
        step = Step(site(), index, pages, present, closure=closure)
        if present and not present & self._full and not closure:
            step.norms = self.pages.norms(present)
        step.frozen = self.pages.frozen(pages) if not present else 0
        step.scaler, step.backward = self._in_scaler > 0, self._current is not None
        step.moved = self._weights.get(index, written := _written(optimizer)) != written
        self._stepping.append(index)
        self._steps += 1
        self._last_step = torch._C._autograd._get_sequence_nr()
        self._emit(step)

    @carefully
    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if self._mine() and self._stepping:
            self._weights[self._stepping.pop()] = _written(optimizer)
            self._rest()

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
        self._emit(Clear(site(3), pages))

    # Clipping ---------------------------------------------------------------------------------------------------------

    def _clip(self, original: Any) -> Any:
        def clip(parameters: Any, max_norm: float, *args: Any, **kwargs: Any) -> None:
            params = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            if not self._mine():
                return original(params, max_norm, *args, **kwargs)
            self._clipping(params, measures=max_norm == float("inf"))
            result = original(params, max_norm, *args, **kwargs)
            self._clipped(params)
            return result

        return clip

    @carefully
    def _clipping(self, params: list[Any], *, measures: bool) -> None:
        pages = self.pages.of(p for p in params if isinstance(p, Tensor) and p.is_leaf)
        self._scan(pages)
        self._emit(Clip(site(), pages, measures=measures))

    @carefully
    def _clipped(self, params: list[Any]) -> None:
        self.pages.look(self.pages.known(params))

    def _clip_value(self, original: Any) -> Any:
        def group(lists: Any, *args: Any, **kwargs: Any) -> Any:
            if self._mine() and outside(sys._getframe(1)).f_code.co_name == "clip_grad_value_":
                self._clipping_values(lists[0])
            return original(lists, *args, **kwargs)

        return group

    @carefully
    def _clipping_values(self, grads: list[Tensor]) -> None:
        pages = self.pages.holding(grads)
        self._scan(pages)
        self._absorbed |= pages
        self._emit(Clip(site(), pages, measures=False))

    # Scalers and schedulers -------------------------------------------------------------------------------------------

    def _scale(self, original: Any) -> Any:
        def scale(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            if scaler.is_enabled() and self._mine():
                self._scaling = True
                for one in [result] if isinstance(result, Tensor) else _tensors(result):
                    graphs.mark_scaled(one)
            return result

        return scale

    def _unscale(self, original: Any) -> Any:
        def unscale_(scaler: Any, optimizer: Optimizer) -> None:
            if scaler.is_enabled() and self._mine():
                self._unscaling(optimizer)
                original(scaler, optimizer)
                self._unscaled(optimizer)
            else:
                original(scaler, optimizer)

        return unscale_

    @carefully
    def _unscaling(self, optimizer: Optimizer) -> None:
        self._scan(self._cover(optimizer))

    @carefully
    def _unscaled(self, optimizer: Optimizer) -> None:
        pages = self._cover(optimizer)
        self.pages.look(pages)
        self._emit(Unscale(pages))

    def _scaler_step(self, original: Any) -> Any:
        def step(scaler: Any, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
            if not scaler.is_enabled() or not self._mine():
                return original(scaler, optimizer, *args, **kwargs)
            before = self._steps
            self._in_scaler += 1
            try:
                self._unscaling(optimizer)
                result = original(scaler, optimizer, *args, **kwargs)
            finally:
                self._in_scaler -= 1
            self._scaler_stepped(scaler, optimizer, taken=self._steps > before)
            return result

        return step

    @carefully
    def _scaler_stepped(self, scaler: Any, optimizer: Optimizer, *, taken: bool) -> None:
        index = self.optimizer(optimizer)
        self.scaler_step = site()
        self._emit(ScalerStep(self.scaler_step, index, self._cover(optimizer), taken, id(scaler)))
        self._rest()

    def _scaler_update(self, original: Any) -> Any:
        def update(scaler: Any, *args: Any, **kwargs: Any) -> None:
            original(scaler, *args, **kwargs)
            if self._mine():
                self._emit(ScalerUpdate(id(scaler)))

        return update

    def _schedule(self, original: Any) -> Any:
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if self._in_schedule or not self._mine() or _initial(sys._getframe(1)):
                return original(scheduler, *args, **kwargs)
            self._in_schedule = True
            try:
                return original(scheduler, *args, **kwargs)
            finally:
                self._in_schedule = False
                self._scheduled(scheduler)

        return step

    @carefully
    def _scheduled(self, scheduler: Any) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        if isinstance(optimizer, Optimizer):
            self._emit(Schedule(site(), id(scheduler), self.optimizer(optimizer)))
            self._rest()

    # Modules ----------------------------------------------------------------------------------------------------------

    def _call(self, original: Any) -> Any:
        compiling = torch.compiler.is_compiling

        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if self._depth or compiling() or not self._mine():
                return original(module, *args, **kwargs)
            self._depth = 1
            try:
                self._emit_forward(module, args)
                result = original(module, *args, **kwargs)
                if isinstance(result, Tensor) and result.grad_fn is not None:
                    self._outputs.add(result.grad_fn, self._backwards)
                return result
            finally:
                self._depth = 0

        return call

    @carefully
    def _emit_forward(self, module: nn.Module, args: Any) -> None:
        model = self.models.see(module)
        if model.pages or model.sensitive:
            where = outside(sys._getframe(1))
            frame = learner(where)
            place = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else NOWHERE
            grad = torch.is_grad_enabled()
            moody, calm = model.moods()
            first = self._serial(args[0] if args else None, same_values=not grad and bool(moody))
            caller = frame.f_code.co_name if frame is not None else ""
            again = rank(where.f_code.co_filename) == 0
            self._emit(
                ForwardEvent(
                    place, id(module), module.training, grad, moody, calm, first, caller, model.pages, again=again
                )
            )

    def _serial(self, argument: Any, *, same_values: bool) -> int:
        """Return a number for a tensor, or for its values; ids are given out again when a tensor is gone."""
        if same_values and isinstance(argument, Tensor) and argument.device.type == "cpu" and argument.numel() < _SMALL:
            return hash((argument.shape, float(argument.detach().double().abs().sum())))
        number = self._serials.get(argument) if isinstance(argument, Tensor) else None
        if number is None:
            self._serial_count += 1
            number = self._serial_count
            if isinstance(argument, Tensor):
                self._serials[argument] = number
        return number

    def _train(self, original: Any) -> Any:
        def train(module: nn.Module, mode: bool = True) -> nn.Module:
            if self._depth or not self._mine():
                return original(module, mode)
            self._depth = 1  # the modules inside are not called by the learner
            try:
                return original(module, mode)
            finally:
                self._depth = 0
                self._turned(module, mode)

        return train

    @carefully
    def _turned(self, module: nn.Module, mode: bool) -> None:
        self._emit(Mode(site(), id(module), bool(mode)))


def _initial(frame: FrameType | None) -> bool:
    """Is a scheduler's step the one that it takes when it is made?"""
    for _ in range(4):
        if frame is None or rank(frame.f_code.co_filename):
            break
        if frame.f_code.co_name in ("_initial_step", "__init__"):
            return True
        frame = frame.f_back
    return False


def _written(optimizer: Optimizer) -> int:
    """Return how often an optimizer's weights have been written to, all together."""
    return sum(param._version for group in optimizer.param_groups for param in group["params"])


def _with_subclasses(*kinds: type) -> set[type]:
    found = set(kinds)
    for kind in kinds:
        found |= _with_subclasses(*kind.__subclasses__()) if kind.__subclasses__() else set()
    return found


def _tensors(values: Iterable[Any]) -> list[Tensor]:
    return [value for value in values if isinstance(value, Tensor)]
