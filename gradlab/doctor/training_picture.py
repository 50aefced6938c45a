"""The picture of a watched training: what was inside ``.grad`` at each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..drawing import Drawing, draw_batch_history, to_png, to_svg
from ..formatting import png_img
from ..scenes import BatchHistory

_MOST = 4  # optimizers
_WIDE = 720  # CSS pixels


class TrainingPicture:
    """Fresh and stale batches over a training, a panel for each optimizer; a notebook shows it."""

    def __init__(self, history: Sequence[BatchHistory]) -> None:
        """Draw the first four optimizers."""
        self.drawings: list[Drawing] = [draw_batch_history(one) for one in history[:_MOST]]
        more = len(history) - len(self.drawings)
        words = [drawing.words for drawing in self.drawings] or ["No optimizer took a step while it was watched."]
        if more > 0:
            words.append(f"{more} more optimizer{' is' if more == 1 else 's are'} not drawn.")
        self.text = " ".join(words)
        """The picture in words."""

    def png(self) -> bytes:
        """Return the picture as a PNG, on white paper."""
        return to_png(self.drawings, columns=1)

    def svg(self) -> str:
        """Return the picture as SVG, on white paper."""
        return to_svg(self.drawings, columns=1)

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        if not self.drawings:
            return {"text/plain": self.text}
        return {"text/plain": self.text, "text/html": png_img(self.png(), self.text, _WIDE)}
