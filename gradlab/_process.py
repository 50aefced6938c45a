"""What belongs to the whole process (one lock, torch's random numbers and modes, Python's parser), and how to put back.

PyTorch's random generators, the hooks on all modules and the functions that a Ledger or a doctor replaces exist once,
however many Runs and widgets there are. Whoever changes them holds the lock, so that a Lab that plays on one thread and
a cell that trains on another do not draw each other's random numbers.
"""

from __future__ import annotations

import ast
import copy
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ._frames import Owner, code_owner, frames

if TYPE_CHECKING:
    import torch
    from torch import nn

lock = threading.RLock()
"""Held by whoever trains, draws, or reads what is drawn; it may be taken again by the thread that has it."""
_parser_lock = threading.Lock()


def learner_threads() -> list[str]:
    """Return the names of the other threads that run code of the learner's own now.

    A thread of Jupyter's, of a progress bar or of a pool that waits for work has no frame of theirs.
    """
    stacks, own = sys._current_frames(), threading.get_ident()
    return [
        thread.name
        for thread in threading.enumerate()
        if thread.ident != own
        and any(code_owner(f.f_code.co_filename) is Owner.USER for f in frames(stacks.get(thread.ident or 0)))
    ]


def end_with_parent() -> None:
    """End this process of multiprocessing at once when the one that has started it ends, however that ends."""
    import multiprocessing
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        wait([parent.sentinel])  # one end of a pipe: the system closes the other end with the parent
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


_FOLLOWING_MODULE = """import os, runpy, signal, threading
def follow():
    os.read({0}, 1)  # until the other end of the pipe is closed
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=follow, daemon=True).start()
runpy.run_module({1!r}, run_name="__main__", alter_sys=True)
"""
_GRACE = 45.0  # seconds for a program to end after SIGTERM: torchrun gives its workers 30, then kills them


@contextmanager
def running_module(module: str, arguments: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run ``python -m module`` for the time of a block; it gets SIGTERM when the block or this process ends.

    options: those of subprocess.Popen. Windows hands no pipe over: there it ends with the block only, by a break, which
    reaches all of its group; SIGTERM would end it at once, and what it has started would stay.
    """
    if sys.platform == "win32":
        group = subprocess.CREATE_NEW_PROCESS_GROUP
        process = subprocess.Popen([sys.executable, "-m", module, *arguments], creationflags=group, **options)
        end = partial(process.send_signal, signal.CTRL_BREAK_EVENT)
    else:
        theirs, ours = os.pipe()
        end = partial(os.close, ours)
        code = _FOLLOWING_MODULE.format(theirs, module)
        try:
            process = subprocess.Popen([sys.executable, "-c", code, *arguments], pass_fds=(theirs,), **options)
        except BaseException:
            end()
            raise
        finally:
            os.close(theirs)
    try:
        yield process
    finally:  # also when the learner interrupts
        end()
        if process.poll() is None:
            try:
                process.communicate(timeout=_GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                with suppress(subprocess.TimeoutExpired):  # a worker that lives on holds the other ends of its pipes
                    process.communicate(timeout=5)


@contextmanager
def preserving_rng(*, cuda: bool = False, python: bool = False) -> Iterator[None]:
    """Put torch's random numbers back at the end; ``cuda``: of all GPUs, ``python``: Python's and numpy's, too."""
    import torch

    numpy: Any = sys.modules.get("numpy") if python else None
    own, theirs = random.getstate(), None if numpy is None else numpy.random.get_state()
    try:
        with lock, torch.random.fork_rng(devices=range(torch.cuda.device_count()) if cuda else ()):
            yield
    finally:
        if python:
            random.setstate(own)
        if numpy is not None:
            numpy.random.set_state(theirs)


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

    That is: grad and inference mode, autocast, the default dtype and device, and Python's recursion limit.
    """
    import torch

    dtype, device, limit = torch.get_default_dtype(), torch.get_default_device(), sys.getrecursionlimit()
    cast, nesting = _autocast(), _autocast_nesting()
    try:
        with torch.inference_mode(False):  # on its way out it puts grad mode and inference mode back
            yield
    finally:
        sys.setrecursionlimit(limit)
        torch.set_default_dtype(dtype)
        if torch.get_default_device() != device:
            torch.set_default_device(None if device == torch.device("cpu") else device)
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


def seed_torch(seed: int, *, cuda: bool = False) -> None:
    """Seed torch's generator on the CPU, and with ``cuda`` those of all GPUs."""
    import torch

    # Not torch.manual_seed for the CPU alone: it also seeds the GPUs, now or when CUDA starts.
    torch.manual_seed(seed) if cuda else torch.default_generator.manual_seed(seed)
