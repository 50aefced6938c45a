"""A training loop that a learner may edit: its text, what it is given, and how it is compiled."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from ..._process import parse_python

_TICK, _TICKING = "__gradlab_tick__", "__gradlab_ticking__"
_MOST_LETTERS = 40_000


class LoopTextError(ValueError):
    """Why a text cannot be run, in words, with its line (0 where there is none)."""

    def __init__(self, words: str, line: int = 0) -> None:
        super().__init__(words)
        self.line = line


@dataclass(frozen=True)
class LearnerLoop:
    """The text of a loop, and the names that it is given; of a function also what it is called with."""

    text: str
    names: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What the text may use: the globals and the closure of a function."""
    function: str = ""
    """The function of the text that is the loop; "" where the text itself is."""
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)


def loop_of(given: object, names: Mapping[str, Any]) -> LearnerLoop:
    """Return the loop of a text or a function; ``names`` are the text's names or the function's arguments.

    Raises TypeError or ValueError that says what is missing.
    """
    if isinstance(given, str):
        import torch

        return LearnerLoop(given, {"torch": torch, "nn": torch.nn, **names})
    if not isinstance(given, FunctionType):
        raise TypeError(f"Patient: give it the name of a patient, a loop as text or a function, got {given!r}")
    name = given.__name__
    if name == "<lambda>":
        raise TypeError("Patient: a lambda has no text of its own to show; write the loop as a function with def")
    try:
        text = textwrap.dedent(inspect.getsource(given))
    except (OSError, TypeError):
        raise ValueError(f"Patient: the source of {name} cannot be found; hand over its text instead") from None
    signature = inspect.signature(given)
    try:
        signature.bind(**names)
    except TypeError as error:
        raise TypeError(
            f"Patient: {name}{signature} {error}; give its arguments by name: Patient({name}, ...)"
        ) from None
    closure = {key: cell.cell_contents for key, cell in _filled_cells(given)}
    return LearnerLoop(text, {**given.__globals__, **closure}, name, dict(names))


def _filled_cells(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for key, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            cell.cell_contents  # noqa: B018 - a cell that is not filled yet raises
        except ValueError:
            continue
        yield key, cell


def compile_loop(text: str, filename: str) -> CodeType:
    """Compile a text so that every turn of a loop, every function and every comprehension calls ``tick``.

    Lines keep their numbers. Raises LoopTextError for a text that is no Python.
    """
    if len(text) > _MOST_LETTERS:
        raise LoopTextError(f"The text has {len(text):,} letters; {_MOST_LETTERS:,} are allowed.")
    try:
        tree = _Ticks().visit(parse_python(text, filename))
        code = compile(ast.fix_missing_locations(tree), filename, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = min(error.lineno or 0, len(text.splitlines()))
        raise LoopTextError(f"Line {line} is not valid Python: {error.msg}.", line) from None
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise LoopTextError(f"This is not valid Python: {error or type(error).__name__}.") from None
    linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename
    return code


def tick_names(tick: Callable[[], None]) -> dict[str, Any]:
    """Return the names by which a compiled text calls ``tick``."""

    def ticking(items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            tick()
            yield item

    return {_TICK: tick, _TICKING: ticking}


class _Ticks(ast.NodeTransformer):
    """Puts calls of ``tick`` into a tree."""

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._tick_first(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._tick_first(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._tick_first(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        if not node.is_async:
            name = ast.copy_location(ast.Name(_TICKING, ast.Load()), node.iter)
            node.iter = ast.copy_location(ast.Call(name, [node.iter], []), node.iter)
        return node

    def _tick_first(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        at = node.body[0]
        call = ast.Expr(ast.Call(ast.Name(_TICK, ast.Load()), [], []))
        for part in ast.walk(call):
            ast.copy_location(part, at)
        node.body.insert(0, call)
        return node
