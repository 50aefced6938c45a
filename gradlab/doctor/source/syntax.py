"""The learner's source, parsed: its lines, the function around one, the words of a node; and what to show of it."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal

from ..._process import parse_python
from ..events import Site
from ..finding import Cause, Edit, Finding, short_path


def source_line(site: Site) -> str:
    """Return a line of the learner's source, "" if it can't be read."""
    linecache.checkcache(site[0])  # it may have been edited since it was read last
    return linecache.getline(*site)


def syntax_tree(file: str) -> ast.Module | None:
    """Return a file as it is now, parsed; None if that is not possible."""
    linecache.checkcache(file)
    return _parsed("".join(linecache.getlines(file)))


@lru_cache(maxsize=64)
def _parsed(source: str) -> ast.Module | None:
    try:
        return parse_python(source)
    except (SyntaxError, ValueError):
        return None


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


LOOP_KINDS = (ast.For, ast.AsyncFor, ast.While)


def nodes_in(files: Iterable[str]) -> Iterator[tuple[str, ast.AST]]:
    """Yield all nodes of some files, each with its file."""
    for file in sorted(set(files)):
        tree = syntax_tree(file)
        yield from ((file, node) for node in ast.walk(tree)) if tree is not None else ()


def node_place(file: str, node: ast.AST) -> Cause:
    """Return the place of a node; of one that spans lines, the whole first line."""
    line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]  # only for nodes that have a place
    end_line, end = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
    return Cause(file, line, column, end if end_line == line else 0)


def at(site: Site) -> Cause | None:
    """Return a line as a place; None without one."""
    return Cause(*site) if site[1] else None


def only(places: Iterable[Cause]) -> Cause | None:
    """Return a place if it is the only one."""
    found = set(places)
    return found.pop() if len(found) == 1 else None


def function_around(site: Site) -> ast.AST | None:
    """Return the innermost function that a line is in, or the whole file."""
    tree = syntax_tree(site[0]) if site[1] else None
    around = [one for one in ast.walk(tree) if isinstance(one, FUNCTIONS) and _holds(one, site[1])] if tree else []
    return max(around, key=lambda one: one.lineno, default=tree)


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions and classes inside it."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            yield from own_nodes(node)


def statements_around(site: Site, kinds: type | tuple[type, ...]) -> list[ast.AST]:
    """Return the statements of some kinds, in the same function, that a line is inside of; the innermost first."""
    scope = function_around(site)
    found = [one for one in own_nodes(scope) if isinstance(one, kinds) and _holds(one, site[1])] if scope else []
    return sorted(found, key=lambda one: -one.lineno)  # type: ignore[attr-defined]  # statements have lines


def loop_around(site: Site) -> ast.AST | None:
    """Return the innermost loop that a line is in, in the same function."""
    return next(iter(statements_around(site, LOOP_KINDS)), None)


def method_calls(scope: ast.AST, *methods: str) -> Iterator[ast.Call]:
    """Yield the calls of methods with these names."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
            yield node


def dotted(node: ast.AST) -> str:
    """Return ``self.net`` for an expression that is a name with attributes, "" for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (left := dotted(node.value)):
        return f"{left}.{node.attr}"
    return ""


def _holds(node: ast.AST, line: int) -> bool:
    first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
    return bool(first <= line <= (last or first))


def edited(cause: Cause, line: str) -> str | None:
    """Return the source of a file with a line put in, or changed; None if what comes out is no Python."""
    linecache.checkcache(cause.file)
    lines = [one.rstrip("\r\n") for one in linecache.getlines(cause.file)]
    if not 0 < cause.line <= len(lines):
        return None
    beside = lines[cause.line - 1]
    if not cause.insert:
        lines[cause.line - 1] = _blanks(beside) + line
    else:
        if cause.insert == "below" and beside.partition("  #")[0].rstrip().endswith(":"):  # into the block
            beside = next((one for one in lines[cause.line :] if one.strip()), beside)
        lines.insert(cause.line - (cause.insert == "above"), _blanks(beside) + line)
    source = "\n".join([*lines, ""])
    return source if _parsed(source) is not None else None


def words_of(cause: Cause) -> str:
    """Return the words of a place, or its whole line."""
    return source_line((cause.file, cause.line))[cause.column : cause.end_column or None].rstrip()


def reworded(cause: Cause, words: str) -> Edit | Cause:
    """Return the edit that puts other words there; the place alone if it spans lines."""
    line = source_line((cause.file, cause.line)).rstrip()
    changed = f"{line[: cause.column]}{words}{line[cause.end_column :]}"
    return Edit(cause, changed.strip()) if cause.end_column else cause


def beside(site: Site, where: Literal["above", "below"], line: str) -> Edit | Cause:
    """Return the edit that puts a line beside another; that line as the place if nothing can stand there."""
    edit = Edit(Cause(*site, insert=where), line)
    return edit if edited(edit.cause, line) is not None else Cause(*site)


def _blanks(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


_MOST = 96  # characters of a line


def excerpt(finding: Finding) -> str:
    """Return the line where it shows and the place to edit, in the order of the files; "" if neither can be read."""
    cause = finding.cause
    places = {(finding.file, finding.line)} if finding.line else set()
    if cause is not None:
        places.add((cause.file, cause.line))
    shown = [(file, line, text) for file, line in sorted(places) if (text := source_line((file, line)).rstrip())]
    width = max((len(str(line)) for _, line, _ in shown), default=1)
    several = len({file for file, _, _ in shown}) > 1
    blanks = min((len(_blanks(text)) for *_, text in shown), default=0)
    lines = []
    for file, line, text in shown:
        if several:
            lines.append(f"{short_path(file)}:")
        lines.append(f"{line:>{width}} | {text[blanks : blanks + _MOST]}")
        if cause is not None and (file, line) == (cause.file, cause.line):
            lines.append(f"{'':>{width}} | {_mark(text, cause)[blanks:]}  {cause.what}")
    return "\n".join(lines)


def _mark(text: str, cause: Cause) -> str:
    """Return carets under the words to change."""
    first = cause.column if cause.end_column else len(_blanks(text))
    last = cause.end_column or len(text.split("  #")[0].rstrip())
    return " " * first + "^" * max(1, min(last, _MOST) - first)
