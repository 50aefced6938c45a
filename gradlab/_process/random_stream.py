"""Streams of torch's random numbers, each separate from all other random numbers in the process."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, wraps
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from .. import _torch
from .dispatch_mode import DispatchMode
from .hooks import Original, Patches
from .threads import learner_threads, others_may_draw


class RandomStream:
    """A separate stream of random numbers: in its ``with`` blocks, which may be nested, this thread draws from it.

    If no other thread may draw during the block, torch's generators are set to the stream's state, at almost no cost.
    Otherwise those generators are left alone, and each random operation is passed a generator of the stream. The stream
    starts in the state that ``torch.manual_seed(seed)`` sets or, without a seed, in torch's current state. ``cuda``
    includes the generators of all GPUs, and ``compiled`` code that torch.compile has compiled.
    """

    def __init__(self, seed: int | None = None, *, cuda: bool = False, compiled: bool = False) -> None:
        self._cuda, self._compiled = cuda, compiled
        self._ours = [generator.clone_state() for generator in _generators(cuda=cuda)]
        if seed is not None:
            for generator in self._ours:
                generator.manual_seed(seed)
        self._depth, self._lock, self._block = 0, threading.RLock(), ExitStack()

    def __enter__(self) -> None:
        """Draw from this stream. Raises RuntimeError for GPUs or compiled code if another thread runs learner code."""
        self._lock.acquire()  # two threads may use the same Run, and with it this stream
        try:
            if not self._depth:
                self._block.enter_context(self._kept_apart())
            self._depth += 1
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *exception: object) -> None:
        self._depth -= 1
        try:
            if not self._depth:
                self._block.close()
        finally:
            self._lock.release()

    def copy(self) -> RandomStream:
        """Return another stream in the same state."""
        other = RandomStream(cuda=self._cuda, compiled=self._compiled)
        other.set_state(self.state())
        return other

    def state(self) -> list[Tensor]:
        """Return the states of the stream's generators, the CPU's first."""
        return [generator.get_state() for generator in (_generators(cuda=self._cuda) if self._depth else self._ours)]

    def set_state(self, state: list[Tensor]) -> None:
        """Continue from a state that ``state()`` has returned."""
        for generator, position in zip(_generators(cuda=self._cuda) if self._depth else self._ours, state, strict=True):
            generator.set_state(position)

    @contextmanager
    def _kept_apart(self) -> Iterator[None]:
        if self._cuda or self._compiled:  # GPU operations and compiled code cannot be passed a generator
            if threads := learner_threads():
                what, instead = ("A GPU", "use device 'cpu'") if self._cuda else ("Compiled code", "do not compile")
                raise RuntimeError(
                    f"{what} draws from PyTorch's global random generators, which your thread {threads[0]!r} may "
                    f"be using too: join() that thread first, or {instead}"
                )
        elif (thread := threading.get_ident()) not in _HANDED_OUT and others_may_draw():
            # On this thread, operations, torch.manual_seed and torch.get_rng_state use the stream's own generator.
            with _BY_THREAD, _GeneratorMode(self._ours[0]):
                try:
                    _HANDED_OUT[thread] = self._ours[0]
                    yield
                finally:
                    _HANDED_OUT.pop(thread, None)
            return
        shared = _generators(cuda=self._cuda)
        before = [generator.get_state() for generator in shared]
        try:
            for generator, ours in zip(shared, self._ours, strict=True):
                generator.set_state(ours.get_state())
            yield
        finally:
            for generator, ours, position in zip(shared, self._ours, before, strict=True):
                ours.set_state(generator.get_state())
                generator.set_state(position)


@contextmanager
def preserving_rng() -> Iterator[None]:
    """Restore the state of torch's CPU generator after the block.

    Unless another thread runs the learner's code, also restore the generators of Python, NumPy and, if in use, GPUs.
    """
    alone = not learner_threads()
    of_python, of_numpy = random.getstate(), np.random.get_state()
    try:
        with RandomStream(cuda=alone and torch.cuda.is_initialized()):
            yield
    finally:
        if alone:
            random.setstate(of_python)
            np.random.set_state(of_numpy)


_HANDED_OUT: dict[int, Generator] = {}  # the generator that a thread's operations use, by thread id


def _generators(*, cuda: bool) -> list[Generator]:
    if cuda:
        torch.cuda.init()
    cpu = _HANDED_OUT.get(threading.get_ident(), torch.default_generator)
    return [cpu, *(torch.cuda.default_generators if cuda else ())]


class _DefaultGenerator:
    """A proxy for ``torch.random.default_generator`` that forwards to the calling thread's generator."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_generators(cuda=False)[0], name)


def _seeding_own(manual_seed: Original) -> Callable[[int], Generator]:
    """Wrap ``manual_seed`` so that, on a thread with its own generator, it seeds that generator alone."""

    @wraps(manual_seed.call)
    def seed_own(seed: int) -> Generator:
        generator = _HANDED_OUT.get(threading.get_ident())
        return manual_seed.call(seed) if generator is None else generator.manual_seed(int(seed))

    return seed_own


_BY_THREAD = Patches(
    (torch.random, "default_generator", lambda original: _DefaultGenerator()),
    (torch, "manual_seed", _seeding_own),
    (torch.random, "manual_seed", _seeding_own),
)
"""The replacements that are active while any thread has its own generator."""
_address: Callable[[Generator], int] = _torch.generator_address.__get__
"""A function that returns a generator's C++ address: operations receive a new Python object for the same generator."""
_DRAWING_NOTHING = (
    "_fused_sdp_choice", "_scaled_dot_product_flash_attention_for_cpu", "_nested_tensor_softmax_with_shape"
)  # fmt: skip
"""Operations that are tagged as random because they draw on other devices, but draw nothing on the CPU."""


class _GeneratorMode(DispatchMode):
    """A dispatch mode that passes its generator to each random CPU operation, in place of torch's default generator."""

    def __init__(self, generator: Generator) -> None:
        super().__init__()
        self._generator = generator

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        form = _drawing_form(func)
        if form is None:
            return func(*args, **kwargs)
        tensors = (value for value in (*args, *kwargs.values()) if isinstance(value, Tensor))
        device = kwargs.get("device") or next((tensor.device for tensor in tensors), "cpu")
        if torch.device(device).type != "cpu":
            return func(*args, **kwargs)
        if func is torch.ops.aten.native_dropout.default:
            return self._drop_out(*args)
        operation, index = form
        if operation is None:
            raise RuntimeError(
                f"{func} draws from PyTorch's global random generator, which another thread may be using too: "
                "use nn.Dropout or torch.rand instead, or join() your other threads first"
            )
        if len(args) > index:
            args, kwargs = args[:index], {**kwargs, "generator": args[index]}
        wanted = kwargs.get("generator")
        if wanted is None or _address(wanted) == _address(torch.default_generator):
            kwargs = {**kwargs, "generator": self._generator}
        return operation(*args, **kwargs)

    def _drop_out(self, values: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
        """Compute ``native_dropout`` for TorchScript as PyTorch does on the CPU, but with this mode's generator."""
        if train is False or not values.numel():
            return torch.native_dropout(values, p, False)
        mask = torch.empty_like(values, dtype=torch.bool).bernoulli_(1 - p, generator=self._generator)
        return values.mul(mask).mul_(0 if p == 1 else 1 / (1 - p)), mask


@cache
def _drawing_form(func: Any) -> tuple[Any, int] | None:
    """Return an overload of ``func`` with the argument ``generator``, and the index of this argument.

    Return (None, 0) if ``func`` draws random numbers but has no such overload, or None if it draws none.
    """
    for operation in (func, *(getattr(func.overloadpacket, name) for name in func.overloadpacket.overloads())):
        names = [argument.name for argument in operation._schema.arguments]
        if "generator" in names and _arguments(operation) == _arguments(func):
            return operation, names.index("generator")
    draws = torch.Tag.nondeterministic_seeded in func.tags and func.overloadpacket.__name__ not in _DRAWING_NOTHING
    return (None, 0) if draws else None


def _arguments(operation: Any) -> list[tuple[str, str]]:
    return [(each.name, str(each.type)) for each in operation._schema.arguments if each.name != "generator"]
