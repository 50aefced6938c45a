"""The peak: one update's memory over time, what made its peak, and which switch moved it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from ...drawing import Drawing
from ...formatting import bytes_text
from ...widgets import Control, Instrument, View
from .peak_numbers import (
    AFTER_STEP,
    BEFORE_BACKWARD,
    BEFORE_FORWARD,
    Effect,
    PeakSettings,
    effects,
    measure_peak,
    peak_source,
)
from .peak_panels import draw_effects, draw_update_memory, effects_height, effects_text, parts_text

_START = PeakSettings()
_PLACES = (BEFORE_FORWARD, BEFORE_BACKWARD, AFTER_STEP)
_OUTLINE = "The dashed outline is the update with the settings at the start."
_BARS = "A bar is the peak now against the peak with that one switch put back; together they need not add up."
_TOLD = 3  # effects in words; the bars show them all
_HINT = "How far set_to_none moves the peak depends on where zero_grad stands: try it in all three places (minGPT#106)."


class Peak(Instrument):
    """One update of a stack of layers, measured as its loop runs.

    ``width``, ``depth`` and ``batch`` are the model's and the rows of one micro-batch; ``optimizer``, ``set_to_none``,
    ``place`` (of ``zero_grad``), ``accumulate``, ``amp`` and ``checkpoint`` are how it is trained. Keyword arguments
    set the start, with which later settings are compared.
    """

    title = "The peak"

    def controls(self) -> list[Control]:
        """Return the model's size, then the switches of the loop."""
        return [
            Control.slider("width", "width", _START.width, [16, 32, 64, 128]),
            Control.slider("depth", "depth", _START.depth, [1, 2, 4, 6, 8]),
            Control.slider("batch", "batch", _START.batch, [2**power for power in range(10)]),
            Control.slider("accumulate", "accumulate", _START.accumulate, [1, 2, 4]),
            Control.choice("optimizer", "optimizer", _START.optimizer, ["sgd", "momentum", "adam"]),
            Control.choice("place", "zero_grad", _START.place, _PLACES),
            Control.tick("set_to_none", "set_to_none", _START.set_to_none),
            Control.choice("amp", "AMP", _START.amp, ["off", "bf16", "fp16"]),
            Control.tick("checkpoint", "checkpointing", _START.checkpoint),
        ]

    def render(self, at: Mapping[str, Any]) -> View:
        """Measure these settings and, for the comparison, each with one switch put back to the start."""
        settings, first = PeakSettings(**at), self._first
        now, start = measure_peak(settings), measure_peak(first)
        found, total = effects(settings, first, measure_peak), now.peak - start.peak
        notes = [_OUTLINE, *[_BARS] * (len(found) > 1), *[_HINT] * _about_clearing(found)]
        state = f"Peak {bytes_text(now.peak)} in {now.where}: {parts_text(now)}."
        return View(
            panels={
                "memory": lambda width, height: draw_update_memory(now, start, width, height),
                "effects": lambda width, height: draw_effects(found, total, width, height),
            },
            state=f"{state} {effects_text(found, total, _TOLD)}" if found else state,
            note=" ".join(notes) if found else "",
            code=peak_source(settings),
            lit=now.lines,
        )

    def _still(self, view: View) -> tuple[list[Drawing], int, Drawing | None]:
        """Return the memory beside the loop and its words; bars stand below it where several switches have changed.

        One switch has moved the peak by what the words say, so a bar for it would tell nothing more.
        """
        if not view.code:  # nothing could be measured
            return super()._still(view)
        before = set(peak_source(self._first).splitlines())
        changed = [number for number, line in enumerate(view.code.splitlines(), 1) if line not in before]
        loop = self._code_drawing(view, changed)
        wide, tall = self.size
        switches = sum(self.values[name] != control.start for name, control in self._controls.items())
        bars = effects_height(switches) if switches > 1 else 0
        drawn = [view.panels["memory"](wide, max(tall, loop.height - bars))]
        if bars:
            drawn.append(view.panels["effects"](wide, bars))
        return drawn, 1, loop

    @property
    def _first(self) -> PeakSettings:
        return PeakSettings(**{name: control.start for name, control in self._controls.items()})

    @property
    def at_peak(self) -> Mapping[str, int]:
        """Bytes by category at the peak of the settings chosen now."""
        return measure_peak(PeakSettings(**self.values)).at_peak

    def recorded(self) -> Iterable[Mapping[str, Any]]:
        """Return each switch by itself, and the switches of ``zero_grad`` with a large and a small batch."""
        yield from super().recorded()
        for optimizer, place, clear, batch in product(("sgd", "adam"), _PLACES, (True, False), (4, 128)):
            yield {"optimizer": optimizer, "place": place, "set_to_none": clear, "batch": batch}


def _about_clearing(found: Sequence[Effect]) -> bool:
    return any(effect.name in ("set_to_none", "place") for effect in found)


def peak(**start: Any) -> Peak:
    """Return the peak; keyword arguments set its start: ``peak(optimizer="sgd", batch=8)``."""
    return Peak(**start)
