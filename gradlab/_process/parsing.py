"""Python's parser, which only one thread may use at a time."""

from __future__ import annotations

import ast
import threading

_parser_lock = threading.Lock()


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
