"""What a notebook or a page holds of a lab or an instrument: its live view, a still with words, or a recording."""

from __future__ import annotations

import base64
import gzip
import html
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import ipywidgets as widgets

from .._process import lock, plain_torch_state
from ..drawing import Drawing, Listing, Placed, in_rows, to_png, to_svg
from ..formatting import html_page, join_words, png_img
from ..front import FrontEnd, cell_number, player_module, style_sheet
from .frames import Frame, FrameWriter, Reply

_WIDE, _APART = 930, 10  # CSS pixels: about as wide as a lab in a notebook, so that little moves when the lab comes
_SIZES = {1: (530, 297), 2: (530, 270), 3: (465, 270)}
"""Of one panel to three, which with the loop fill rows of two: a last one without a neighbour spans its row."""
_SMALL = (300, 216)  # of more panels, in rows of two beside the loop
_BARS = 110  # CSS pixels that the controls of a lab take above what its still picture shows


def lab_rows(panels: Sequence[Drawing], listing: Callable[[float], Listing], warning: str) -> list[Placed]:
    """Return the picture of a lab: the warning above, the loop as ``listing`` makes it of a width, and panels."""
    count = len(panels)
    in_line = count in _SIZES  # the loop is in the rows of the panels, or else beside them
    size = _SIZES.get(count, _SMALL)
    loop = listing(_WIDE - _APART - (size[0] if in_line else 2 * size[0]))
    above = Listing("", _WIDE, words=[warning]) if warning else None
    if in_line:
        return in_rows([loop, *panels], 2, size, above=above, last=_WIDE if count == 2 else size[0])
    return in_rows(panels, 2, size, beside=loop, above=above, last=size[0] * (1 + count % 2))


class Live(ABC):
    """What a cell shows live: the browser asks it by ``handle``, a cell drives it, and ``save`` keeps it."""

    _screen: ClassVar[str] = "instrument"  # of the browser's (front/screen.js); "lab" is that of a run
    _kinds: ClassVar[tuple[str, ...]] = (".png", ".svg", ".html")
    _front: FrontEnd | None = None
    _writer: FrameWriter
    _replying = False
    _driven_by: int | None = None  # the newest cell that has driven it since it was shown
    _before: Frame | None = None  # how it was shown before that

    @abstractmethod
    def handle(self, message: Mapping[str, Any]) -> Reply:
        """Do what a message of the browser asks (``front/README.md``), and return the reply; nothing is raised."""

    @abstractmethod
    def frame(self) -> Frame:
        """Return what has changed since the frame before."""

    @abstractmethod
    def _picture(self) -> list[Placed]:
        """Return what is shown now: panels, the loop and a warning, each in its place."""

    @property
    @abstractmethod
    def text(self) -> str:
        """What is shown, in words."""

    @abstractmethod
    def packed(self) -> Packed:
        """Return a recording of it, packed for a page without a kernel."""

    def save(self, path: str | Path) -> Path:
        """Write what is shown as ``.png`` or ``.svg``, or a page that needs no kernel as ``.html``; return the path."""
        target = checked_path(f"{type(self).__name__}.save", path, self._kinds)
        with lock:
            if target.suffix == ".png":
                target.write_bytes(to_png(self._picture()))
            else:
                text = to_svg(self._picture()) if target.suffix == ".svg" else self.packed().page()
                target.write_text(text, encoding="utf-8")
        return target

    def _show(self) -> None:
        """Tell the browser how things are, unless the reply to its own request does."""
        with lock:
            if self._front is not None and not self._replying:
                cell = cell_number()
                if self._before is None or self._driven_by != cell:
                    self._driven_by, self._before = cell, self._writer.newest()
                self._front.push({"frames": [self.frame()]})

    def _display_(self) -> FrontEnd:
        """Give marimo a live view; it shows an anywidget, and no stack of widgets."""
        with lock:
            self.frame()  # for a browser that asks before the cell has ended
            self._front = FrontEnd(self._screen, plain_torch_state()(self.handle), self._writer.newest)
            return self._front

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give a live view, and beside it the picture and the words that a saved notebook keeps.

        Where an earlier cell shows it, too, that view stays as it was when this cell began.
        """
        with lock:
            png, alt, words = to_png(self._picture()), self.text, repr(self)
            if self._front is not None:
                before = self._before if self._driven_by == cell_number() else None
                self._front.freeze(before or self._writer.newest())
            self._before = None
            front = self._display_()
            still = widgets.HTML(_still_html(front.lab_id, png, alt))
            view_id = widgets.VBox([still, front]).model_id
        view = {"version_major": 2, "version_minor": 0, "model_id": view_id}
        data = {
            "application/vnd.jupyter.widget-view+json": view,
            "image/png": base64.b64encode(png).decode(),
            "text/plain": words,
        }
        # That it is a still of something live is told on a page made of the notebook (site/templates/cells.html.j2).
        return data, {"image/png": {"width": _pixels(png, 16), "alt": alt, "live": True}}


def checked_path(owner: str, path: object, kinds: tuple[str, ...]) -> Path:
    """Return the path of a file to be written; ValueError unless it ends in one of these."""
    if isinstance(path, (str, Path)) and Path(path).suffix in kinds:
        return Path(path)
    raise ValueError(f"{owner}: path must end in {join_words(kinds, 'or')}, got {str(path)!r}")


def _still_html(lab_id: str, png: bytes, words: str) -> str:
    """Return the picture that is seen where the widget's JavaScript does not load, and what to do then."""
    help_ = (
        "This is a still picture: the live lab has not loaded. If it stays, install anywidget where Jupyter "
        "runs (<code>pip install anywidget</code>) and reload this page. <code>lab.run(updates=20)</code> works "
        "meanwhile."
    )
    room = f"min-height: {_pixels(png, 20) + _BARS}px"  # of the lab, so that nothing jumps when it comes
    return (
        f'<div data-gradlab-still="{lab_id}" style="{room}">{png_img(png, words, _pixels(png, 16))}'
        f"<p>{html.escape(words)}</p><p>{help_}</p></div>"
    )


def _pixels(png: bytes, offset: int) -> int:
    """Return the width (bytes 16 to 20 of a PNG) or the height in CSS pixels; it is drawn at twice their density."""
    return int.from_bytes(png[offset : offset + 4], "big") // 2


_PLAYERS = {"replay": ("replay", "Replay"), "instrument": ("instrument_page", "InstrumentPage")}
"""The module that plays each kind, and its class."""
_PAGE_STYLE = """\
body { margin: 0 auto; max-width: 1500px; padding: 8px; }
@media (prefers-color-scheme: dark) { body { background: #1b1d21; color: #ececec; } }
header { padding: 0 8px; font: 16px/1.4 system-ui, "DejaVu Sans", sans-serif; }
h1 { margin: 4px 0; font-size: 1.35em; }
header p { margin: 0 0 8px; }
"""


@dataclass(frozen=True)
class Packed:
    """A recording, packed: ``page`` makes one document of it; a site can hold many of them beside one script."""

    kind: Literal["replay", "instrument"]
    title: str
    caption: str  # what a reader can do with it
    words: str  # what the picture shows
    still: list[Placed] = field(repr=False)
    packed: str = field(repr=False)  # the recording as JSON, compressed by gzip, as base64

    def page(self) -> str:
        """Return one HTML document that plays everywhere, without a kernel and without a network."""
        entry, player = _PLAYERS[self.kind]
        module = player_module(entry).replace("</script", "<\\/script")
        icon = '<link rel="icon" href="data:,">\n'  # or browsers ask for one
        content = f"""<header><h1>{html.escape(self.title)}</h1><p>{html.escape(self.caption)}</p></header>
<main id="lab"></main>
<noscript>{png_img(to_png(self.still), self.words, 800)}<p>{html.escape(self.words)}</p></noscript>
<script type="text/plain" id="recording">{self.packed}</script>
<script type="module">
{module}
new {player}(document.getElementById("lab"), await unpacked(document.getElementById("recording").textContent));
</script>
"""
        return html_page(self.title, content, _PAGE_STYLE + style_sheet(), icon)


def packed_text(recording: dict[str, Any]) -> str:
    """Return a recording as the text that a page unpacks; the same recording gives the same text."""
    text = json.dumps(recording, separators=(",", ":"), ensure_ascii=False, default=list)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
