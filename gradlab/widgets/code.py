"""The loop's text for the code pane: coloured line by line, and which lines a switch has changed."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer


@lru_cache(maxsize=64)
def coloured(source: str) -> tuple[str, ...]:
    """Return one piece of HTML a line; a token that spans lines is closed and opened again at each line's end."""
    html = highlight(source, PythonLexer(stripnl=False, ensurenl=False), HtmlFormatter(nowrap=True))
    # A long line may break after a bracket or a dot, and in a loop's line that is commented out.
    lines = re.sub(r'(\((?=</span>)|(?<=<span class="o">)\.|(?<=<span class="c1">)[^<(]*\()', r"\1<wbr>", html)
    count = len(source.splitlines())
    return tuple((lines.split("\n") + [""] * count)[:count])


def changed_lines(old: str, new: str) -> list[int]:
    """Return the lines of ``new``, counted from 1, that are not in ``old`` at their place."""
    matcher = difflib.SequenceMatcher(a=old.splitlines(), b=new.splitlines(), autojunk=False)
    return [n + 1 for tag, _, _, first, last in matcher.get_opcodes() if tag != "equal" for n in range(first, last)]
