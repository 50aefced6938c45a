"""Program: the text of a loop, compiled to a generator that pauses after each statement.

The text is parsed, a ``yield`` is inserted after every statement, and the result is executed: there is no second
implementation of the loop. The generator pauses *after* a statement (but before ``break`` or ``continue``), so a Lab
highlights the line whose effect its pictures show. ``for``, ``while`` and ``if`` pause at the start of the block that
they enter. A ``with`` or ``try`` block counts as one statement, because a generator that paused inside
``with torch.autocast(...)`` would leave autocast on for the whole kernel.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
import symtable
import traceback
from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from .._process import parse_python

_FUNCTION = "__gradlab_loop__"
_LONGEST_MESSAGE = 300  # number of characters above which the first line of an error is cut to its first sentence


class LoopError(ValueError):
    """Raised when a loop's text cannot be parsed, when one of its statements fails, or when no update is completed.

    ``line`` is the line that failed, counted from 1, or 0 if unknown; ``text`` is the loop's text, or "" if unknown.
    """

    def __init__(self, line: int, problem: str, text: str = "", *, owner: str = "") -> None:
        shown = text.splitlines()[line - 1].strip()[:80] if 0 < line <= len(text.splitlines()) else ""
        super().__init__(f"{owner}line {line}: {problem}" + (f"   ({shown})" if shown else ""))
        self.line, self.problem, self.text = line, problem, text


@dataclass(frozen=True)
class Statement:
    """The first and last line, and the label, of a statement after which a Program pauses."""

    line: int
    last_line: int
    label: str


class Program:
    """The compiled text of a loop: ``setup`` runs the statements before the first loop, and ``loop`` runs the rest."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"the loop's text must be a string, got {text!r}")
        self.text = text
        self.filename = f"<loop {hashlib.sha1(text.encode('utf-8', 'replace'), usedforsecurity=False).hexdigest()[:8]}>"
        self.statements: list[Statement] = []
        try:
            compile(text, self.filename, "exec")  # finds errors in the text itself, without any ``yield``
            module = parse_python(text, self.filename)
            names = _names_bound(module, text)
            loops = (index for index, each in enumerate(module.body) if isinstance(each, (ast.For, ast.While)))
            first = next(loops, len(module.body))
            self.setup = partial(_start, self._compile(module.body[:first], names))
            """Runs the statements before the first loop in a namespace; yields indices into ``statements``."""
            self.loop = partial(_start, self._compile(module.body[first:], names))
            """Runs the first loop and all statements after it in a namespace; yields indices into ``statements``."""
        except LoopError:
            raise
        except SyntaxError as error:
            raise LoopError(error.lineno or 0, error.msg, text) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise LoopError(0, f"this text cannot be parsed ({error})", text) from error
        # This entry lets tracebacks quote lines of the loop. Equal texts have equal file names, and share one entry.
        linecache.cache[self.filename] = (len(text), None, text.splitlines(keepends=True), self.filename)

    def explain(self, error: BaseException) -> LoopError:
        """Return a LoopError for ``error``, which a statement raised, with the line number, or 0 if it is unknown."""
        frames = traceback.walk_tb(error.__traceback__)
        line = next((line for frame, line in frames if frame.f_code.co_filename == self.filename), 0)
        message = next(iter(str(error).strip().splitlines()), "")
        if len(message) > _LONGEST_MESSAGE:  # such as PyTorch's long message about a missing kernel
            message = message.partition(". ")[0][:_LONGEST_MESSAGE]
        name = type(error).__name__
        return LoopError(line, f"{name}: {message}" if message else name, self.text)

    def _compile(self, body: list[ast.stmt], names: list[str]) -> Any:
        """Return code that defines a generator function from statements; ``names`` are global in it, as in a script."""
        function = parse_python(f"def {_FUNCTION}():\n    if 0: yield").body[0]
        assert isinstance(function, ast.FunctionDef)
        if names:
            function.body.insert(0, ast.Global(names=names))
        function.body += self._with_pauses(body)
        module = ast.Module(body=[function], type_ignores=[])
        return compile(ast.fix_missing_locations(module), self.filename, "exec")

    def _with_pauses(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return list(chain.from_iterable(map(self._with_pause, body)))

    def _with_pause(self, statement: ast.stmt) -> list[ast.stmt]:
        if isinstance(statement, (ast.For, ast.While)):
            label = "for" if isinstance(statement, ast.For) else "while"
            statement.body = [self._pause(statement, label, header=True), *self._with_pauses(statement.body)]
            statement.orelse = self._with_pauses(statement.orelse)
            return [statement]
        if isinstance(statement, ast.If):
            header = self._pause(statement, "if", header=True)
            statement.body = [header, *self._with_pauses(statement.body)]
            if statement.orelse:
                statement.orelse = [header, *self._with_pauses(statement.orelse)]
            return [statement]
        if isinstance(statement, (ast.Break, ast.Continue)):  # a later pause would not be reached
            return [self._pause(statement, _label(statement)), statement]
        # Annotations are removed, because an annotated name cannot be declared global.
        return [_Unannotated().visit(statement), self._pause(statement, _label(statement))]

    def _pause(self, statement: ast.stmt, label: str, *, header: bool = False) -> ast.stmt:
        last = statement.lineno if header else statement.end_lineno or statement.lineno
        self.statements.append(Statement(statement.lineno, last, label))
        return ast.copy_location(ast.Expr(ast.Yield(ast.Constant(len(self.statements) - 1))), statement)


def _start(code: Any, namespace: dict[str, Any]) -> Generator[int, None, None]:
    exec(code, namespace)  # defines the generator function, but runs no part of the loop yet
    return namespace.pop(_FUNCTION)()


def _names_bound(module: ast.Module, text: str) -> list[str]:
    """Return the names that ``text`` binds at top level, for a ``global`` statement; ``import *`` raises LoopError."""
    symbols = symtable.symtable(text, "<loop>", "exec").get_symbols()
    names = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported() or s.is_namespace()}
    for node in ast.walk(module):
        if isinstance(node, ast.NamedExpr):  # ``names`` lacks the target of a ``:=`` in a comprehension
            names.add(node.target.id)
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            raise LoopError(node.lineno, "'import *' does not work here: import the names that you use", text)
    return sorted(names)


class _Unannotated(ast.NodeTransformer):
    """Changes ``x: int = 1`` to ``x = 1``, also within ``with`` and ``try``, but not within functions and classes."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            return node
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node)

    def _leave(self, node: ast.stmt) -> ast.stmt:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _leave  # noqa: N815 - names of ast


def _label(statement: ast.stmt) -> str:
    """Return the name of the function or context manager that a statement calls, or its target, or its kind."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if isinstance(function, ast.Attribute):
            return function.attr
        return function.id if isinstance(function, ast.Name) else "call"
    if isinstance(statement, ast.Assign):
        return ast.unparse(statement.targets[0]).strip("()")
    if isinstance(statement, ast.With):
        return ast.unparse(statement.items[0].context_expr).split("(")[0].split(".")[-1]
    return type(statement).__name__.lower()
