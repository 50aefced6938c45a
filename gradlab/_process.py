"""What belongs to the whole process (one lock, torch's random numbers and modes, Python's parser), and how to put back.

PyTorch's random generators, the hooks on all modules and the functions that a Ledger or a doctor replaces exist once,
however many Runs and widgets there are. Whoever changes them holds the lock, so that a Lab that plays on one thread and
a cell that trains on another do not draw each other's random numbers.
"""

from __future__ import annotations

import ast
import contextvars
import copy
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from . import _torch
from ._frames import Owner, code_owner

if TYPE_CHECKING:
    import torch
    from torch import nn

lock = threading.RLock()
"""Held by a call that drives or shows a widget, which a thread of the learner's own may make; it may be taken again."""
_parser_lock = threading.Lock()


_THREADING = threading.Thread.run.__code__.co_filename
_POOLS = (str(Path("concurrent/futures/thread.py")), str(Path("multiprocessing/pool.py")))


def learner_threads() -> list[str]:
    """Return the names of the other threads that run code of the learner's own now, or have just begun to.

    A thread of Jupyter's, of a progress bar or of a pool that waits for work has no frame of theirs.
    """
    return [name for name, is_running in _learner_threads() if is_running]


def others_may_draw() -> bool:
    """Return whether another thread may draw random numbers while this one computes.

    Beside the main thread: one with the learner's own code, also one that waits to be handed some. Beside any other:
    the main thread, where a cell may begin at any moment.
    """
    return threading.current_thread() is not threading.main_thread() or any(True for _ in _learner_threads())


def _learner_threads() -> Iterator[tuple[str, bool]]:
    """Yield the name of each other thread for code of the learner's own, and whether it runs some now."""
    stacks, user = sys._current_frames(), Owner.USER
    del stacks[threading.get_ident()]
    threads = {thread.ident: thread for thread in threading.enumerate()} if stacks else {}
    for ident, innermost in stacks.items():
        thread, outermost = threads.get(ident), ""
        name = str(ident) if thread is None else thread.name
        frame: FrameType | None = innermost
        while frame is not None:
            file = frame.f_code.co_filename
            if code_owner(file) is user:
                yield name, True
                break
            outermost = outermost if file == _THREADING else file
            frame = frame.f_back
        else:
            if not outermost:  # it has just begun, or is a timer
                function = getattr(thread, "_target", None) or getattr(thread, "run", None)
                code = getattr(function, "__code__", None)
                yield name, code is None or code_owner(code.co_filename) is user
            elif outermost.endswith(_POOLS):
                yield name, False


@contextmanager
def preserving_modes(model: nn.Module) -> Iterator[None]:
    """Put back at the end which modules of a model train and which evaluate."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


@contextmanager
def preserving(things: Iterable[Any]) -> Iterator[None]:
    """Put models, optimizers and tensors back at the end as ``copy_state`` finds them now."""
    put_back = copy_state(things)
    try:
        yield
    finally:
        put_back()


def copy_state(things: Iterable[Any]) -> Callable[[], None]:
    """Copy the state of models, tensors, optimizers and whatever else has a ``state_dict``; return what puts it back.

    Of a model: its parts, weights, buffers, ``.grad``, and what trains. It may be put back any number of times.
    """
    import torch
    from torch import Tensor, nn

    given = {id(one): one for one in things}.values()
    modules = [part for one in given if isinstance(one, nn.Module) for part in one.modules()]
    owned: list[tuple[nn.Module, list[dict[str, Any]]]] = [
        (part, [dict(of) for of in (part._modules, part._parameters, part._buffers)]) for part in modules
    ]
    modes = [(part, part.training) for part in modules]
    tensors = {id(t): t for part in modules for t in (*part.parameters(), *part.buffers())}
    tensors |= {id(one): one for one in given if isinstance(one, Tensor) and one.is_leaf}
    values = [(t, t.detach().clone(), t.requires_grad, _copy_grad(t.grad)) for t in tensors.values()]
    stateful = [one for one in given if not isinstance(one, (nn.Module, type)) and hasattr(one, "load_state_dict")]
    states = [(one, copy.deepcopy(one.state_dict())) for one in stateful]
    groups = [
        (one, [dict(group) for group in one.param_groups]) for one in stateful if isinstance(one, torch.optim.Optimizer)
    ]

    def put_back() -> None:
        for part, before in owned:
            held: tuple[Any, ...] = (part._modules, part._parameters, part._buffers)
            for now, then in zip(held, before, strict=True):
                now.clear()
                now.update(then)
        for part, training in modes:
            part.training = training
        with torch.no_grad():
            for tensor, value, requires_grad, grad in values:
                tensor.data = tensor.data if tensor.shape == value.shape else value.clone()
                if not torch.equal(tensor, value):  # nothing is written where nothing has changed
                    tensor.copy_(value)
                if tensor.requires_grad != requires_grad:
                    tensor.requires_grad = requires_grad
                tensor.grad = _copy_grad(grad)
        for one, kept in groups:
            one.param_groups[:] = [dict(group) for group in kept]
        for one, state in states:
            one.load_state_dict(copy.deepcopy(state))

    return put_back


def _copy_grad(grad: torch.Tensor | None) -> torch.Tensor | None:
    return None if grad is None else grad.detach().clone()


_DEVICES = ("cpu", "cuda")


@contextmanager
def preserving_torch_state() -> Iterator[None]:
    """Go in with grad mode on, and put back afterwards what is a matter of the whole kernel.

    That is: grad and inference mode, autocast, the default dtype and device, the hooks on all modules and optimizers,
    and Python's recursion limit.
    """
    import torch

    defaults, hooks, limit = _defaults(), _hook_numbers(), sys.getrecursionlimit()
    cast, nesting = _autocast(), _autocast_nesting()
    try:
        with torch.inference_mode(False):  # on its way out it puts grad mode and inference mode back
            yield
    finally:
        sys.setrecursionlimit(limit)
        _set_defaults(_defaults(), defaults)
        _remove_hooks_since(hooks)
        if _autocast() != cast:
            for name, (on, kind) in cast.items():
                torch.set_autocast_enabled(name, on)
                torch.set_autocast_dtype(name, kind)
        if _autocast_nesting() != nesting:  # a region that was never left: its casts would be used for ever
            torch.clear_autocast_cache()
            while _autocast_nesting() > nesting:
                torch.autocast_decrement_nesting()
            while _autocast_nesting() < nesting:
                torch.autocast_increment_nesting()


class KernelSettings:
    """Keeps to a loop what it sets for the whole kernel: inside of ``with`` it is set, outside it is not.

    That is the default dtype and device, and hooks on all modules and optimizers.
    """

    def __init__(self) -> None:
        self._defaults: dict[int, Any] = {}  # those that the loop has set, by their place
        self._hooks: list[dict[int, Any]] = []

    def __enter__(self) -> None:
        self._outside, self._hooks_outside = _defaults(), _hook_numbers()
        self._inside = [self._defaults.get(index, value) for index, value in enumerate(self._outside)]
        _set_defaults(self._outside, self._inside)
        for hooks, added in zip(_torch.global_hooks(), self._hooks, strict=False):
            hooks.update(added)

    def __exit__(self, *error: object) -> None:
        now = _defaults()
        self._defaults |= {index: value for index, value in enumerate(now) if value != self._inside[index]}
        self._hooks = _remove_hooks_since(self._hooks_outside)
        _set_defaults(now, self._outside)


def _defaults() -> list[Any]:
    """Return the default dtype, the default device, and the kind of backward hooks on all modules."""
    import torch

    module, name = _torch.place("is_full_backward_hook")
    return [torch.get_default_dtype(), torch.get_default_device(), getattr(module, name, None)]


def _set_defaults(now: list[Any], wanted: list[Any]) -> None:
    import torch

    dtype, device, is_full_backward_hook = wanted
    if now[0] != dtype:
        torch.set_default_dtype(dtype)
    if now[1] != device:
        torch.set_default_device(None if device == torch.device("cpu") else device)
    if now[2] != is_full_backward_hook:
        setattr(*_torch.place("is_full_backward_hook"), is_full_backward_hook)


def _hook_numbers() -> set[int]:
    return {number for hooks in _torch.global_hooks() for number in hooks}


def _remove_hooks_since(before: set[int]) -> list[dict[int, Any]]:
    """Take off the hooks that have come since, and return them; gradlab's own, of another thread, stay."""
    every = _torch.global_hooks()
    new = {
        number
        for hooks in every
        for number, hook in [*hooks.items()]
        if number not in before and callable(hook) and not _is_ours(hook)
    }
    return [{number: hooks.pop(number) for number in new & hooks.keys()} for hooks in every]


def _is_ours(hook: Any) -> bool:
    code = getattr(hook, "__code__", None)
    return code is not None and code_owner(code.co_filename) is Owner.OURS


def _autocast() -> dict[str, tuple[bool, torch.dtype]]:
    import torch

    return {name: (torch.is_autocast_enabled(name), torch.get_autocast_dtype(name)) for name in _DEVICES}


def _autocast_nesting() -> int:
    """Return in how many autocast regions this is; PyTorch tells it only to who enters or leaves one."""
    import torch

    torch.autocast_increment_nesting()
    return int(torch.autocast_decrement_nesting())


def parse_python(text: str, filename: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a text; SyntaxError and ValueError as from ast.parse.

    Python 3.11 counts for all threads together how deep its parser is, and takes a change of threads for an error
    (python/cpython issue 106905). A lock keeps our own threads apart; IPython parses cells without it. It is one
    of its own: the doctor parses in a thread that trains, while another holds the process's lock and waits for it.
    """
    with _parser_lock:
        for _ in range(9):
            try:
                return ast.parse(text, filename)
            except SystemError:
                continue
        return ast.parse(text, filename)


def progress_bar(total: int, words: str, **options: Any) -> Any:
    """Return tqdm's bar, shown after a second and gone at the end, without the thread that tqdm starts beside it.

    Where no thread can be started tqdm warns of it. All that the thread does is to move a bar that is rarely told.
    """
    from tqdm.auto import tqdm

    class Bar(tqdm):  # type: ignore[misc, type-arg, unused-ignore]
        monitor_interval = 0

    return Bar(total=total, desc=words, delay=1, leave=False, **options)


_SERVED_LATELY = 0.5  # seconds: a call of ours that serves looks more often, unless an update takes longer


class MainThread:
    """The main thread: where all that trains, draws or forecasts for a widget runs, between two cells.

    JupyterLab hands a widget's request to another thread while a cell runs. PyTorch's tables of hooks, its random
    numbers and ``.grad`` belong to the process, so work done there would reach into the cell. It waits for the end of
    the cell, or until a long call of ours that the cell has made comes to ``serve``.
    """

    def __init__(self) -> None:
        self.interrupted = False
        """Whether work done by ``serve`` was interrupted: the cell that has called it is to end, too."""
        self._waiting: deque[Callable[[], object]] = deque()
        self._cell_runs = self._working = False
        self._holds = 0
        self._served = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether work that is handed over now waits for the end of a cell."""
        return self._cell_runs and time.monotonic() - self._served > _SERVED_LATELY

    @property
    def is_wanted(self) -> bool:
        """Whether ``serve`` would find something to do; cheap enough to ask after each update."""
        here = threading.current_thread() is threading.main_thread()
        return bool(self._waiting) and here and not (self._holds or self._working)

    @property
    def is_working(self) -> bool:
        """Whether the main thread does what was handed over; an interrupt ends that."""
        return self._working

    def begin_cell(self) -> None:
        """Note that the kernel runs a cell from now on."""
        self._cell_runs, self._served = True, 0.0

    def end_cell(self) -> None:
        """Note that the cell has ended."""
        self._cell_runs = False

    def hand_over(self, work: Callable[[], object], call_soon: Callable[[Callable[[], None]], object]) -> None:
        """Have work done on the main thread, in the caller's context; ``call_soon`` is that of its event loop."""
        self._waiting.append(partial(contextvars.copy_context().run, work))
        call_soon(self._work)

    def do(self, work: Callable[[], object]) -> None:
        """Do something for a widget now; this is the main thread, and what waits is done first."""
        self._waiting.append(work)
        for _ in range(len(self._waiting)):
            self._work()

    def serve(self) -> None:
        """Do what waits, between two updates of a long call; nothing while ``hold`` is in force or on other threads.

        Raises KeyboardInterrupt where that was interrupted.
        """
        if self._holds or self._working or threading.current_thread() is not threading.main_thread():
            return
        self._served, self.interrupted = time.monotonic(), False
        for _ in range(len(self._waiting)):
            self._work()
        if self.interrupted:
            raise KeyboardInterrupt

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Leave in a ``with`` block what waits where it is: an instrument listens to all that this thread does."""
        here = threading.current_thread() is threading.main_thread()
        self._holds += here
        try:
            yield
        finally:
            self._holds -= here

    def _work(self) -> None:
        """Do what has waited longest, if anything still does."""
        if self._working or not self._waiting:
            return
        try:
            self._working = True
            self._waiting.popleft()()
            self._working = False  # within the block, so that an interrupt at this very moment ends nothing else
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self._working = False


@contextmanager
def plain_torch_state() -> Iterator[None]:
    """Run a block with grad mode on and autocast off, whatever a cell has left the main thread in."""
    import torch

    with torch.inference_mode(mode=False):
        if not torch.is_autocast_enabled("cpu"):
            yield
            return
        with torch.autocast("cpu", enabled=False):
            yield


main_thread = MainThread()
"""The main thread of this process."""
