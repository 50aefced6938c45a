"""A trace of the PyTorch calls in an update, to find the calls that cut a tensor off from parameters.

A TorchFunctionMode records every PyTorch call from one backward pass to the next, in a few updates of each call path.
Unlike autograd's graph, the trace also follows tensors that do not require a gradient.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ... import _torch
from ..events import Site, union_bits
from ..frames import call_lines
from ..state.param_index import ParamIndex
from .autograd_graph import grad_fn_of, leaves

_MOST_OPS = 20_000
_LITERAL = 6  # a number of at most this many characters may also be a literal in the learner's code
_MOST_WAITING = 16  # limit on the number of call paths that wait for a trace, and of backward passes that each waits
TAKES_NUMBERS = ("item", "__float__", "tolist", "numpy", "__int__")
_SUMS = ("add", "add_", "sub", "sub_", "__radd__", "__rsub__", "rsub", "__iadd__", "__isub__")
_WEIGHTS = ("mul", "mul_", "div", "div_", "__rmul__", "__rdiv__", "true_divide", "neg", "__imul__", "__itruediv__")
_SAME = ("float", "double", "half", "to", "squeeze", "view", "reshape", "clone", "contiguous", "mean", "type")
_QUIET = ("requires_grad_", "retain_grad", "register_hook", "zero_", "__repr__", "__format__", "backward", "__set__")
_FLAT = ("round", "sign", "floor", "ceil", "trunc", "round_", "sign_")  # functions whose gradient is 0 or undefined
_VIEWS = ("data", "T", "mT", "H", "mH", "real", "imag")
_MADE = ("tensor", "as_tensor", "from_numpy")


@dataclass(slots=True, eq=False)
class Op:
    """A PyTorch call that made a tensor or read a number. Without ``lines``, it is a parameter or untraced value."""

    name: str
    inputs: tuple[Op, ...] = ()
    """The Ops of the tensor and number arguments in order; a number that no traced call read is an Op "number"."""
    lines: tuple[Site, ...] = ()
    """The learner's lines that led to the call, the innermost first."""
    reach: int = 0
    """Parameters in the graph of the result."""
    made_of: int = 0
    """Parameters that the result was computed from, whether or not they are in its graph."""
    shape: tuple[int, ...] = ()
    graph: bool = False
    """True if the result requires a gradient."""
    no_grad: bool = False
    method: bool = False
    """True if the function was called as a method of its first argument."""
    flaw: str = ""
    """The kind of bug in the values of the arguments, for some loss functions only; "" if there is none."""

    @property
    def tensors(self) -> tuple[Op, ...]:
        """The Ops of the call's tensor arguments."""
        return tuple(op for op in self.inputs if op.name != "number")

    @property
    def path(self) -> tuple[Site, ...]:
        """The learner's lines that led to the call, the innermost last."""
        return self.lines[::-1]

    @property
    def lost(self) -> int:
        """The set of parameters that are in the graph of an argument but not in the graph of the result."""
        return union_bits(op.reach for op in self.inputs) & ~self.reach


def terms(op: Op, depth: int = 40) -> Iterator[Op]:
    """Yield the terms of a loss, without their factors, casts and reshapes; split at most ``depth`` nested sums."""
    if op.name in _SUMS and depth and len(op.inputs) > 1 and not op.shape:
        for term in op.inputs:
            yield from terms(term if term.name != "number" or term.lines else replace(term, lines=op.lines), depth - 1)
        return
    parts = op.tensors
    scalars = all(not part.shape for part in parts)
    if parts and scalars and (op.name == "stack" or (len(parts) == 1 and op.name in (*_WEIGHTS, *_SAME))):
        for term in parts:
            yield from terms(term, depth)
    elif op.name in ("sum", "mean") and len(parts) == 1 and parts[0].name == "stack":
        yield from terms(parts[0], depth)
    else:
        yield op


def ops_below(op: Op, most: int = _MOST_OPS) -> Iterator[Op]:
    """Yield a call and all calls that led to it, without repeats, the nearest first."""
    waiting, visited = [op], {op}
    for current in waiting:
        yield current
        fresh = [inner for inner in dict.fromkeys(current.inputs) if inner not in visited]
        visited.update(fresh)
        waiting += fresh if len(waiting) < most else []


def cuts(op: Op) -> list[Op]:
    """Return the calls that cut ``op`` off from parameters that it was computed from."""
    lost = op.made_of & ~op.reach
    return [below for below in ops_below(op) if below.lost & lost]


class OpTrace(TorchFunctionMode):
    """A mode, below all of the learner's modes, that traces PyTorch calls in some updates and changes no result."""

    def __init__(self, index: ParamIndex) -> None:
        super().__init__()
        self._index = index
        self.failure = ""
        """The reason why nothing is traced any more; "" while tracing works."""
        self._key = f"gradlab.op.{id(self)}"
        self._plain: dict[int, tuple[weakref.ref[Any], Op]] = {}
        self.numbers: list[tuple[Any, Op]] = []
        """Each number that was read from a tensor, None for a common literal, with the call that read it."""
        self.changes: list[tuple[Op, Op]] = []
        """Each call that changed a tensor in place, with the call that had made the tensor."""
        self._waiting: dict[int, int] = {}  # number of passes until each call path stops waiting
        self._count = 0
        self.on = self._was_on = False
        self._placed = 0  # id of the thread that has this mode on its stack, or 0
        self.busy = False
        """True while an optimizer steps, or a model is called without gradients: then nothing is traced."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "__get__":  # an attribute
            name = getattr(func.__self__, "__name__", "") if func.__self__ is not None else ""
            name = name if name in _VIEWS else "requires_grad_"
        if not self.on or self.busy or name in _QUIET:
            return func(*args, **kwargs)
        inputs: tuple[Op, ...] = ()
        try:
            inputs = tuple(self._inputs((*args, *kwargs.values())))
        except Exception as error:
            self._fail(error)
        result = func(*args, **kwargs)
        try:
            if self.on and (inputs or name in _MADE):
                self._note(func, name, inputs, args, kwargs, result)
        except Exception as error:
            self._fail(error)
        return result

    def _fail(self, error: Exception) -> None:
        self.failure = f"{type(error).__name__}: {error}"
        self.on = False

    def _note(self, func: Any, name: str, inputs: tuple[Op, ...], args: Any, kwargs: Any, result: Any) -> None:
        changed = args[0] if name == "__setitem__" else result
        results = [item for item in flat(changed) if isinstance(item, Tensor)]
        made_of = union_bits(inner.made_of for inner in inputs)
        if not (results or (made_of and name in TAKES_NUMBERS)):
            return
        self._count += 1
        if self._count > _MOST_OPS:
            self.stop()
            return
        method, no_grad = hasattr(func, "__objclass__"), not torch.is_grad_enabled()
        op = Op(name, inputs, call_lines(sys._getframe(2)), 0, made_of, (), False, no_grad, method)
        if not results:
            exact = type(result) is float and len(repr(result)) > _LITERAL  # False for common literals such as 0.5
            self.numbers.append((result if exact else None, op))
            return
        if name == "kl_div" and _no_logarithms(args[0] if args else kwargs.get("input")):
            op.flaw = "probabilities"
        reach = 0 if name in _FLAT else union_bits(inner.reach for inner in inputs)
        if name == "__setitem__" or (name[-1:] == "_" and name[-2:] != "__") or name[:3] == "__i":
            self.changes.append((op, inputs[0]))
        for tensor in results:
            graph = tensor.requires_grad
            made_op = replace(op, reach=reach * graph, shape=tuple(tensor.shape), graph=graph)
            if (node := grad_fn_of(tensor)) is not None:
                node.metadata[self._key] = made_op
            elif not (isinstance(tensor, nn.Parameter) and tensor.is_leaf):
                self._plain[id(tensor)] = weakref.ref(tensor), made_op

    def _inputs(self, arguments: Any) -> Iterator[Op]:
        for item in arguments:
            if isinstance(item, Tensor):
                yield self.op(item)
            elif type(item) in (int, float):
                reads = (op for value, op in self.numbers if type(item) is type(value) is float and value == item)
                yield next(reads, Op("number"))
            elif isinstance(item, (list, tuple)) and len(item) <= 64 and not all(isinstance(n, int) for n in item):
                yield from self._inputs(item)

    def op(self, tensor: Tensor) -> Op:
        """Return the Op of the call that made a tensor or, if the call was not traced, an Op without lines."""
        if (node := grad_fn_of(tensor)) is not None:
            if (op := node.metadata.get(self._key)) is None:
                op = node.metadata[self._key] = self._untraced(tensor)
            return op
        reference, plain = self._plain.get(id(tensor), (None, None))
        # Only watched parameters are looked up, since reading the .grad of another thread's parameter can crash Python.
        bits = self._index.known_bits([tensor])
        reach = bits * tensor.requires_grad  # also nonzero for other watched tensors, such as an optimized image
        if reference is not None and reference() is tensor and plain is not None and not reach:
            return plain
        return Op("parameter" if bits else "", (), (), reach, bits, tuple(tensor.shape), bool(bits))

    def of(self, node: Any) -> Op | None:
        """Return the Op of the call that made a node of a graph, or None if the call was not traced."""
        return node.metadata.get(self._key)

    def _untraced(self, tensor: Tensor) -> Op:
        """Return an Op for a tensor whose graph no traced call has made, for example a custom Function's result."""
        reach = self._index.known_bits(leaf for leaf, _ in leaves(tensor.grad_fn))
        if not reach:  # a reentrant checkpoint makes its graph only in backward(), so assume all parameters
            reach = (1 << len(self._index)) - 1
        return Op("", (), (), reach, reach, tuple(tensor.shape), graph=True)

    def module_result(self, result: Any, arguments: Any, params: int) -> None:
        """Record a call to a module as one Op, because calls inside it are not traced while gradients are disabled."""
        inputs = (*self._inputs(flat(arguments)), Op("parameter", reach=params, made_of=params))
        made_of = union_bits(inner.made_of for inner in inputs)
        lines = call_lines(sys._getframe(2))
        for tensor in flat(result):
            if isinstance(tensor, Tensor) and grad_fn_of(tensor) is None:
                op = Op("module", inputs, lines, 0, made_of, tuple(tensor.shape), no_grad=True)
                self._plain[id(tensor)] = weakref.ref(tensor), op

    @property
    def waits(self) -> bool:
        """True if a call path waits for its update to be traced."""
        return bool(self._waiting)

    def ask(self, call_path: int) -> None:
        """Request a trace of the update that leads to the next backward pass of this call path."""
        if len(self._waiting) < _MOST_WAITING:
            self._waiting[call_path] = _MOST_WAITING

    def start(self) -> None:
        """Start tracing, unless torch.compile was called, because it would compile the code again under the mode."""
        self.busy = False
        if _torch.compiled_anything():
            self.failure = self.failure or "torch.compile was called"
        if not self.on and not self.failure:
            self.on, self._count = True, 0
            if not self._placed:
                try:
                    _restack(self, placed=True)
                    self._placed = threading.get_ident()
                except AttributeError:  # this version of PyTorch lacks functions that ``_restack`` calls
                    self.on = False

    def before_backward(self) -> None:
        """Take the mode off the stack before ``Tensor.backward`` runs, because that call would put the mode back."""
        self._was_on, self.on = self.on or self._was_on, False
        self.settle()

    def pass_begins(self, call_path: int) -> bool:
        """Stop tracing while a backward pass runs, and return whether the update that led to the pass was traced."""
        was_on, self.on, self._was_on = self.on or self._was_on, False, False
        self._waiting = {path: left - 1 for path, left in self._waiting.items() if left > 1 and path != call_path}
        return was_on

    def pass_ended(self) -> None:
        """Start tracing the next update if a call path waits for a trace; otherwise forget the last trace."""
        if self._waiting:
            self.start()
        else:
            self._forget()

    def stop(self) -> None:
        """Stop tracing until the next call to ``start()``, and forget the trace."""
        self.on = False
        self._forget()

    def _forget(self) -> None:
        self._plain.clear()
        self.numbers.clear()
        self.changes.clear()

    def settle(self) -> None:
        """Take the mode off the stack of the calling thread if the mode is on that stack and is not tracing."""
        if self._placed == threading.get_ident() and not self.on:  # each thread has its own stack of modes
            _restack(self, placed=False)
            self._placed = 0

    def remove(self) -> None:
        """Stop tracing, and take the mode off the stack."""
        self.stop()
        self.settle()


def flat(value: Any) -> Iterator[Any]:
    """Yield the innermost elements of nested lists, tuples and dictionaries, or ``value`` if it is none of these."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else None
    if inner is None:
        yield value
    else:
        for element in inner:
            yield from flat(element)


def _no_logarithms(value: Any) -> bool:
    """Return whether ``value`` is a CPU tensor with positive and no negative elements, unlike log-probabilities."""
    plain = isinstance(value, Tensor) and value.device.type == "cpu" and value.numel() > 0
    return plain and bool((value.detach() >= 0).all()) and bool((value.detach() > 0).any())


def _restack(mode: OpTrace, *, placed: bool) -> None:
    """Put ``mode`` at the bottom of the stack, so that no other mode's exit pops it, or remove it if not ``placed``."""
    pop, push = _torch.pop_function_mode, _torch.push_function_mode
    modes = [pop() for _ in range(_torch.function_stack_size())]
    others = [each for each in reversed(modes) if each is not mode]
    for each in (mode, *others) if placed else others:
        push(each)
