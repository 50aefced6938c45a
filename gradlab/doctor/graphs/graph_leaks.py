"""A search for variables that keep graphs of past updates alive, and a count of graphs that no backward pass used."""

from __future__ import annotations

import inspect
import weakref
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

from torch import Tensor, nn

from ... import _torch
from ..._frames import Owner, code_owner, variables
from ..events import NO_SITE, GraphHolder, Site
from ..frames import call_chain
from ..source.carried import adds, carries, only_line
from ..source.syntax import function_around
from .autograd_graph import Token, grad_fn_of, old_batches

_NEWEST = 12  # largest number of elements that are searched at either end of a container
_ROWS = (list, tuple, deque)
_DEEP = 4  # levels of attributes and items that are searched, as in task.board.meters["loss"].value
_KEY = "gradlab.evaluated"
_MOST_WAITING, _MOST_LINES = 32, 64


def find_graph_holder(frame: FrameType | None, now: int) -> GraphHolder | None:
    """Return a variable that keeps old graphs at pass ``now``: a list or sum, else a state of the model, else None."""
    state: GraphHolder | None = None
    for each_frame in (chain := call_chain(frame)):
        file, line_now = each_frame.f_code.co_filename, each_frame.f_lineno
        for name, value, batches in _keeping(variables(each_frame), now):
            if line := only_line(adds, file, name, line_now):
                scope = function_around((file, line))  # a function's variables are known only while it runs
                same = [each for each in chain if function_around((each.f_code.co_filename, each.f_lineno)) is scope]
                tensors = (key for each in same[:1] for key, part in variables(each).items() if _has_graph(part))
                return GraphHolder(name, (file, line), batches, tensors=frozenset(tensors))
            if state is None and (line := only_line(carries, file, name, line_now)):
                state = GraphHolder(name, (file, line), len(_batches_in(value, now, through=True)), carried=True)
    return state


def find_hook_holder(modules: Iterable[nn.Module]) -> GraphHolder | None:
    """Return the variable or attribute in which forward hooks of ``modules`` keep the most graphs, or None."""
    counts: dict[tuple[str, Site], dict[int, int]] = {}  # numbers of graphs, by (name, line) and by id of the container
    for part in dict.fromkeys(part for module in modules for part in module.modules()):
        for hook in _torch.forward_hooks_of(part).values():
            code = getattr(getattr(hook, "__func__", hook), "__code__", None)
            if code is None or code_owner(code.co_filename) is not Owner.USER:
                continue
            closure = inspect.getclosurevars(hook)
            attributes = getattr(getattr(hook, "__self__", None), "__dict__", {})
            for name, value in {**closure.nonlocals, **closure.globals, **attributes}.items():
                whole = _elements(value) or isinstance(value, nn.Module)
                for part_name, element in ({name: value} if whole else _attributes(name, value)).items():
                    if count := _graphs_in(element):
                        counts.setdefault((part_name, (code.co_filename, code.co_firstlineno)), {})[id(element)] = count
    (name, site), graphs = max(counts.items(), key=lambda entry: sum(entry[1].values()), default=(("", NO_SITE), {}))
    return GraphHolder(name, site, sum(graphs.values()), hook=True) if graphs else None


def _graphs_in(value: Any, deep: int = 3) -> int:
    inner = [*_elements(value).values()]
    if inner and _has_graph(inner[-1]):
        return len(inner)
    return sum(_graphs_in(element, deep - 1) for element in inner[:_NEWEST]) if deep else 0


def _attributes(name: str, value: Any) -> dict[str, Any]:
    """Return {"meter.sum": value, ...} for the attributes of an object whose class the learner wrote, otherwise {}."""
    code = getattr(getattr(type(value), "__init__", None), "__code__", None)
    is_users = code is not None and code_owner(code.co_filename) is Owner.USER
    return {f"{name}.{key}": attribute for key, attribute in getattr(value, "__dict__", {}).items()} if is_users else {}


def _has_graph(value: Any) -> bool:
    return grad_fn_of(value) is not None


def _keeping(values: dict[str, Any], now: int, deep: int = _DEEP) -> Iterator[tuple[str, Any, int]]:
    """Yield (name, value, count) for each variable, or part of one, that holds the graphs of ``count`` old batches."""
    for name, value in values.items():
        if batches := _batches_in(value, now):
            yield name, value, len(batches)
        elif deep:
            elements = {f"{name}[{key!r}]": element for key, element in [*_elements(value).items()][:_NEWEST]}
            yield from _keeping(_attributes(name, value) or elements, now, deep - 1)


def _elements(value: Any) -> dict[Any, Any]:
    return dict(value) if isinstance(value, dict) else dict(enumerate(value if isinstance(value, _ROWS) else ()))


def _batches_in(value: Any, now: int, depth: int = 3, *, through: bool = False) -> set[int]:
    if isinstance(value, Tensor):
        return old_batches(grad_fn_of(value), now, through=through)
    parts = [*_elements(value).values()] if depth else []
    # The first elements are searched as well, since the last ones may have graphs of the current batch.
    some = [*parts[:_NEWEST], *parts[-_NEWEST:]]
    return set().union(*(_batches_in(part, now, depth - 1, through=through) for part in some))


class UnusedGraphs:
    """Counts graphs that models built in evaluation mode and that no backward pass used, by the learner's lines."""

    def __init__(self) -> None:
        self._waiting: list[tuple[weakref.ref[Token], tuple[Site, ...]]] = []
        self.uses = 0
        """Number of backward passes through any graph, including ``torch.autograd.grad``."""
        self.wasted: Counter[tuple[Site, ...]] = Counter()
        """Lines of a call -> number of its graphs that were freed before any backward pass could use them."""
        self.used: set[tuple[Site, ...]] = set()
        """Lines of calls whose graph was alive during a backward pass, which may have used it."""

    def built(self, result: Any, lines: tuple[Site, ...]) -> None:
        """Record the graph of ``result``, which a model returned in evaluation mode."""
        parts = [*_elements(result).values(), result]
        if (node := next(filter(None, map(grad_fn_of, parts)), None)) is None:
            return
        self._count_gone(0)
        self._waiting = [entry for entry in self._waiting if entry[0]() is not None][-_MOST_WAITING:]
        node.metadata[_KEY] = token = Token()
        self._waiting.append((weakref.ref(token), lines))

    def settle(self) -> None:
        """Record a backward pass. All live graphs count as used, and one freed graph per line as a target's."""
        self.uses += 1
        if self._waiting:
            self._count_gone(1)
            self.used.update(lines for reference, lines in self._waiting if reference() is not None)
            self._waiting.clear()

    def _count_gone(self, excused: int) -> None:
        for lines, count in Counter(lines for reference, lines in self._waiting if reference() is None).items():
            if count > excused and (lines in self.wasted or len(self.wasted) < _MOST_LINES):
                self.wasted[lines] += count - excused
