"""The cheat sheet: the loops, the order of calls, and the pitfalls, on one page that prints."""

from __future__ import annotations

import errno
import html
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from ..formatting import inline_html, lesson_address, link_html
from ..loop import Recipe

_HERE = files("gradlab.course")
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


class CallRow(NamedTuple):
    """One call of the loop and what it does to ``.grad`` and to the weights."""

    code: str
    does: str


class Pitfall(NamedTuple):
    """What one sees, why, the line that mends it, and the notebook that shows it."""

    symptom: str
    cause: str
    mend: str
    lesson: str


class CheatSheet:
    """One page: a notebook shows it, ``save`` writes it as a file that prints on one sheet of A4."""

    def __init__(self, loops: Mapping[str, Recipe], calls: Sequence[CallRow], pitfalls: Sequence[Pitfall]) -> None:
        """``loops`` maps a title to the Recipe whose ``source()`` is printed under it."""
        self.loops, self.calls, self.pitfalls = dict(loops), list(calls), list(pitfalls)

    @property
    def html(self) -> str:
        """The page as an element with its own style."""
        css = _HERE.joinpath("cheat_sheet.css").read_text(encoding="utf-8")
        loops = "".join(
            f"<section><h4>{html.escape(title)}</h4><pre>{_coloured(recipe.source())}</pre></section>"
            for title, recipe in self.loops.items()
        )
        calls = "".join(
            f"<li><code>{html.escape(call.code)}</code> {inline_html(call.does)}</li>" for call in self.calls
        )
        rows = "".join(
            f"<tr><td>{inline_html(it.symptom)}</td><td>{inline_html(it.cause)}</td><td>{inline_html(it.mend)}</td>"
            f"<td>{link_html(lesson_address(it.lesson), it.lesson[:2])}</td></tr>"
            for it in self.pitfalls
        )
        head = "".join(f"<th scope=col>{word}</th>" for word in ("what you see", "why", "what mends it", "see"))
        return (
            f'<div class="gl-sheet"><style>{css}</style>'
            "<h3><code>.grad</code> is a buffer that adds</h3>"
            f'<div class="gl-loops">{loops}</div><h4>The calls, in this order</h4><ol>{calls}</ol>'
            f"<h4>When it goes wrong</h4><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )

    def save(self, path: str | Path) -> None:
        """Write the page as a file of its own; open it in a browser and print it.

        A mere file name goes beside the notebook. Where nothing can be written there, as in the read-only folder of a
        course, it goes to the home folder or a new temporary one, and a printed line says where.
        """
        head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>.grad on one page</title>'
        page = f"{head}<body>{self.html}</body></html>"
        try:
            Path(path).write_text(page, encoding="utf-8")
        except OSError as error:
            if error.errno not in _READ_ONLY or Path(path).name != str(path):
                raise
            print(f"You cannot write in this folder. The page is in {_write_elsewhere(Path(path).name, page)}")

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        loops = "\n".join(f"# {title}\n{recipe.source()}" for title, recipe in self.loops.items())
        calls = "\n".join(f"{number}. {call.code}: {call.does}" for number, call in enumerate(self.calls, 1))
        pitfalls = "\n".join(f"{it.symptom}: {it.cause}. {it.mend} ({it.lesson})" for it in self.pitfalls)
        return f"{loops}\n{calls}\n\n{pitfalls}"


def _write_elsewhere(name: str, text: str) -> Path:
    """Write a file in the home folder, or in a temporary one, and return where."""
    try:
        target = Path.home() / name
        target.write_text(text, encoding="utf-8")
    except (OSError, RuntimeError):  # read-only as well, or there is none
        target = Path(tempfile.mkdtemp(prefix="gradlab-")) / name
        target.write_text(text, encoding="utf-8")
    return target


def cheat_sheet() -> CheatSheet:
    """Return the sheet of the series."""
    loops = {
        "The loop": Recipe(),
        "Accumulation: four micro-batches an update": Recipe(accumulate=4),
        "Mixed precision (AMP), fp16": Recipe(amp="fp16"),
        "All of it, with clipping": Recipe(accumulate=4, amp="fp16", clip=1.0, optimizer="adamw", lr=0.001),
    }
    lists = tomllib.loads(_HERE.joinpath("cheat_sheet.toml").read_text(encoding="utf-8"))
    return CheatSheet(loops, [CallRow(**row) for row in lists["calls"]], [Pitfall(**row) for row in lists["pitfalls"]])


def _coloured(source: str) -> str:
    """Return a loop as HTML with the classes of Pygments."""
    return highlight(source.rstrip(), PythonLexer(), HtmlFormatter(nowrap=True)).rstrip()
