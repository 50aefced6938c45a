"""The code pane: the loop as text, the line that just ran lit, changed lines marked, open to edits."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

import ipywidgets as widgets
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from ..loop import Statement


class CodePane:
    """Shows a text and its state; "Edit" turns it into a field whose text goes to ``on_edit``."""

    def __init__(self, on_edit: Callable[[str], bool], *, editable: bool = True) -> None:
        """``on_edit`` gets the learner's text and returns True when it was taken."""
        self._on_edit = on_edit
        self._source = ""
        self._lines: list[str] = []
        self._changed: set[int] = set()
        self._view = widgets.HTML()
        self._field = widgets.Textarea(
            description="the loop",
            layout=widgets.Layout(width="99%", height="330px", display="none"),
            style={"description_width": "0px"},
        )
        self._edit = widgets.Button(description="Edit the loop", icon="pencil", layout=_narrow())
        self._take = widgets.Button(description="Run this loop", icon="check", layout=_narrow(hidden=True))
        self._drop = widgets.Button(description="Cancel", layout=_narrow(hidden=True))
        self._edit.on_click(lambda _: self._open())
        self._take.on_click(lambda _: self._give())
        self._drop.on_click(lambda _: self.leave_edit())
        buttons = widgets.HBox([self._edit, self._take, self._drop])
        self.widget = widgets.VBox([self._view, self._field, *([buttons] if editable else [])])
        self.widget.add_class("gradlab-code")

    @property
    def changed(self) -> set[int]:
        """Lines that the newest switch changed or added."""
        return self._changed

    def show(self, source: str, ran: Statement, wrong: int = 0) -> None:
        """Show the text with the statement that just ran lit; ``wrong`` marks the line of a mistake."""
        if source != self._source:
            self._changed = changed_lines(self._source, source) if self._source else set()
            self._source, self._lines = source, _coloured(source)
        rows = [self._row(number, line, ran, wrong) for number, line in enumerate(self._lines, 1)]
        value = f'<pre class="gl" role="region" aria-label="the training loop">{"".join(rows)}</pre>'
        if value != self._view.value:
            self._view.value = value

    def forget_changes(self) -> None:
        """Take the marks off: nothing has been switched since."""
        self._changed = set()

    def leave_edit(self) -> None:
        """Go back from the field to the text as it runs."""
        self._show_field(False)

    def _row(self, number: int, line: str, ran: Statement, wrong: int) -> str:
        lit = ran.line <= number <= ran.last_line
        marks = [("lit", lit), ("changed", number in self._changed), ("wrong", number == wrong)]
        classes = " ".join(["line", *(name for name, on in marks if on)])
        sign = (
            "✗" if number == wrong else "▶" if lit and number == ran.line else "∗" if number in self._changed else " "
        )
        step = ' aria-current="step"' if lit else ""
        deep = len(line) - len(line.lstrip(" "))  # what is wrapped starts further in than this
        text = f'<span class="text" style="--gl-deep:{deep}ch">{line}</span>'
        return f'<span class="{classes}"{step}><span class="gutter">{sign} {number}</span>{text}</span>'

    def _open(self) -> None:
        self._field.value = self._source
        self._show_field(True)

    def _give(self) -> None:
        if self._on_edit(self._field.value):
            self._show_field(False)

    def _show_field(self, on: bool) -> None:
        self._view.layout.display = "none" if on else None
        self._edit.layout.display = "none" if on else None
        for widget in (self._field, self._take, self._drop):
            widget.layout.display = None if on else "none"


def changed_lines(old: str, new: str) -> set[int]:
    """Return the lines of ``new``, counted from 1, that are not in ``old`` at their place."""
    matcher = difflib.SequenceMatcher(a=old.splitlines(), b=new.splitlines(), autojunk=False)
    return {n + 1 for tag, _, _, first, last in matcher.get_opcodes() if tag != "equal" for n in range(first, last)}


def _coloured(source: str) -> list[str]:
    """Return one piece of HTML a line; a token that spans lines is closed and opened again at each line's end."""
    html = highlight(source, PythonLexer(stripnl=False, ensurenl=False), HtmlFormatter(nowrap=True))
    # A long line may break after a bracket or a dot, and in a loop's line that is commented out.
    lines = re.sub(r'(\((?=</span>)|(?<=<span class="o">)\.|(?<=<span class="c1">)[^<(]*\()', r"\1<wbr>", html)
    count = len(source.splitlines())
    return (lines.split("\n") + [""] * count)[:count]


def _narrow(*, hidden: bool = False) -> widgets.Layout:
    return widgets.Layout(width="auto", display="none" if hidden else None)
