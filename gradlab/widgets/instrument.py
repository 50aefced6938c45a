"""Instruments: controls, with pictures and texts that are computed from the values of the controls and nothing else.

Time is no exception: where an instrument shows how an update proceeds, the moment is the value of a slider, which can
play. Views can therefore be computed in advance: a page without a kernel contains one for each recorded setting.
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
MAX_CACHED = 64  # maximum number of Views that an Instrument caches, and of forecasts that a ForecastLab caches
Actions = Mapping[str, Callable[[Request], None]]  # kind of a request -> the function that handles it
_QUIET = ("hello", "press")  # kinds of requests that do not remove an error message


@dataclass(frozen=True)
class View:
    """The panels, texts and code that an instrument shows for given values of its controls."""

    panels: Mapping[str, Drawing]
    state: str  # one or two sentences that state the result, with numbers
    note: str = ""
    code: str = ""  # the plain PyTorch that was run, or "" if there is none
    off: Sequence[str] = ()  # names of the controls that have no effect now
    lit: tuple[int, int] = (0, 0)  # first and last highlighted line of ``code``, or (0, 0) for none
    wrong: int = 0  # line of ``code`` that contains a mistake, or 0 if there is none


class Instrument(Live):
    """Controls, with pictures and texts that depend only on the controls' values.

    Keyword arguments set the start values of controls by name. Raises ValueError for an unknown name or an invalid
    value. A later error, such as an invalid value in ``turn``, is shown as a message, and the pictures do not change.
    """

    title: ClassVar[str]
    size: ClassVar[tuple[int, int]] = (460, 300)  # width and height of a panel in a still picture, in CSS pixels

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
        """Return the View for ``settings``, a mapping from the name of each control to a valid value."""

    def recorded(self) -> Iterable[Settings]:
        """Yield the settings to record for a page without a kernel, each as the values that replace start values."""
        for name, control in self._controls.items():
            for value in control.values:
                yield {name: value}

    def turn(self, name: str, value: Any) -> None:
        """Set the control ``name`` to ``value``; if that fails, show an error message and keep the old value."""
        self._attempt(partial(self._turn, name, value))

    def handle(self, message: Mapping[str, Any]) -> Reply:
        """Return the reply to a message from the browser, as ``front/README.md`` describes; no error is raised."""
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
        """Return a mapping from the kind of a browser's request to the function that handles the request."""
        return {
            "hello": lambda request: self._writer.start_over(),
            "turn": self._turn_as_asked,
            "press": lambda request: None,  # a press has an effect only in a Lab
        }

    @property
    def text(self) -> str:
        """The sentences of the current View's ``state``, followed by any error message."""
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
        """Return the next frame: a dict with the fields that have changed since the previous frame."""
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
        self._writer.tell_again(name)  # if the new value is refused, the control must show the current value again
        self._turn(name, request.get("value"))

    def _turn(self, name: str, value: Any) -> None:
        """Set a control. Raises an error if the value is invalid or the View at the new value cannot be computed."""
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
        """Show ``error`` as a message, but raise a KeyboardInterrupt again unless a request is being answered."""
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
        """Return the fields that a subclass adds to frames in a notebook; ``front/README.md`` describes all fields."""
        return {}

    def packed(self) -> Packed:
        """Return a recording of the View at the start values and of the Views at the settings from ``recorded``."""
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
        """Return a recording of the Views at ``settings``; controls with one value in all settings are left out."""
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
