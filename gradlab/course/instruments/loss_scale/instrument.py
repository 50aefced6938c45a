"""The loss scale: drag it, and see which gradients a 16-bit backward pass loses; watch GradScaler find one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from ....widgets import Instrument, Knob, Settings, View
from .gradients import DTYPES, Outcome, gradients_of, number_line, outcome_of
from .panels import draw_gradients, draw_walk
from .subjects import SUBJECTS, Subject, make_subject
from .walk import WALK_UPDATES, Walk, walk
from .words import CONVERSION_NOTE, code_text, conversion_words, outcome_words, scale_text, walk_words

_SCALES = [2**power for power in range(25)]
_INIT_SCALES = [1, 256, 65536, 2**24]
_GROWTH_INTERVALS = [2, 5, 10, 2000]


class LossScale(Instrument):
    """Real gradients over the number lines of fp16 and bf16 at a loss scale, beside a run of GradScaler."""

    title = "The loss scale"

    def __init__(self, **start: Any) -> None:
        """Set start values by name, for example ``scale=65536``."""
        # What was measured stays: the same settings give the same numbers, and a drag comes back to them.
        self._subjects: dict[str, Subject] = {}
        self._exact: dict[str, Tensor] = {}
        self._outcomes: dict[tuple[str, str, int], Outcome] = {}
        self._walks: dict[tuple[str, str, int, int], Walk] = {}
        self._lines = [number_line(format) for format in DTYPES]
        super().__init__(**start)

    def knobs(self) -> list[Knob]:
        """Return the controls."""
        return [
            Knob.choice("model", "model", "weighted", [(words, name) for name, words in SUBJECTS.items()]),
            Knob.choice("dtype", "autocast", "fp16", list(DTYPES)),
            Knob.slider("scale", "loss scale", 1, _SCALES, text=scale_text),
            Knob.choice("init_scale", "init_scale", 65536, [(scale_text(scale), scale) for scale in _INIT_SCALES]),
            Knob.choice("growth_interval", "growth_interval", 2, [(f"{n:,}", n) for n in _GROWTH_INTERVALS]),
            Knob.slider("update", "update", WALK_UPDATES, list(range(WALK_UPDATES + 1)), plays=True),
        ]

    def look(self, at: Settings) -> View:
        """Return both panels for these settings."""
        model, dtype, scale, update = at["model"], at["dtype"], at["scale"], at["update"]
        init_scale, growth_interval = at["init_scale"], at["growth_interval"]
        outcome = self._outcome(model, dtype, scale)
        converted = conversion_words(outcome)
        run = self._walk(model, dtype, init_scale, growth_interval)
        return View(
            panels={
                "gradients": lambda width, height: draw_gradients(SUBJECTS[model], outcome, self._lines, width, height),
                "scaler": lambda width, height: draw_walk(run, update, width, height),
            },
            state=f"{outcome_words(outcome)} {converted}{walk_words(run, update)}",
            note=CONVERSION_NOTE if converted else "",
            code=code_text(self._subject(model), dtype, scale, init_scale, growth_interval),
        )

    def recorded(self) -> Iterable[Settings]:
        """Record every scale for each kind of gradients, every update, and every setting of the scaler."""
        for model in SUBJECTS:
            yield from ({"model": model, "scale": scale} for scale in _SCALES)
        yield from ({"dtype": "bf16", "scale": scale} for scale in _SCALES)
        yield from ({"update": update} for update in range(WALK_UPDATES + 1))
        for init_scale in _INIT_SCALES:
            yield from ({"init_scale": init_scale, "growth_interval": n} for n in _GROWTH_INTERVALS)

    def _subject(self, model: str) -> Subject:
        if model not in self._subjects:
            self._subjects[model] = make_subject(model)
        return self._subjects[model]

    def _outcome(self, model: str, dtype: str, scale: int) -> Outcome:
        subject, key = self._subject(model), (model, dtype, scale)
        if model not in self._exact:
            self._exact[model] = gradients_of(subject, None, 1.0)
        if key not in self._outcomes:
            self._outcomes[key] = outcome_of(self._exact[model], gradients_of(subject, dtype, scale), dtype, scale)
        return self._outcomes[key]

    def _walk(self, model: str, dtype: str, init_scale: int, growth_interval: int) -> Walk:
        key = (model, dtype, init_scale, growth_interval)
        if key not in self._walks:
            self._walks[key] = walk(self._subject(model), dtype, float(init_scale), growth_interval)
        return self._walks[key]


def loss_scale(**start: Any) -> LossScale:
    """Return the loss scale instrument; start values by name: model, dtype, scale, init_scale, growth_interval."""
    return LossScale(**start)
