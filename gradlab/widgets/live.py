"""The outputs of labs and instruments: live views, still pictures with text, and recordings."""

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

_LAB_WIDTH_PX, _GAP_PX = 930, 10  # width of a still, about that of the live lab that replaces it; gap beside the loop
_PANEL_SIZES_PX = {1: (530, 297), 2: (530, 270), 3: (465, 270)}
"""Number of panels -> panel size. The panels share rows of two with the loop; a last panel alone in a row spans it."""
_SMALL_PANEL_PX = (300, 216)  # panel size for four or more panels, in rows of two to the right of the loop
_CONTROLS_HEIGHT_PX = 110  # height of a live lab's controls, which its still picture does not have


def lab_rows(panels: Sequence[Drawing], listing: Callable[[float], Listing], warning: str) -> list[Placed]:
    """Return the placed parts of a lab's still picture; ``listing`` maps a width to the Listing of the loop."""
    count = len(panels)
    in_line = count in _PANEL_SIZES_PX  # whether the loop is in the first row; otherwise, it is to the left of all rows
    size = _PANEL_SIZES_PX.get(count, _SMALL_PANEL_PX)
    loop = listing(_LAB_WIDTH_PX - _GAP_PX - (size[0] if in_line else 2 * size[0]))
    above = Listing("", _LAB_WIDTH_PX, sentences=[warning]) if warning else None
    if in_line:
        return in_rows([loop, *panels], 2, size, above=above, last=_LAB_WIDTH_PX if count == 2 else size[0])
    return in_rows(panels, 2, size, beside=loop, above=above, last=size[0] * (1 + count % 2))


class Live(ABC):
    """The base class of labs and instruments: objects that a notebook shows live and that can be saved to a file."""

    _screen: ClassVar[str] = "instrument"  # kind of screen in the browser (front/screen.js): "lab" or "instrument"
    _kinds: ClassVar[tuple[str, ...]] = (".png", ".svg", ".html")
    _front: FrontEnd | None = None
    _writer: FrameWriter
    _replying = False
    _changed_by: int | None = None  # number of the last cell that changed the view after it was shown
    _before: Frame | None = None  # the newest frame from before cell ``_changed_by``

    @abstractmethod
    def handle(self, message: Mapping[str, Any]) -> Reply:
        """Return the reply to a message from the browser, as ``front/README.md`` describes; no error is raised."""

    @abstractmethod
    def frame(self) -> Frame:
        """Return the next frame: a dict with the fields that have changed since the previous frame."""

    @abstractmethod
    def _picture(self) -> list[Placed]:
        """Return the parts of the current still picture, such as panels and code, each with its position."""

    @property
    @abstractmethod
    def text(self) -> str:
        """A description of the current state in plain text, also used as the picture's text alternative."""

    @abstractmethod
    def packed(self) -> Packed:
        """Return a compressed recording for a page without a kernel."""

    def save(self, path: str | Path) -> Path:
        """Write a picture (``.png``, ``.svg``) or a page that works without a kernel (``.html``); return the path."""
        target = checked_path(f"{type(self).__name__}.save", path, self._kinds)
        with lock:
            if target.suffix == ".png":
                target.write_bytes(to_png(self._picture()))
            else:
                text = to_svg(self._picture()) if target.suffix == ".svg" else self.packed().page()
                target.write_text(text, encoding="utf-8")
        return target

    def _show(self) -> None:
        """Send the browser a frame, except during a request, because the reply contains a frame anyway."""
        with lock:
            if self._front is not None and not self._replying:
                self._keep_frame()
                self._front.push({"frames": [self.frame()]})

    def _keep_frame(self) -> None:
        """Keep the newest frame, before the running cell changes the view for the first time."""
        cell = cell_number()
        if self._before is None or self._changed_by != cell:
            self._changed_by, self._before = cell, self._writer.newest()

    def _display_(self) -> FrontEnd:
        """Return a live view for marimo, which can show an anywidget but not a box of widgets."""
        with lock:
            self.frame()  # ``newest`` needs a frame, because a request can arrive before the cell ends
            self._front = FrontEnd(self._screen, plain_torch_state()(self.handle), self._writer.newest)
            return self._front

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the contents of a cell's output: a live view, and the picture and text that a saved notebook keeps.

        A view of the same object in an earlier cell is frozen in the state that it had before this cell.
        """
        with lock:
            png, alt, text = to_png(self._picture()), self.text, repr(self)
            if self._front is not None:
                before = self._before if self._changed_by == cell_number() else None
                self._front.freeze(before or self._writer.newest())
            self._before = None
            front = self._display_()
            still = widgets.HTML(_still_html(front.lab_id, png, alt))
            view_id = widgets.VBox([still, front]).model_id
        view = {"version_major": 2, "version_minor": 0, "model_id": view_id}
        data = {
            "application/vnd.jupyter.widget-view+json": view,
            "image/png": base64.b64encode(png).decode(),
            "text/plain": text,
        }
        # "live" marks a picture that site/templates/cells.html.j2 explains as a still or replaces with a recording.
        return data, {"image/png": {"width": _pixels(png, 16), "alt": alt, "live": True}}


def checked_path(owner: str, path: object, kinds: tuple[str, ...]) -> Path:
    """Return ``path`` as a Path. Raises ValueError, naming ``owner``, unless the suffix is one of ``kinds``."""
    if isinstance(path, (str, Path)) and Path(path).suffix in kinds:
        return Path(path)
    raise ValueError(f"{owner}: path must end in {join_words(kinds, 'or')}, got {str(path)!r}")


def _still_html(lab_id: str, png: bytes, alt: str) -> str:
    """Return the HTML shown until the widget's JavaScript loads: the picture, its text, and help if loading fails."""
    help_ = (
        "This is a still picture: the live lab has not loaded. If it stays, install anywidget where Jupyter "
        "runs (<code>pip install anywidget</code>) and reload this page. The call "
        "<code>lab.run(updates=20)</code> works without the live lab."
    )
    room = f"min-height: {_pixels(png, 20) + _CONTROLS_HEIGHT_PX}px"  # height of the live lab that replaces the picture
    return (
        f'<div data-gradlab-still="{lab_id}" style="{room}">{png_img(png, alt, _pixels(png, 16))}'
        f"<p>{html.escape(alt)}</p><p>{help_}</p></div>"
    )


def _pixels(png: bytes, offset: int) -> int:
    """Return a PNG's width (``offset`` 16) or height (``offset`` 20) in CSS pixels, at two PNG pixels per CSS pixel."""
    return int.from_bytes(png[offset : offset + 4], "big") // 2


_PLAYERS = {"replay": ("replay", "Replay"), "instrument": ("instrument_page", "InstrumentPage")}
"""The JavaScript module and class that play a recording, by its kind."""
_PAGE_STYLE = """\
body { margin: 0 auto; max-width: 1500px; padding: 8px; }
@media (prefers-color-scheme: dark) { body { background: #1b1d21; color: #ececec; } }
header { padding: 0 8px; font: 16px/1.4 system-ui, "DejaVu Sans", sans-serif; }
h1 { margin: 4px 0; font-size: 1.35em; }
header p { margin: 0 0 8px; }
"""


@dataclass(frozen=True)
class Packed:
    """A compressed recording, with the title, texts and still picture for a page that plays the recording."""

    kind: Literal["replay", "instrument"]
    title: str
    caption: str  # description of the recording, and of what a reader can do with it
    alt: str  # text alternative of the still picture
    still: list[Placed] = field(repr=False)
    packed: str = field(repr=False)  # the recording as JSON, compressed with gzip and encoded in base64

    def page(self) -> str:
        """Return the HTML document of a page that plays the recording without a kernel or a network connection."""
        entry, player = _PLAYERS[self.kind]
        module = player_module(entry).replace("</script", "<\\/script")
        icon = '<link rel="icon" href="data:,">\n'  # otherwise browsers request an icon
        content = f"""<header><h1>{html.escape(self.title)}</h1><p>{html.escape(self.caption)}</p></header>
<main id="lab"></main>
<noscript>{png_img(to_png(self.still), self.alt, 800)}<p>{html.escape(self.alt)}</p></noscript>
<script type="text/plain" id="recording">{self.packed}</script>
<script type="module">
{module}
new {player}(document.getElementById("lab"), await unpacked(document.getElementById("recording").textContent));
</script>
"""
        return html_page(self.title, content, _PAGE_STYLE + style_sheet(), icon)


def packed_text(recording: dict[str, Any]) -> str:
    """Return ``recording`` as JSON, compressed and base64-encoded. Equal recordings give equal strings."""
    text = json.dumps(recording, separators=(",", ":"), ensure_ascii=False, default=list)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
