"""The cheat sheet: an annotated loop, its variants, the bytes per parameter and the pitfalls, on one printable page."""

from __future__ import annotations

import html
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from ..formatting import html_page, html_table, inline_html, lesson_address, link_html
from ..loop import Recipe

_HERE = files("gradlab.course")
_TITLE = "`.grad` is a buffer that adds"
_SUBTITLE = "`backward()` adds, `step()` reads, `zero_grad()` clears"
_RECIPE = Recipe(accumulate=4, clip=1.0, optimizer="adamw", lr=0.001)
_SCHEDULER = "scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1000)"
_SLICES = r"for start in .*\n +window = .*"  # matches lines that slice a list, since a DataLoader cannot be sliced


class LoopChange(NamedTuple):
    """New code for the loop: it replaces lines 10 and 11 if ``lines`` is "10-11", or goes before line 7 if "<7"."""

    lines: str
    code: str

    @property
    def replaced(self) -> slice:
        """The slice of the loop's lines to replace, which is empty for an insertion."""
        first, _, last = self.lines.lstrip("<").partition("-")
        return slice(int(first) - 1, int(first) - 1 if "<" in self.lines else int(last or first))

    @property
    def where(self) -> str:
        """The value of ``lines`` as text for the page, such as "before 7"."""
        return self.lines.replace("<", "before ").replace("-", "\u2013")


class LoopVariant(NamedTuple):
    """A variant of the loop: its title, its explanation, and its changes."""

    title: str
    says: str
    changes: tuple[LoopChange, ...]


class Pitfall(NamedTuple):
    """A pitfall of training loops: its symptom, cause and fix, and the notebook and section that show it."""

    symptom: str
    cause: str
    fix: str
    lesson: str
    section: str = ""


@dataclass(frozen=True)
class CheatSheet:
    """The cheat sheet, which a notebook displays. ``save`` writes a file that prints on one sheet of A4 or Letter."""

    loop: str
    """The source of the loop."""
    notes: Mapping[int, str]
    """Notes on the lines of the loop, by line number from 1."""
    order: Mapping[str, Sequence[str]]
    """The calls of an update in order, by the part of the update, such as ``"each micro-batch"``."""
    margins: Mapping[str, LoopVariant]
    """Variants by name: ``"bf16"``, ``"fp16"``, ``"tokens"``, ``"ddp"``, and ``"windows"``, which all loops need."""
    sizes: Mapping[str, Any]
    """The table of bytes, with its ``title``, ``says``, ``columns`` and ``rows``."""
    pitfalls: Sequence[Pitfall]

    def program(self, margin: str = "") -> str:
        """Return the loop's source with the changes of "windows" and, if ``margin`` is not "", of that variant."""
        lines = self.loop.splitlines()
        changes = self.margins["windows"].changes + (self.margins[margin].changes if margin else ())
        for change in reversed(changes):  # begin at the end, so that the earlier line numbers stay valid
            beside = lines[change.replaced.start]
            indent = beside[: len(beside) - len(beside.lstrip())]
            lines[change.replaced] = [indent + line for line in change.code.splitlines()]
        return "\n".join(lines) + "\n"

    @property
    def html(self) -> str:
        """The cheat sheet as an HTML element that contains its style sheet."""
        css = _HERE.joinpath("cheat_sheet.css").read_text(encoding="utf-8")
        states = " ".join(_HERE.joinpath("cheat_sheet_states.html").read_text(encoding="utf-8").splitlines())
        windows, *types, tokens, ddp = map(_margin_html, self.margins.values())
        margins = f"<div>{windows}{''.join(types)}</div><div>{tokens}{ddp}{_sizes_html(self.sizes)}</div>"
        return (
            f'<div class="gl-sheet"><style>{css}</style>'
            f'<div class="gl-top"><div><h3>{_rich_html(_TITLE)}</h3><p>{_rich_html(_SUBTITLE)}</p></div>{states}</div>'
            f'<div class="gl-loop">{"".join(self._lines())}</div>{self._order_html()}'
            f'<div class="gl-margins">{margins}</div>'
            f"{_pitfalls_html(self.pitfalls)}</div>"
        )

    def _lines(self) -> Iterator[str]:
        """Yield two pieces of HTML for each line of the loop: its number and code, and its note."""
        for number, line in enumerate(self.loop.splitlines(), 1):
            yield f'<span class="gl-at">{number}</span><code>{_coloured(line)}\n</code>'
            yield f'<span class="gl-note">{_rich_html(self.notes.get(number, ""))}</span>'

    def _order_html(self) -> str:
        parts = []
        for when, calls in self.order.items():
            chain = " \u2192 ".join(f"<code>{html.escape(call)}</code>" for call in calls)
            parts.append(f"<span><i>{html.escape(when)}</i> {chain}</span>")
        return f'<p class="gl-order"><b>The order</b> {"".join(parts)}</p>'

    def save(self, path: str | Path) -> None:
        """Write the cheat sheet to an HTML file, for display in a browser and for printing.

        If ``path`` is a bare file name and the working directory is not writable, write to the home folder instead.
        """
        page = html_page(".grad on one page", self.html, "@media print { body { margin: 0 } }")
        try:
            Path(path).write_text(page, encoding="utf-8")
        except OSError:  # the folder may be read-only, as in some courses
            if Path(path).name != str(path):
                raise
            target = Path.home() / path
            target.write_text(page, encoding="utf-8")
            print(f"You cannot write in this folder. The page was saved to {target}")

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        notes = "\n".join(f"{number}. {note}" for number, note in self.notes.items())
        return f"{self.loop}\n{notes}"


@cache
def cheat_sheet() -> CheatSheet:
    """Return the cheat sheet of the series."""
    read = tomllib.loads(_HERE.joinpath("cheat_sheet.toml").read_text(encoding="utf-8"))
    first, *rest = re.sub(_SLICES, "for window in windows(loader, 4):", _RECIPE.source()).splitlines()
    return CheatSheet(
        loop="\n".join([first, _SCHEDULER, *rest, f"{' ' * 8}scheduler.step()"]) + "\n",
        notes={int(number): note for number, note in read["notes"].items()},
        order={part["when"]: part["calls"] for part in read["order"]},
        margins={
            name: LoopVariant(entry["title"], entry["says"], tuple(LoopChange(**it) for it in entry["changes"]))
            for name, entry in read["margins"].items()
        },
        sizes=read["bytes"],
        pitfalls=tuple(Pitfall(**row) for row in read["pitfalls"]),
    )


def _margin_html(margin: LoopVariant) -> str:
    changes = "".join(f'<span class="gl-at">{it.where}</span><pre>{_coloured(it.code)}</pre>' for it in margin.changes)
    return (
        f"<section><h4>{html.escape(margin.title)}</h4><p>{_rich_html(margin.says)}</p>"
        f'<div class="gl-changes">{changes}</div></section>'
    )


def _sizes_html(sizes: Mapping[str, Any]) -> str:
    _, *columns = sizes["columns"]
    lines = []
    for name, *row in sizes["rows"]:
        parts = " + ".join(f"{column} {size}" for column, size in zip(columns, row, strict=True) if size)
        lines.append(f"<p><b>{html.escape(name)}:</b> {html.escape(parts)}</p>")
    title, note = html.escape(sizes["title"]), _rich_html(sizes["says"])
    return f"<section><h4>{title}</h4>{''.join(lines)}<p>{note}</p></section>"


def _pitfalls_html(pitfalls: Sequence[Pitfall]) -> str:
    rows = []
    for it in pitfalls:
        number = link_html(lesson_address(it.lesson, it.section), it.lesson[:2])
        section = re.sub(r"^\d \u00b7 ", "", it.section)  # the page shows the notebook's number, not the section's
        lesson = f'{number} <span class="gl-section">{html.escape(section)}</span>'  # the section is hidden on paper
        rows.append([*map(inline_html, (it.symptom, it.cause, it.fix)), lesson])
    table = html_table(("what you see", "why", "the fix", "notebook"), rows)
    return f'<h4>When it goes wrong</h4><div class="gl-wide">{table}</div>'


def _rich_html(text: str) -> str:
    """Convert text to HTML: backticks mark code, and double asterisks mark bold."""
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", inline_html(text))


def _coloured(source: str) -> str:
    lexer = PythonLexer(stripnl=False, ensurenl=False)
    return highlight(source.rstrip(), lexer, HtmlFormatter(nowrap=True)).rstrip()
