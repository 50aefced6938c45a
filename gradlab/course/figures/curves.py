"""Curves that a notebook has computed itself, in one picture: losses by update, with a name at the end of each."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ...drawing import Drawing, draw_comparison, to_png
from ...scenes import Curve


class CourseFigure:
    """Pictures in a notebook, side by side, with their words under one title."""

    def __init__(self, *drawings: Drawing, title: str = "") -> None:
        """Keep what is drawn; the title of a single picture is its own."""
        self.drawings, self.title = drawings, title or drawings[0].title

    def __repr__(self) -> str:
        # JupyterLab shows the first line of a folded picture's text, which must not give the outcome away.
        return "\n".join([self.title, *(drawing.words.removeprefix(f"{self.title}: ") for drawing in self.drawings)])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        png = to_png(self.drawings, len(self.drawings))
        data = {"image/png": base64.b64encode(png).decode(), "text/plain": repr(self)}
        alt = " ".join(drawing.words for drawing in self.drawings)
        return data, {"image/png": {"width": sum(drawing.width for drawing in self.drawings), "alt": alt}}


def curves(
    lines: Mapping[str, Sequence[float]],
    title: str = "loss",
    *,
    stale: Collection[str] = (),
    mean_of: int = 1,
    first: int = 0,
    events: Mapping[int, str] | None = None,
    counted: str = "updates",
) -> CourseFigure:
    """Draw numbers by update, a line for each name; ``stale`` names those that apply gradients again.

    The first number is the one before any update, at update 0, unless ``first`` names another. Each point is the mean
    of ``mean_of`` numbers and stands at the last of them. ``events`` marks updates: ``{4: "last gradient"}``.
    ``counted`` names what else the axis counts, such as epochs. Raises ValueError for no lines, for an empty one, and
    for a name in ``stale`` that there is not.
    """
    if not lines or not all(len(values) >= max(mean_of, 1) for values in lines.values()):
        raise ValueError(
            f"curves: each of the lines must have {max(mean_of, 1)} numbers or more, got {dict(lines)!r:.200}"
        )
    if unknown := set(stale) - set(lines):
        raise ValueError(f"curves: stale must be among {', '.join(lines)}, got {', '.join(sorted(unknown))}")
    drawn = {name: _curve(np.asarray(values, dtype=np.float64), mean_of, first) for name, values in lines.items()}
    return CourseFigure(draw_comparison(drawn, title, 760, 340, stale=stale, events=events, counted=counted))


def _curve(values: Any, mean_of: int, first: int) -> Curve:
    wrong = np.flatnonzero(~np.isfinite(values))
    broken = int(wrong[0]) if len(wrong) else None
    means = np.convolve(values[: wrong[0]] if len(wrong) else values, np.ones(mean_of) / mean_of, mode="valid")
    updates = np.arange(len(means)) + mean_of - 1 + first
    listed: list[float] = means.tolist()
    now = listed[-1] if mean_of > 1 and listed else float(values[-1])
    return Curve(updates.tolist(), listed, listed, listed, broken=broken, now=now)
