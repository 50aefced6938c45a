"""The learner's parsed source: its lines, nodes and functions, and edits and excerpts of it."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal, TypeVar

from ..._process import parse_python
from ..events import Site
from ..finding import Cause, Edit, Finding, short_path

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
LOOP_KINDS = (ast.For, ast.AsyncFor, ast.While)
_COMPARES = ("lt", "gt", "le", "ge", "eq", "ne")
_OPERATORS = {"div": ast.Div, "true_divide": ast.Div, "rdiv": ast.Div, "pow": ast.Pow, "rpow": ast.Pow}
_NOTHING = ast.Module([], [])
_MOST_COLUMNS = 96  # characters of a line
_Item = TypeVar("_Item")
_Statement = TypeVar("_Statement", bound=ast.stmt)


def source_line(site: Site) -> str:
    """Return a line of the learner's source, or "" if it cannot be read."""
    linecache.checkcache(site[0])  # the file may have been edited since it was cached
    return linecache.getline(*site)


def syntax_tree(file: str) -> ast.Module:
    """Return the syntax tree of a file as it is now, or an empty tree if the file cannot be parsed."""
    linecache.checkcache(file)
    return _parsed("".join(linecache.getlines(file))) or _NOTHING


@lru_cache(maxsize=64)
def _parsed(source: str) -> ast.Module | None:
    try:
        return parse_python(source)
    except (SyntaxError, ValueError):
        return None


def nodes_in(files: Iterable[str]) -> Iterator[tuple[str, ast.AST]]:
    """Yield (file, node) for each syntax node of ``files``."""
    return ((file, node) for file in sorted(set(files)) for node in ast.walk(syntax_tree(file)))


def nodes_at(site: Site) -> list[ast.AST]:
    """Return the syntax nodes that begin on a line."""
    return list(_nodes_by_line(syntax_tree(site[0])).get(site[1], ()))


@lru_cache(maxsize=64)
def _nodes_by_line(tree: ast.Module) -> dict[int, list[ast.AST]]:
    nodes: dict[int, list[ast.AST]] = {}
    for node in ast.walk(tree):
        nodes.setdefault(getattr(node, "lineno", 0), []).append(node)
    return nodes


def node_place(file: str, node: ast.AST) -> Cause:
    """Return the location of a node, or of its whole first line if the node spans several lines."""
    line, end_line = node.lineno, node.end_lineno  # type: ignore[attr-defined]  # only for nodes with a location
    text, columns = source_line((file, line)).encode(), (node.col_offset, node.end_col_offset)  # type: ignore[attr-defined]
    start, end = (len(text[:column].decode(errors="ignore")) for column in columns)  # the parser counts bytes
    return Cause(file, line, start, end if end_line == line else 0)


def cause_at(site: Site) -> Cause | None:
    """Return the location of a line, or None for NO_SITE."""
    return Cause(*site) if site[1] else None


def single_or_none(items: Iterable[_Item]) -> _Item | None:
    """Return the only item, apart from repetitions, or None if there is no item or several different ones."""
    unique = set(items)
    return unique.pop() if len(unique) == 1 else None


def holds(node: ast.AST, line: int) -> bool:
    """Return whether ``line`` is one of the lines of a node."""
    return bool(node.lineno <= line <= node.end_lineno)  # type: ignore[attr-defined]  # only for nodes with a location


def scopes_around(site: Site) -> list[Scope]:
    """Return the functions around a line, the innermost first, and then the whole file."""
    tree = syntax_tree(site[0]) if site[1] else _NOTHING
    return [*sorted((each for each in _functions(tree) if holds(each, site[1])), key=lambda each: -each.lineno), tree]


@lru_cache(maxsize=64)
def _functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]


def function_around(site: Site) -> Scope:
    """Return the innermost function around a line or, outside functions, the module (empty if it cannot be parsed)."""
    return scopes_around(site)[0]


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of ``scope``, without the contents of functions, lambdas and classes inside it."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, SCOPES):
            yield from own_nodes(node)


def statements_around(site: Site, kinds: type[_Statement] | tuple[type[_Statement], ...]) -> list[_Statement]:
    """Return the statements of ``kinds`` around a line, in the same function, the innermost first."""
    statements = _own_statements(function_around(site))
    around = [node for node in statements if isinstance(node, kinds) and holds(node, site[1])]
    return sorted(around, key=lambda node: (-node.lineno, -node.col_offset))


@lru_cache(maxsize=256)
def _own_statements(scope: Scope) -> list[ast.stmt]:
    return [node for node in own_nodes(scope) if isinstance(node, ast.stmt)]


def loop_around(site: Site) -> ast.stmt | None:
    """Return the innermost loop around a line in the same function, or None if there is none."""
    return next(iter(statements_around(site, LOOP_KINDS)), None)


def called(node: ast.AST | None) -> str:
    """Return the last part of a called name, such as "step" for ``optimizers[0].step()``, or "" for other nodes."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else dotted(function)


def called_on(node: ast.AST | None, *methods: str) -> ast.expr | None:
    """Return the ``x`` of ``x.method()``, for any method or only those in ``methods``, or None for other nodes."""
    function = node.func if isinstance(node, ast.Call) else None
    if not isinstance(function, ast.Attribute) or (methods and function.attr not in methods):
        return None
    return function.value


def calls_of(nodes: Iterable[ast.AST], *methods: str) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield (call, receiver) for the calls among ``nodes`` to any method, or only to those in ``methods``."""
    for node in nodes:
        if isinstance(node, ast.Call) and (owner := called_on(node, *methods)) is not None:
            yield node, owner


def calls_op(node: ast.AST, name: str) -> bool:
    """Return whether a node performs the PyTorch operation ``name``, such as "relu", "lt" or "__iadd__"."""
    plain = name.strip("_")
    if isinstance(node, (ast.Compare, ast.AugAssign)):
        return plain in _COMPARES if isinstance(node, ast.Compare) else name.endswith("_")
    if isinstance(node, ast.BinOp):
        return type(node.op) is _OPERATORS.get(plain)
    if isinstance(node, ast.Assign):
        return plain == "setitem" and isinstance(node.targets[0], ast.Subscript)
    return called(node).strip("_") == plain or (isinstance(node, ast.Attribute) and node.attr == plain == "data")


def arguments(call: ast.Call) -> list[ast.expr]:
    """Return the values of all arguments of a call, positional before keyword arguments."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def names_in(node: ast.AST) -> set[str]:
    """Return the names and attributes in an expression, such as ``self.net``, and their prefixes."""
    return {dotted(inner) for inner in ast.walk(node)} - {""}


def imported(file: str) -> set[str]:
    """Return the names that a file's imports bind, such as ``np``."""
    aliases = [alias for alias in ast.walk(syntax_tree(file)) if isinstance(alias, ast.alias)]
    return {(alias.asname or alias.name).split(".")[0] for alias in aliases}


def assigned(file: str, name: str) -> list[ast.expr]:
    """Return the values assigned to a name or attribute in a file, in the order of the lines."""
    assigns = [node for node in ast.walk(syntax_tree(file)) if isinstance(node, ast.Assign) and name]
    values = [node.value for node in assigns if dotted(node.targets[0]) == name]
    return sorted(values, key=lambda value: value.lineno)


def parameters(scope: ast.AST) -> list[str]:
    """Return the names of a function's positional-or-keyword parameters, or [] for other nodes."""
    return [parameter.arg for parameter in scope.args.args] if isinstance(scope, FUNCTIONS) else []


def dotted(node: ast.AST | None) -> str:
    """Return ``self.net`` for an expression that is a name with attributes, or "" for any other."""
    if isinstance(node, ast.Attribute):
        return f"{left}.{node.attr}" if (left := dotted(node.value)) else ""
    return node.id if isinstance(node, ast.Name) else ""


def edited(cause: Cause, line: str) -> str | None:
    """Return the source of a file with a line inserted or replaced, or None if the result cannot be parsed."""
    linecache.checkcache(cause.file)
    lines = [text.rstrip("\r\n") for text in linecache.getlines(cause.file)]
    if not 0 < cause.line <= len(lines):
        return None
    beside = lines[cause.line - 1]
    if not cause.insert:
        lines[cause.line - 1] = _indent(beside) + line
    else:
        if cause.insert == "below" and beside.partition("  #")[0].rstrip().endswith(":"):  # into the block
            beside = next((text for text in lines[cause.line :] if text.strip()), beside)
        lines.insert(cause.line - (cause.insert == "above"), _indent(beside) + line)
    source = "\n".join([*lines, ""])
    return source if _parsed(source) is not None else None


def text_of(cause: Cause) -> str:
    """Return the source at a location."""
    return source_line((cause.file, cause.line))[cause.column : cause.end_column or None].rstrip()


def operand(file: str, node: ast.expr) -> str:
    """Return the source of an expression, in parentheses unless it is a name, attribute, subscript or call."""
    text = text_of(node_place(file, node))
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({text})"


def reworded(cause: Cause, text: str) -> Edit | Cause:
    """Return the edit that replaces the source at a location, or the location itself if it has no end column."""
    return all_reworded({cause: text})


def all_reworded(texts: dict[Cause, str]) -> Edit | Cause:
    """Return the edit that replaces parts of a line, or only the location if a part spans lines or is elsewhere."""
    first, *more = texts
    line = source_line((first.file, first.line)).rstrip()
    for cause in sorted(texts, key=lambda cause: -cause.column):
        line = f"{line[: cause.column]}{texts[cause]}{line[cause.end_column :]}"
    whole = Cause(first.file, first.line) if more else first
    return Edit(whole, line.strip()) if all(cause.end_column and cause.line == first.line for cause in texts) else whole


def beside(site: Site, where: Literal["above", "below"], line: str) -> Edit | Cause:
    """Return the edit that inserts a line above or below ``site``, or a location if the edited file would not parse."""
    edit = Edit(Cause(*site, insert=where), line)
    return edit if edited(edit.cause, line) is not None else Cause(*site)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def excerpt(finding: Finding) -> str:
    """Return the source line of a finding and the line to edit, with a mark, or "" if neither can be read."""
    cause = finding.cause
    sites = {(part.file, part.line) for part in (finding, cause) if part is not None}
    shown = [(file, line, text) for file, line in sorted(sites) if (text := source_line((file, line)).rstrip())]
    width = max((len(str(line)) for _, line, _ in shown), default=1)
    several = len({file for file, _, _ in shown}) > 1
    indent = min((len(_indent(text)) for *_, text in shown), default=0)
    lines = []
    for file, line, text in shown:
        if several:
            lines.append(f"{short_path(file)}:")
        lines.append(f"{line:>{width}} | {text[indent : indent + _MOST_COLUMNS]}")
        if cause is not None and (file, line) == (cause.file, cause.line):
            lines.append(f"{'':>{width}} | {_mark(text, cause)[indent:]}  {cause.what}")
    return "\n".join(lines)


def _mark(text: str, cause: Cause) -> str:
    first = cause.column if cause.end_column else len(_indent(text))
    last = cause.end_column or len(text.split("  #")[0].rstrip())
    return " " * first + "^" * max(1, min(last, _MOST_COLUMNS) - first)
