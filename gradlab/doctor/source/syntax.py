"""The learner's source, parsed: its lines, the function around one, the words of a node; and what to show of it."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal, TypeVar

from ..._process import parse_python
from ..events import Site
from ..finding import Cause, Edit, Finding, short_path


def source_line(site: Site) -> str:
    """Return a line of the learner's source, "" if it can't be read."""
    linecache.checkcache(site[0])  # it may have been edited since it was read last
    return linecache.getline(*site)


Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
LOOP_KINDS = (ast.For, ast.AsyncFor, ast.While)
_NOTHING = ast.Module([], [])
_Item = TypeVar("_Item")
_Statement = TypeVar("_Statement", bound=ast.stmt)


def syntax_tree(file: str) -> ast.Module:
    """Return a file as it is now, parsed; an empty one if that is not possible."""
    linecache.checkcache(file)
    return _parsed("".join(linecache.getlines(file))) or _NOTHING


@lru_cache(maxsize=64)
def _parsed(source: str) -> ast.Module | None:
    try:
        return parse_python(source)
    except (SyntaxError, ValueError):
        return None


def nodes_in(files: Iterable[str]) -> Iterator[tuple[str, ast.AST]]:
    """Yield all nodes of some files, each with its file."""
    return ((file, node) for file in sorted(set(files)) for node in ast.walk(syntax_tree(file)))


def nodes_at(site: Site) -> list[ast.AST]:
    """Return the nodes that begin in a line."""
    return [node for node in ast.walk(syntax_tree(site[0])) if getattr(node, "lineno", 0) == site[1]]


def node_place(file: str, node: ast.AST) -> Cause:
    """Return the place of a node; of one that spans lines, the whole first line."""
    line, end_line = node.lineno, node.end_lineno  # type: ignore[attr-defined]  # only for nodes that have a place
    text, places = source_line((file, line)).encode(), (node.col_offset, node.end_col_offset)  # type: ignore[attr-defined]
    start, end = (len(text[:at].decode(errors="ignore")) for at in places)  # the parser counts bytes
    return Cause(file, line, start, end if end_line == line else 0)


def cause_at(site: Site) -> Cause | None:
    """Return a line as a place; None without one."""
    return Cause(*site) if site[1] else None


def single_or_none(items: Iterable[_Item]) -> _Item | None:
    """Return the item if there is only one."""
    different = set(items)
    return different.pop() if len(different) == 1 else None


def holds(node: ast.AST, line: int) -> bool:
    """Return whether a line is one of a node's."""
    return bool(node.lineno <= line <= node.end_lineno)  # type: ignore[attr-defined]  # only for nodes that have a place


def scopes_around(site: Site) -> list[Scope]:
    """Return the functions that a line is in, the innermost first, and then the whole file."""
    tree = syntax_tree(site[0]) if site[1] else _NOTHING
    found = [one for one in ast.walk(tree) if isinstance(one, FUNCTIONS) and holds(one, site[1])]
    return [*sorted(found, key=lambda one: -one.lineno), tree]


def function_around(site: Site) -> Scope:
    """Return the innermost function that a line is in, or the whole file; an empty one if it can't be read."""
    return scopes_around(site)[0]


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions and classes inside it."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, SCOPES):
            yield from own_nodes(node)


def statements_around(site: Site, kinds: type[_Statement] | tuple[type[_Statement], ...]) -> list[_Statement]:
    """Return the statements of some kinds, in the same function, that a line is inside of; the innermost first."""
    found = [one for one in own_nodes(function_around(site)) if isinstance(one, kinds) and holds(one, site[1])]
    return sorted(found, key=lambda one: (-one.lineno, -one.col_offset))


def loop_around(site: Site) -> ast.stmt | None:
    """Return the innermost loop that a line is in, in the same function."""
    return next(iter(statements_around(site, LOOP_KINDS)), None)


def called(node: ast.AST | None) -> str:
    """Return the last part of what a call calls, "step" for ``optimizers[0].step()``; "" for any other node."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else dotted(function)


def called_on(node: ast.AST | None, *methods: str) -> ast.expr | None:
    """Return the ``x`` of ``x.method()``, if it is one of some methods where these are given; else None."""
    function = node.func if isinstance(node, ast.Call) else None
    if not isinstance(function, ast.Attribute) or (methods and function.attr not in methods):
        return None
    return function.value


def calls_of(nodes: Iterable[ast.AST], *methods: str) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield the calls of methods with these names, each with what it is called on."""
    for node in nodes:
        if isinstance(node, ast.Call) and (owner := called_on(node, *methods)) is not None:
            yield node, owner


_COMPARES = ("lt", "gt", "le", "ge", "eq", "ne")
_OPERATORS = {"div": ast.Div, "true_divide": ast.Div, "rdiv": ast.Div, "pow": ast.Pow, "rpow": ast.Pow}


def calls_op(node: ast.AST, name: str) -> bool:
    """Return whether a node calls an operation of PyTorch's, such as "relu", "lt" or "__iadd__"."""
    plain = name.strip("_")
    if isinstance(node, (ast.Compare, ast.AugAssign)):
        return plain in _COMPARES if isinstance(node, ast.Compare) else name.endswith("_")
    if isinstance(node, ast.BinOp):
        return type(node.op) is _OPERATORS.get(plain)
    if isinstance(node, ast.Assign):
        return plain == "setitem" and isinstance(node.targets[0], ast.Subscript)
    return called(node).strip("_") == plain or (isinstance(node, ast.Attribute) and node.attr == plain == "data")


def arguments(call: ast.Call) -> list[ast.expr]:
    """Return what a call is given, by place and by name."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def names_in(node: ast.AST) -> set[str]:
    """Return the names and attributes in an expression, as ``self.net``, with those that they begin with."""
    return {dotted(one) for one in ast.walk(node)} - {""}


def imported(file: str) -> set[str]:
    """Return the names that a file imports."""
    aliases = [one for one in ast.walk(syntax_tree(file)) if isinstance(one, ast.alias)]
    return {(one.asname or one.name).split(".")[0] for one in aliases}


def assigned(file: str, name: str) -> list[ast.expr]:
    """Return what a name or attribute is given in a file, in the order of the lines."""
    made = [one for one in ast.walk(syntax_tree(file)) if isinstance(one, ast.Assign) and name]
    values = [one.value for one in made if dotted(one.targets[0]) == name]
    return sorted(values, key=lambda one: one.lineno)


def parameters(scope: ast.AST) -> list[str]:
    """Return the names of what a function is given; none for a file."""
    return [one.arg for one in scope.args.args] if isinstance(scope, FUNCTIONS) else []


def dotted(node: ast.AST | None) -> str:
    """Return ``self.net`` for an expression that is a name with attributes, "" for any other."""
    if isinstance(node, ast.Attribute):
        return f"{left}.{node.attr}" if (left := dotted(node.value)) else ""
    return node.id if isinstance(node, ast.Name) else ""


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


def operand(file: str, node: ast.expr) -> str:
    """Return the words of an expression, in brackets if it is more than a name, a call or the like."""
    words = words_of(node_place(file, node))
    return words if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({words})"


def reworded(place: Cause, words: str) -> Edit | Cause:
    """Return the edit that puts other words there; the place alone if it spans lines."""
    return all_reworded({place: words})


def all_reworded(words: dict[Cause, str]) -> Edit | Cause:
    """Return the edit that puts other words in some places of a line; the place or the line if one spans lines."""
    place, *more = words
    line = source_line((place.file, place.line)).rstrip()
    for one in sorted(words, key=lambda one: -one.column):
        line = f"{line[: one.column]}{words[one]}{line[one.end_column :]}"
    whole = Cause(place.file, place.line) if more else place
    return Edit(whole, line.strip()) if all(one.end_column and one.line == place.line for one in words) else whole


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
    places = {(one.file, one.line) for one in (finding, cause) if one is not None}
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
