"""Play, Pause, one statement, one update, reset, and how fast.

The clock is ``ipywidgets.Play``, which ticks in the browser and waits for the kernel by itself. It is hidden behind
buttons with words on them: its own have none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

SPEEDS = (
    ("statements", 0.0),
    ("1 update/s", 1.0),
    ("10 updates/s", 10.0),
    ("60 updates/s", 60.0),
    ("full speed", float("inf")),
)
_DEFAULT = 60.0  # fast enough to flow, slow enough that a swing can be followed
_STATEMENT_EVERY = 0.35  # seconds: slow enough to read along
_SLICE = 0.01  # seconds of training between two frames at full speed


class Player:
    """The buttons and the clock; it calls ``on_tick`` while playing."""

    def __init__(
        self,
        on_tick: Callable[[], None],
        on_pause: Callable[[], None],
        on_statement: Callable[[], None],
        on_update: Callable[[], None],
        on_reset: Callable[[], None],
        *,
        with_speed: bool = True,
    ) -> None:
        """Make the widgets; nothing plays yet."""
        self._on_tick, self._on_pause = on_tick, on_pause
        self._last = self._fraction = 0.0  # when the last tick came, and what it left over of an update
        self._clock = widgets.Play(min=0, max=2**31 - 1, interval=25, layout=widgets.Layout(display="none"))
        self._running = "playing" if self._clock.has_trait("playing") else "_playing"  # ipywidgets 8 and 7
        self._play = widgets.ToggleButton(description="Play", icon="play", layout=_auto(), button_style="primary")
        self._statement = _button("1 statement", "step-forward", on_statement)
        self._update = _button("1 update", "fast-forward", on_update)
        self._reset = _button("Reset", "refresh", on_reset)
        self._speed = widgets.Dropdown(
            description="speed",
            options=list(SPEEDS),
            value=_DEFAULT,
            layout=widgets.Layout(width="170px"),
            style={"description_width": "initial"},
        )
        # The browser stops its own clock at the very click, however busy the kernel is.
        self._link = widgets.jslink((self._play, "value"), (self._clock, self._running))
        self._play.observe(self._toggled, names="value")
        self._clock.observe(self._ticked, names="value")
        buttons = [self._play, self._statement, self._update, self._reset, *([self._speed] if with_speed else [])]
        self.widget = widgets.Box([*buttons, self._clock])
        self.widget.add_class("gradlab-bar")
        # The clock of a Lab whose cell was run again or deleted would tick on unseen, and train on.
        self.widget._view_count = 0  # from now on the front end keeps count
        self.widget.observe(self._seen, names="_view_count")

    @property
    def playing(self) -> bool:
        """True between Play and Pause."""
        return bool(self._play.value)

    def due(self) -> dict[str, Any]:
        """Return what is due since it was asked last: "statements", "updates" or "seconds" of training, or nothing."""
        now, speed = time.perf_counter(), float(self._speed.value)
        passed = min(now - self._last, 0.5)
        if speed == 0.0:
            if passed < _STATEMENT_EVERY:
                return {}
            self._last = now
            return {"statements": 1}
        self._last = now
        if speed == float("inf"):
            return {"seconds": _SLICE}
        self._fraction += passed * speed
        whole = int(self._fraction)
        self._fraction -= whole
        return {"updates": whole} if whole else {}

    def pause(self) -> None:
        """Stop the clock."""
        self._play.value = False

    def _toggled(self, change: dict[str, bool]) -> None:
        playing = change["new"]
        self._play.description, self._play.icon = ("Pause", "pause") if playing else ("Play", "play")
        setattr(self._clock, self._running, playing)  # for a front end that has not made the link
        if not playing:
            self._on_pause()

    def _seen(self, change: dict[str, int]) -> None:
        if not change["new"] and self.playing:
            self.pause()

    def _ticked(self, change: dict[str, int]) -> None:
        if self.playing:
            self._on_tick()


def _button(words: str, icon: str, on_click: Callable[[], None]) -> widgets.Button:
    button = widgets.Button(description=words, icon=icon, layout=_auto())
    button.on_click(lambda _: on_click())
    return button


def _auto() -> widgets.Layout:
    return widgets.Layout(width="auto")
