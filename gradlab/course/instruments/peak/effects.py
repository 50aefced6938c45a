"""Which switch moved the peak: the peak again, with one switch at a time put back to what it was at the start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ....drawing import Drawing, PanelBuilder, Path, Spot, make_box, shorten, text_width
from ....formatting import bytes_text
from .measuring import Mountain
from .settings import PeakSettings

_NAMES = {"set_to_none": "set_to_none", "place": "zero_grad", "amp": "AMP", "checkpoint": "checkpointing"}
_ROW, _FIRST = 22.0, 52.0  # CSS pixels
_SIZE = 12.0


@dataclass(frozen=True)
class Effect:
    """One switch that differs from the start."""

    name: str
    """Of the setting."""
    words: str
    """``AMP off → bf16``."""
    moved: int
    """Bytes by which the peak is higher than with this one switch put back; negative where it is lower."""

    @property
    def text(self) -> str:
        """The effect in words: ``AMP off → bf16: −72 KiB``."""
        return f"{self.words}: {signed(self.moved)}"


def effects(settings: PeakSettings, start: PeakSettings, measure: Callable[[PeakSettings], Mountain]) -> list[Effect]:
    """Measure what each changed switch does to the peak while the others stay, the largest effect first."""
    peak = measure(settings).peak
    found = []
    for name in settings.changed_from(start):
        before, after = getattr(start, name), getattr(settings, name)
        words = f"{_NAMES.get(name, name)} {'' if name == 'place' else f'{_value(before)} '}\u2192 {_value(after)}"
        found.append(Effect(name, words, peak - measure(settings.put_back(name, start)).peak))
    return sorted(found, key=lambda effect: -abs(effect.moved))


def signed(size: int) -> str:
    """Write bytes with a sign: ``−72 KiB``, ``+4.1 KiB``, ``0 B``."""
    return f"+{bytes_text(size)}" if size > 0 else bytes_text(size)


def draw_effects(found: Sequence[Effect], total: int, width: int, height: int) -> Drawing:
    """Draw a bar for each changed switch, to the left where it lowers the peak; ``total`` is all of them together."""
    panel = PanelBuilder("which switch moved the peak", width, height)
    if not found:
        panel.label("nothing", [Spot("nothing is changed yet: turn a switch", 8.0, 36.0)])
        return panel.finish("Nothing is changed yet.")
    panel.label("how", [Spot(text, 8.0, 33.0) for text in _how(len(found))], role="grey-text")
    rows = [(effect.words, effect.moved, effect.name) for effect in found]
    rows += [("all together", total, "all")] * (len(found) > 1)
    names = min(max(text_width(words, _SIZE) for words, _, _ in rows) + 16, 0.5 * width)
    values = max(text_width(signed(moved), _SIZE) for _, moved, _ in rows) + 14
    left, right = names, width - values
    largest = max(*(abs(moved) for _, moved, _ in rows), 1)
    middle = (left + right) / 2
    row = min(_ROW, (height - _FIRST - 8) / len(rows))
    bottom = _FIRST + row * len(rows)
    for at, (words, moved, name) in enumerate(rows):
        y = _FIRST + row * (at + 0.5)
        end = middle + (right - left - 12) / 2 * moved / largest
        side = f"{words}: the peak is {bytes_text(abs(moved))} {'higher' if moved > 0 else 'lower'}"
        if moved:
            box = min(middle, end), y - 0.32 * row, max(middle, end), y + 0.32 * row
            look = {"fill": "grey/70" if name == "all" else "grey/40", "hatch": "//" if moved > 0 else ""}
            panel.add(make_box(f"effect {name}", *box, stroke="ink", width=1.0, words=side, **look))
        said = shorten(words, names - 12, _SIZE)
        panel.label(f"switch {name}", [Spot(said, 8.0, y)], size=_SIZE, bold=name == "all")
        panel.label(f"moved {name}", [Spot(signed(moved), width - 6.0, y, "end")], size=_SIZE, bold=name == "all")
    panel.add(Path("as it was", (middle, _FIRST - 4, middle, bottom), stroke="ink", width=1.2))
    spots = [Spot(text, middle, bottom + 10, "middle") for text in ("\u2190 lower \u00b7 higher \u2192",)]
    panel.label("sides", spots, size=11.0)
    return panel.finish(effects_text(found, total))


def effects_height(count: int) -> int:
    """Return the height, in CSS pixels, that the bars of ``count`` changed switches need."""
    return round(_FIRST + _ROW * (count + (count > 1)) + 22)


def effects_text(found: Sequence[Effect], total: int, most: int | None = None) -> str:
    """Say what all switches did together, and each by itself: the ``most`` largest, the others are counted."""
    if not found:
        return "Nothing is changed yet."
    if len(found) == 1:
        return f"Against the start: {found[0].text}."
    each = "; ".join(effect.text for effect in found[:most])
    more = len(found) - len(found[:most])
    each += f"; {more} more in the bars" * bool(more)
    return f"Against the start {signed(total)}. Each switch by itself, the others as they are: {each}."


def _how(count: int) -> tuple[str, ...]:
    if count == 1:
        return ("against the same update with it put back",)
    return ("each against the same update with only it put back", "each with only that one put back")


def _value(value: Any) -> str:
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
