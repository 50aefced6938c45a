"""Instruments: controls, and pictures and words that follow from them at once.

An instrument is a pure function from the values of its controls to a View. What moves in time, as a moment of an
update, is one more control: a slider that plays. So every state can be recorded, and a page without a kernel is a table
of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from .._process import lock
from ..drawing import Drawing, draw_loop, to_png, to_svg
from ..formatting import join_words
from .code import coloured
from .export import LiveView, mimebundle
from .frames import Frame, FrameWriter
from .knobs import Knob
from .replay_page import replay_page
from .requests import PanelSize, RequestError, cut_words, panel_size, read_number

Settings = Mapping[str, Any]
DrawPanel = Callable[[int, int], Drawing]
_KEPT = 64  # views
_NO_EFFECT = ("press", "zoom")  # a panel asks for them, and only a lab can do them
_KINDS = (".png", ".svg", ".html")


@dataclass(frozen=True)
class View:
    """What an instrument shows at some settings."""

    panels: Mapping[str, DrawPanel]
    """Name to a function of width and height in CSS pixels."""
    state: str
    """The result in a sentence or two, with its numbers."""
    note: str = ""
    code: str = ""
    """The plain PyTorch that was run, "" for none."""
    off: Sequence[str] = field(default_factory=tuple)
    """The knobs that have no effect now."""
    lit: tuple[int, int] = (0, 0)
    """The first and the last line of the code that is lit."""
    wrong: int = 0
    """The line of a mistake, 0 for none."""


class Instrument(ABC):
    """Controls with pictures and words that answer them; what it shows depends on the values of the controls only.

    Keyword arguments set start values by name. Raises ValueError for a name or a value that there is not; what is wrong
    later is said in words, and the picture stays.
    """

    title: ClassVar[str]
    size: ClassVar[tuple[int, int]] = (460, 300)
    """CSS pixels of a panel in still pictures and on a page without a kernel."""

    def __init__(self, **start: Any) -> None:
        """Set it up; nothing is computed before it is shown."""
        knobs = {knob.name: knob for knob in self.knobs()}
        for name, value in start.items():
            if name not in knobs:
                raise ValueError(f"{type(self).__name__}: there is no control {name!r}; there are {', '.join(knobs)}")
            knobs[name] = knobs[name].starting_at(type(self).__name__, value)
        self._knobs = knobs
        self.values: dict[str, Any] = {name: knob.start for name, knob in knobs.items()}
        """What the controls are set to."""
        self._views: dict[tuple[Any, ...], View] = {}
        self._shown: View | None = None
        self._alarm = ""
        self._size = PanelSize(*self.size, self.size[0])
        self._writer = FrameWriter()
        self._view: LiveView | None = None
        self._answering = False

    # What each instrument says ----------------------------------------------------------------------------------------

    @abstractmethod
    def knobs(self) -> list[Knob]:
        """Return the controls, in their order."""

    @abstractmethod
    def look(self, at: Settings) -> View:
        """Return what is seen at these settings, which have been checked."""

    def recorded(self) -> Iterable[Settings]:
        """Return the settings that a page without a kernel holds, each as what differs from the start."""
        for name, knob in self._knobs.items():
            for value in [knob.start] if knob.kind == "order" or knob.step else knob.values:
                yield {name: value}

    # What the learner does --------------------------------------------------------------------------------------------

    def turn(self, name: str, value: Any) -> None:
        """Turn one control; a value that it cannot have is told in words, and nothing changes."""
        with lock:
            self._alarm = ""
            self._guarded(lambda: self._turn(name, value))
        self._show()

    def handle(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what a request of the browser asks (``front/README.md``), and return the answer; nothing is raised."""
        with lock:
            self._answering = True
            if request.get("do") not in ("hello", "size"):  # these say nothing about what is wrong
                self._alarm = ""
            try:
                self._guarded(lambda: self._do(request))
                return {"n": request.get("n"), "client": request.get("client"), "frames": [self.frame()]}
            finally:
                self._answering = False

    @property
    def text(self) -> str:
        """What is seen, in words."""
        return " ".join(part for part in (self._now().state, self._alarm) if part)

    # What is shown ----------------------------------------------------------------------------------------------------

    def drawings(self) -> list[Drawing]:
        """Return the panels as they are now."""
        return [panel(*self.size) for panel in self._now().panels.values()]

    def _still(self, view: View) -> tuple[list[Drawing], int, Drawing | None]:
        """Return what a still shows: panels, the number of columns, and what stands at the left of them, if anything.

        The code that ran, with its words, is one of the panels where a place is left for it.
        """
        drawn = [panel(*self.size) for panel in view.panels.values()]
        if view.code and len(drawn) == 3:
            drawn.append(self._code_drawing(view))
        return drawn, 2, None

    def _code_drawing(self, view: View, changed: Collection[int] = ()) -> Drawing:
        """Draw the code that ran, with its lines lit and those marked that a switch changed, and the words below."""
        words = [said for said in (view.state, view.note) if said]
        return draw_loop(view.code, range(view.lit[0], view.lit[1] + 1), changed, words, self.size[0])

    def _png(self, view: View) -> bytes:
        drawn, columns, beside = self._still(view)
        return to_png(drawn, columns, beside=beside)

    def _alt(self) -> str:
        """Return the words for who cannot see the still."""
        return self.text

    def frame(self) -> Frame:
        """Return what has changed since the frame before."""
        return self._write(self._writer, self._now(), self.values, self._size, self._alarm)

    def save(self, path: str | Path) -> Path:
        """Write the panels as ``.png`` or ``.svg``, or all that is recorded as a page, ``.html``; return the path."""
        if not isinstance(path, (str, Path)) or Path(path).suffix not in _KINDS:
            kinds = join_words(_KINDS, "or")
            raise ValueError(f"{type(self).__name__}.save: path must end in {kinds}, got {str(path)!r}")
        target = Path(path)
        with lock:
            if target.suffix == ".png":
                target.write_bytes(self._png(self._now()))
            elif target.suffix == ".svg":
                drawn, columns, beside = self._still(self._now())
                target.write_text(to_svg(drawn, columns, beside=beside), encoding="utf-8")
            else:
                target.write_text(self._page(), encoding="utf-8")
        return target

    def tell_progress(self, share: float | None) -> None:
        """Show how far a long computation is, from 0 to 1; None ends it."""
        if self._view is not None:
            self._view.front.send({"progress": share})

    # How it is done ---------------------------------------------------------------------------------------------------

    def _do(self, request: Mapping[str, Any]) -> None:
        do, name = request.get("do"), str(request.get("name"))
        if do == "hello":
            self._writer.start_over()
        elif do == "turn":
            self._writer.tell_again(name)  # the browser shows what was chosen, which may not be taken
            self._turn(name, request.get("value"))
        elif do == "drag":
            self._turn(name, self._knob(name).nearest(read_number(request, "x")))
        elif do == "size":
            self._size = panel_size(request)
        elif do not in _NO_EFFECT:
            raise RequestError(f"{type(self).__name__} knows no request {do!r}")

    def _knob(self, name: str) -> Knob:
        if name not in self._knobs:
            raise RequestError(f"{type(self).__name__}: there is no control {name!r}")
        return self._knobs[name]

    def _turn(self, name: str, value: Any) -> None:
        """Take a value if it is one, and if what is seen then can be worked out."""
        taken = self._knob(name).check(type(self).__name__, value)
        self._shown = self._seen({**self.values, name: taken})
        self.values[name] = taken

    def _now(self) -> View:
        """Return what is seen now; an instrument that cannot show its start says why."""
        if self._shown is None:
            self._guarded(lambda: setattr(self, "_shown", self._seen(self.values)))
        return self._shown or View({}, "Nothing can be shown here.")

    def _seen(self, at: Settings) -> View:
        key = tuple(at[name] for name in self._knobs)
        view = self._views.pop(key, None) or self.look(dict(at))
        self._views[key] = view
        while len(self._views) > _KEPT:
            self._views.pop(next(iter(self._views)))
        return view

    def _guarded(self, action: Callable[[], object]) -> None:
        """Do something for the learner; what goes wrong is said in words."""
        try:
            action()
        except KeyboardInterrupt:
            self._alarm = "Interrupted."
        except Exception as error:  # a traceback under a notebook cell helps nobody
            known = isinstance(error, ValueError)
            self._alarm = cut_words(str(error) if known else f"{type(error).__name__}: {error}")

    def _show(self) -> None:
        """Tell the browser, if the answer to its own request does not."""
        if self._view is not None and not self._answering:
            self._view.front.push(self.frame())

    def _write(
        self,
        writer: FrameWriter,
        view: View,
        values: Settings,
        size: PanelSize,
        alarm: str,
        knobs: Iterable[Knob] | None = None,
    ) -> Frame:
        return writer.write(
            {name: panel(*size.of(at, len(view.panels))) for at, (name, panel) in enumerate(view.panels.items())},
            state=view.state,
            alarm=alarm,
            note=view.note,
            code={"source": view.code, "html": list(coloured(view.code))},
            lit=list(view.lit),
            controls=[knob.control for knob in (self._knobs.values() if knobs is None else knobs)],
            values=dict(values),
            off=list(view.off),
            **{"wrong": view.wrong, **({} if knobs is not None else self._more())},
        )

    def _more(self) -> dict[str, Any]:
        """Return what else a live frame tells, by the keys in ``front/README.md``."""
        return {}

    def _page(self) -> str:
        """Return the page that holds what is recorded, the start first."""
        recorded = list(self.recorded())  # which may add values to the knobs
        start = {name: knob.start for name, knob in self._knobs.items()}
        settings = [start]
        for changes in recorded:
            at = {name: self._knobs[name].check(type(self).__name__, v) for name, v in {**start, **changes}.items()}
            if at not in settings:
                settings.append(at)
        held = [knob.only([at[name] for at in settings]) for name, knob in self._knobs.items()]
        turned = [knob for knob in held if len({repr(at[knob.name]) for at in settings}) > 1]
        writer, frames = FrameWriter(), []
        for at in settings:
            size = PanelSize(*self.size, self.size[0])
            frames.append(self._write(writer, self._seen(at), at, size, "", turned))
        seen = self._seen(start)
        png = self._png(seen)
        recording = {"title": self.title, "settings": settings, "frames": frames}
        caption = (
            f"A recording of {len(settings)} settings, each computed by PyTorch. It needs no kernel: turn a control."
        )
        how = {"entry": "instrument_page", "start": "startInstrument"}
        return replay_page(recording, self.title, caption, seen.state, png, **how)

    def __repr__(self) -> str:
        # JupyterLab shows the first line of a folded picture's text, which must not give the outcome away.
        return f"{self.title}\n{self.text}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give the live view, and beside it the picture and the words that a saved notebook keeps."""
        with lock:
            if self._view is None:
                self._view = LiveView("instrument", self.handle)
            return mimebundle(self._view, self._png(self._now()), self._alt(), repr(self))
