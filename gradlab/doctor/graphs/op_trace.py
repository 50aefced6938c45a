"""The calls of an update: the parameters that each tensor is computed from, and where it was cut off.

A TorchFunctionMode sees every call of PyTorch's from one backward pass to the next, in a few updates of each call path.
A tensor that needs no gradient is followed like any other, which no graph of autograd's does.
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
from .autograd_graph import leaves

_MOST_OPS = 20_000
_LITERAL = 6  # characters of a number that a line of the learner's may have by chance
_MOST_WAITING = 16  # backward passes of other call paths
TAKES_NUMBERS = ("item", "__float__", "tolist", "numpy", "__int__")
_SUMS = ("add", "add_", "sub", "sub_", "__radd__", "__rsub__", "rsub", "__iadd__", "__isub__")
_WEIGHTS = ("mul", "mul_", "div", "div_", "__rmul__", "__rdiv__", "true_divide", "neg", "__imul__", "__itruediv__")
_SAME = ("float", "double", "half", "to", "squeeze", "view", "reshape", "clone", "contiguous", "mean", "type")
_QUIET = ("requires_grad_", "retain_grad", "register_hook", "zero_", "__repr__", "__format__", "backward", "__set__")
_FLAT = ("round", "sign", "floor", "ceil", "trunc", "round_", "sign_")  # their gradient is 0 wherever there is one
_VIEWS = ("data", "T", "mT", "H", "mH", "real", "imag")
_MADE = ("tensor", "as_tensor", "from_numpy")


@dataclass(slots=True, eq=False)
class Op:
    """A call that made a tensor, or a number; without lines, a tensor from before or a parameter."""

    name: str
    inputs: tuple[Op, ...] = ()
    """Of the tensors that it was given, in their order; numbers that were given are named "number"."""
    lines: tuple[Site, ...] = ()
    """The learner's lines that led to it, the innermost first."""
    reach: int = 0
    """Parameters to which its graph goes back."""
    made_of: int = 0
    """Parameters that it was computed from, cut off or not."""
    shape: tuple[int, ...] = ()
    graph: bool = False
    """True if it requires a gradient."""
    no_grad: bool = False
    """True if it was called under no_grad()."""
    method: bool = False
    """True if it was called as a method of its first input."""
    flaw: str = ""
    """The bug in the values that it was given; for some loss functions only."""

    @property
    def tensors(self) -> tuple[Op, ...]:
        """The tensors that it was given."""
        return tuple(op for op in self.inputs if op.name != "number")

    @property
    def path(self) -> tuple[Site, ...]:
        """Its lines, caller by caller, the innermost last."""
        return self.lines[::-1]

    @property
    def lost(self) -> int:
        """Parameters to which an input's graph went back, and its own does not."""
        return union_bits(op.reach for op in self.inputs) & ~self.reach


def terms(op: Op, least: int = 40) -> Iterator[Op]:
    """Yield the terms of a loss, behind weights and scales, down to ``least`` sums in one another."""
    if op.name in _SUMS and least and len(op.inputs) > 1 and not op.shape:
        for term in op.inputs:
            yield from terms(term if term.name != "number" or term.lines else replace(term, lines=op.lines), least - 1)
        return
    parts = op.tensors
    scalars = all(not part.shape for part in parts)
    if parts and scalars and (op.name == "stack" or (len(parts) == 1 and op.name in (*_WEIGHTS, *_SAME))):
        for term in parts:
            yield from terms(term, least)
    elif op.name in ("sum", "mean") and len(parts) == 1 and parts[0].name == "stack":
        yield from terms(parts[0], least)
    else:
        yield op


def ops_below(op: Op, most: int = _MOST_OPS) -> Iterator[Op]:
    """Yield a call and all that led to it, each once, the nearest first."""
    waiting, visited = [op], {op}
    for current in waiting:
        yield current
        fresh = [inner for inner in dict.fromkeys(current.inputs) if inner not in visited]
        visited.update(fresh)
        waiting += fresh if len(waiting) < most else []


def cuts(op: Op, params: int = -1) -> list[Op]:
    """Return the calls below one that cut some parameters off, from which it is computed and does not reach."""
    lost = op.made_of & ~op.reach & params
    return [below for below in ops_below(op) if below.lost & lost]


class OpTrace(TorchFunctionMode):
    """Follows the calls of some updates; it lies below all modes of the learner's own, and changes no result."""

    def __init__(self, index: ParamIndex) -> None:
        super().__init__()
        self._index = index
        self._bits_of = index.known_bits
        self.failure = ""
        """Why nothing is followed any more; "" as long as all is well."""
        self._key = f"gradlab.op.{id(self)}"
        self._plain: dict[int, tuple[weakref.ref[Any], Op]] = {}
        self.numbers: list[tuple[Any, Op]] = []
        """Numbers that were taken out of tensors, with the calls that did."""
        self.changes: list[tuple[Op, Op]] = []
        """Calls that changed a tensor in place, with what the tensor had been."""
        self._waiting: dict[int, int] = {}  # call path -> passes until the wait ends
        self._count = 0
        self.on = self._was_on = False
        self._placed = 0  # the thread on whose stack it lies
        self.busy = False
        """True while an optimizer steps, or a model is called without gradients: nothing is followed."""

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
        """Stop tracing, after a tensor of an unexpected kind; everything else is judged as before."""
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
            exact = type(result) is float and len(repr(result)) > _LITERAL  # not 0.5, a usual literal
            self.numbers.append((result if exact else None, op))
            return
        if name == "kl_div" and _no_logarithms(args[0] if args else kwargs.get("input")):
            op.flaw = "probabilities"
        reach = 0 if name in _FLAT else union_bits(inner.reach for inner in inputs)
        if name == "__setitem__" or (name[-1:] == "_" and name[-2:] != "__") or name[:3] == "__i":
            self.changes.append((op, inputs[0]))
        for tensor in results:
            graph = tensor.requires_grad
            self._keep(tensor, replace(op, reach=reach * graph, shape=tuple(tensor.shape), graph=graph))

    def _keep(self, tensor: Tensor, op: Op) -> None:
        node = _node(tensor)
        if node is not None:
            node.metadata[self._key] = op
        elif not (isinstance(tensor, nn.Parameter) and tensor.is_leaf):
            self._plain[id(tensor)] = weakref.ref(tensor), op

    def _inputs(self, arguments: Any) -> Iterator[Op]:
        for item in arguments:
            if isinstance(item, Tensor):
                yield self.op(item)
            elif type(item) in (int, float):
                yield next(
                    (op for value, op in self.numbers if type(item) is type(value) is float and value == item),
                    Op("number"),
                )
            elif isinstance(item, (list, tuple)) and len(item) <= 64 and not all(isinstance(n, int) for n in item):
                yield from self._inputs(item)

    def op(self, tensor: Tensor) -> Op:
        """Return the call that made a tensor, or what is known of one from before."""
        node = _node(tensor)
        if node is not None:
            if (op := node.metadata.get(self._key)) is None:
                op = node.metadata[self._key] = self._untraced(tensor)
            return op
        reference, plain = self._plain.get(id(tensor), (None, None))
        watched = tensor.requires_grad and self._bits_of([tensor])  # an optimizer's, such as an image that is optimized
        if reference is not None and reference() is tensor and plain is not None and not watched:
            return plain
        # Only what is watched already: to read the .grad of another thread's parameter can crash Python.
        bits = self._bits_of([tensor])
        return Op(
            "parameter" if bits else "", (), (), bits * tensor.requires_grad, bits, tuple(tensor.shape), bool(bits)
        )

    def of(self, node: Any) -> Op | None:
        """Return the call that made a node of a graph, if it was seen."""
        op: Op | None = node.metadata.get(self._key)
        return op

    def _untraced(self, tensor: Tensor) -> Op:
        """Return the record of a result that no traced call made, such as that of the learner's own function."""
        leaf_tensors = [leaf for leaf, _ in leaves(tensor.grad_fn)]
        reach = self._bits_of(leaf_tensors)
        if not reach:  # a function that makes its graph when backward() runs, as a reentrant checkpoint does
            reach = (1 << len(self._index)) - 1
        return Op("", (), (), reach, reach, tuple(tensor.shape), graph=True)

    def module_result(self, result: Any, arguments: Any, params: int) -> None:
        """Note what a module made without being followed, since no graph was to be built."""
        inputs = tuple(self._inputs(flat(arguments)))
        made_of = union_bits(inner.made_of for inner in inputs) | params
        lines = call_lines(sys._getframe(2))
        for tensor in flat(result):
            if isinstance(tensor, Tensor) and tensor.grad_fn is None:
                op = Op("module", (*inputs, Op("parameter", reach=params, made_of=params)), lines, 0, made_of)
                op.shape, op.no_grad = tuple(tensor.shape), True
                self._plain[id(tensor)] = weakref.ref(tensor), op

    @property
    def waits(self) -> bool:
        """True if the update of some call path is to be followed."""
        return bool(self._waiting)

    def ask(self, call_path: int) -> None:
        """Follow the update that leads to the next backward pass of this call path."""
        if len(self._waiting) < _MOST_WAITING:
            self._waiting[call_path] = _MOST_WAITING

    def start(self) -> None:
        """Follow from here on, unless something was compiled: dynamo would compile again for each mode."""
        self.busy = False
        if _torch.compiled_anything():
            self.failure = self.failure or "torch.compile was called"
        if not self.on and not self.failure:
            self.on, self._count = True, 0
            if not self._placed:
                try:
                    _insert_below(self)
                except AttributeError:  # a PyTorch that calls it otherwise
                    self.on = False
                    return
                self._placed = threading.get_ident()

    def before_backward(self) -> None:
        """Take the mode out, before a call of PyTorch's that would put it back afterwards."""
        self._was_on, self.on = self.on or self._was_on, False
        self.settle()

    def pass_begins(self, call_path: int) -> bool:
        """Stop following while a backward pass runs; return whether its update was followed."""
        was_on, self.on, self._was_on = self.on or self._was_on, False, False
        self._waiting = {path: left - 1 for path, left in self._waiting.items() if left > 1 and path != call_path}
        return was_on

    def pass_ended(self) -> None:
        """Go on, if another call path waits; else forget what was seen."""
        if self._waiting:
            self.start()
        else:
            self._forget()

    def stop(self) -> None:
        """Follow no more, for now."""
        self.on = False
        self._forget()

    def _forget(self) -> None:
        self._plain.clear()
        self.numbers.clear()
        self.changes.clear()

    def settle(self) -> None:
        """Take the mode out where it is not needed."""
        if self._placed == threading.get_ident() and not self.on:  # each thread has modes of its own
            _take_out(self)
            self._placed = 0

    def remove(self) -> None:
        """The watch is over."""
        self.stop()
        self.settle()


def _node(tensor: Tensor) -> Any:
    try:
        return tensor.grad_fn
    except RuntimeError:  # of a view that was made under no_grad() and written to
        return None


def flat(value: Any) -> Iterator[Any]:
    """Yield the elements of lists, tuples and dictionaries, however deep."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else None
    if inner is None:
        yield value
    else:
        for element in inner:
            yield from flat(element)


def _no_logarithms(value: Any) -> bool:
    """Return whether numbers are probabilities, which are above 0, and not their logarithms, which are below."""
    plain = isinstance(value, Tensor) and value.device.type == "cpu" and value.numel() > 0
    return plain and bool((value.detach() >= 0).all()) and bool((value.detach() > 0).any())


def _insert_below(mode: OpTrace) -> None:
    """Put a mode below all others: who leaves a block takes off the mode on top, whichever it is."""
    pop, push = _torch.pop_function_mode, _torch.push_function_mode
    others = [pop() for _ in range(_torch.function_stack_size())]
    for each in (mode, *reversed(others)):
        push(each)


def _take_out(mode: OpTrace) -> None:
    modes = [_torch.pop_function_mode() for _ in range(_torch.function_stack_size())]
    for each in reversed(modes):
        if each is not mode:
            _torch.push_function_mode(each)
