"""Instruments: controls, with pictures and descriptions that are computed at once from the values of the controls.

An instrument is a pure function from the values of its controls to a View. Time, such as a moment of an update, is also
a control: a slider that plays. So every state can be recorded, and a page without a kernel is a table of such states.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar

from .._process import lock, main_thread
from ..drawing import Drawing, Listing, Placed, in_rows
from .controls import Control
from .frames import Frame, FrameWriter, Reply, Request, RequestError, coloured, reply_to, shorten_message
from .live import Live, Packed, packed_text

Settings = Mapping[str, Any]
MAX_CACHED = 64  # maximum number of cached views of an instrument, and of forecasts of a ForecastLab
Actions = Mapping[str, Callable[[Request], None]]  # the functions that answer requests, by the kind of request
_QUIET = ("hello", "press")  # kinds of requests after which an error is still shown


@dataclass(frozen=True)
class View:
    """The content of an instrument at some settings."""

    panels: Mapping[str, Drawing]
    state: str  # the result in a sentence or two, with its numbers
    note: str = ""
    code: str = ""  # the plain PyTorch that was run, or "" if there is none
    off: Sequence[str] = ()  # names of the controls that have no effect now
    lit: tuple[int, int] = (0, 0)  # the first and the last highlighted line of the code, or (0, 0)
    wrong: int = 0  # the line of a mistake, or 0 if there is none


class Instrument(Live):
    """Controls with pictures and descriptions that depend only on the controls' values.

    Keyword arguments set start values by name. Raises ValueError for an unknown name or an invalid value; later errors
    are shown as text, and the picture stays.
    """

    title: ClassVar[str]
    size: ClassVar[tuple[int, int]] = (460, 300)  # of a panel in CSS pixels, in still pictures and without a kernel

    def __init__(self, **start: Any) -> None:
        controls, owner = {control.name: control for control in self.controls()}, type(self).__name__
        for name, value in start.items():
            if name not in controls:
                raise ValueError(f"{owner}: there is no control {name!r}; choose from {', '.join(controls)}")
            controls[name] = replace(controls[name], start=controls[name].check(owner, value))
        self._controls = controls
        self.values: dict[str, Any] = {name: control.start for name, control in controls.items()}
        self._cached_view = lru_cache(MAX_CACHED)(lambda *pairs: self.render(dict(pairs)))
        self._alarm = ""
        self._writer = FrameWriter()

    @abstractmethod
    def controls(self) -> list[Control]:
        """Return the controls, in the order in which they are shown."""

    @abstractmethod
    def render(self, settings: Settings) -> View:
        """Return the View at these settings, which contain a valid value for every control."""

    def recorded(self) -> Iterable[Settings]:
        """Yield the settings that a page without a kernel contains, each as its changes from the start values."""
        for name, control in self._controls.items():
            for value in control.values:
                yield {name: value}

    def turn(self, name: str, value: Any) -> None:
        """Set one control; an invalid value shows a message and changes nothing."""
        self._attempt(partial(self._turn, name, value))

    def handle(self, message: Mapping[str, Any]) -> Reply:
        """Return the reply to a message from the browser (see ``front/README.md``). Raises nothing."""
        with lock:
            self._replying = True
            if not isinstance(message, Mapping) or message.get("do") not in _QUIET:
                self._alarm = ""
            try:
                actions = self.actions()
                return reply_to(message, self, lambda request: actions[request.kind(actions)](request))
            finally:
                self._replying = False

    def actions(self) -> Actions:
        """Return the functions that answer the browser's requests, by the kind of request."""
        return {
            "hello": lambda request: self._writer.start_over(),
            "turn": self._turn_as_asked,
            "press": lambda request: None,  # only a lab answers a press
        }

    @property
    def text(self) -> str:
        """The current View's state and, if there is one, the error message."""
        return " ".join(part for part in (self._now().state, self._alarm) if part)

    def drawings(self) -> list[Drawing]:
        """Return the current Drawings of the panels."""
        return list(self._now().panels.values())

    def _still(self, view: View) -> list[Placed]:
        panels: list[Drawing | Listing] = list(view.panels.values())
        if view.code and len(panels) == 3:
            panels.append(self._listing(view))
        return in_rows(panels, 2, self.size)

    def _listing(self, view: View, changed: Collection[int] = ()) -> Listing:
        texts = [text for text in (view.state, view.note) if text]
        return Listing(view.code, self.size[0], range(view.lit[0], view.lit[1] + 1), changed, texts)

    def _picture(self) -> list[Placed]:
        return self._still(self._now())

    def frame(self) -> Frame:
        """Return the changes since the previous frame."""
        view, more = self._now(), self._more()
        controls = [control.data for control in self._controls.values()]
        return self._write(self._writer, view, self.values, controls=controls, alarm=self._alarm, **more)

    def _attempt(self, action: Callable[[], object]) -> None:
        with lock:
            self._alarm = ""
            try:
                action()
            except (Exception, KeyboardInterrupt) as error:
                self.fail(error)
        self._show()

    def _turn_as_asked(self, request: Request) -> None:
        name = str(request.get("name"))
        self._writer.tell_again(name)  # so that the control shows the current value again if the new value is refused
        self._turn(name, request.get("value"))

    def _turn(self, name: str, value: Any) -> None:
        """Set a control's value if it is valid and its View can be computed; otherwise raise the error."""
        owner = type(self).__name__
        if name not in self._controls:
            raise RequestError(f"{owner}: there is no control {name!r}")
        values = {**self.values, name: self._controls[name].check(owner, value)}
        self._view_at(values)
        self.values = values

    def _now(self) -> View:
        """Return the current View; if it cannot be computed, show the error and return a View without panels."""
        try:
            return self._view_at(self.values)
        except (Exception, KeyboardInterrupt) as error:
            self.fail(error)
            return View({}, "Nothing can be shown here.")

    def _view_at(self, settings: Settings) -> View:
        return self._cached_view(*((name, settings[name]) for name in self._controls))

    def fail(self, error: Exception | KeyboardInterrupt) -> None:
        """Show an error message; an interrupt that does not come during a request is raised again, to end the cell."""
        if isinstance(error, KeyboardInterrupt):
            if not self._replying:
                raise error
            main_thread.interrupted, self._alarm = True, "Interrupted."
            return
        refused, text = isinstance(error, ValueError), str(error)
        self._alarm = shorten_message(text.removeprefix("Recipe: ") if refused else f"{type(error).__name__}: {text}")

    def _write(self, writer: FrameWriter, view: View, values: Settings, **more: Any) -> Frame:
        return writer.write(
            view.panels,
            state=view.state,
            note=view.note,
            code={"source": view.code, "html": list(coloured(view.code))},
            lit=list(view.lit),
            values=dict(values),
            off=list(view.off),
            wrong=view.wrong,
            **more,
        )

    def _more(self) -> dict[str, Any]:
        """Return further fields of a live frame (see ``front/README.md``)."""
        return {}

    def packed(self) -> Packed:
        """Return the recording for a page without a kernel. Its first setting is the start values."""
        recorded = list(self.recorded())  # called first, because ``recorded`` may add values to the controls
        controls, owner = self._controls, type(self).__name__
        start = {name: control.start for name, control in controls.items()}
        settings = [start]
        for changes in recorded:
            values = {name: controls[name].check(owner, value) for name, value in {**start, **changes}.items()}
            if values not in settings:
                settings.append(values)
        restricted = [control.restricted_to([v[name] for v in settings]) for name, control in controls.items()]
        return self._pack(restricted, settings, self._view_at)

    def _pack(
        self, controls: Iterable[Control], settings: Sequence[Settings], render: Callable[[Settings], View]
    ) -> Packed:
        """Pack the Views at these settings, with the controls whose values differ among the settings."""
        turned = [each.data for each in controls if len({repr(values[each.name]) for values in settings}) > 1]
        writer = FrameWriter()
        frames = [self._write(writer, render(values), values, controls=turned, alarm="") for values in settings]
        packed = packed_text({"title": self.title, "settings": settings, "frames": frames})
        count = f"A recording of {len(settings)} settings, each computed by PyTorch."
        caption, start = f"{count} Turn a control.", render(settings[0])
        return Packed("instrument", self.title, caption, start.state, self._still(start), packed)

    def __repr__(self) -> str:
        # JupyterLab shows the first line of a folded output's text, which must not reveal the outcome.
        return f"{self.title}\n{self.text}"
