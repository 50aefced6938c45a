"""Figures of numbers that a notebook computes: curves over updates, and gradients or steps drawn head to tail."""

from __future__ import annotations

import base64
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...drawing import (
    Arrow,
    Axes,
    Axis,
    Dots,
    Drawing,
    Key,
    Placed,
    Text,
    arrow_ends,
    arrow_marks,
    batch_key,
    draw_comparison,
    in_rows,
    surface_axes,
    surface_marks,
    to_png,
)
from ...formatting import number_of, share_text, short
from ...scenes import Arrows, BatchArrow, Contours, Curve

CURVES_SIZE, ARROWS_SIZE = (760, 340), (380, 330)
"""Width and height of one picture in CSS pixels."""
_BOWL_START, _BOWL_SIZE = (-1.6, 1.3), (380, 400)


class CourseFigure:
    """Pictures that a notebook shows side by side, with a common title and a text description of each picture."""

    def __init__(self, *drawings: Drawing, size: tuple[int, int], title: str = "") -> None:
        """Show each drawing at ``size`` (width, height) in CSS pixels. The default title is the first drawing's."""
        self.drawings, self.title, self.size = drawings, title or drawings[0].title, size

    @property
    def placed(self) -> list[Placed]:
        """The drawings placed in a row, for ``to_png`` or ``to_svg``."""
        return in_rows(self.drawings, len(self.drawings), self.size)

    def __repr__(self) -> str:
        # JupyterLab shows the first line of a collapsed output's text, so this line must not reveal the result.
        return "\n".join([self.title, *(drawing.words.removeprefix(f"{self.title}: ") for drawing in self.drawings)])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        data = {"image/png": base64.b64encode(to_png(self.placed)).decode(), "text/plain": repr(self)}
        alt = " ".join(drawing.words for drawing in self.drawings)
        return data, {"image/png": {"width": self.size[0] * len(self.drawings), "alt": alt}}


def curves(
    lines: Mapping[str, Sequence[float]],
    title: str = "loss",
    *,
    reused: Collection[str] = (),
    mean_of: int = 1,
    first: int = 0,
    events: Mapping[int, str] | None = None,
    counted: str = "updates",
    y: str = "loss",
    ends: bool = True,
) -> CourseFigure:
    """Draw lines that show values, such as losses, over updates.

    Args:
        lines: A mapping from the name of each line to its values.
        title: The title of the picture.
        reused: Names of the lines whose loops apply gradients more than once.
        mean_of: The number of consecutive values that each point averages; the point is drawn at the last of them.
        first: The number of the update that gives the first value, or 0 for a value from before the first update.
        events: Labels for single updates, such as ``{4: "last gradient"}``.
        counted: The unit of the x axis, such as ``"epochs"``.
        y: The label of the y axis.
        ends: Whether the last value of each line is written at its end.

    Returns:
        A figure with one picture, and a text that describes the values.

    Raises:
        ValueError: ``lines`` is empty, a line is too short, or ``reused`` has an unknown name.
    """
    fewest = max(mean_of, 1)
    if not lines or not all(len(values) >= fewest for values in lines.values()):
        allowed = f"a dict of one or more names and lists of at least {number_of(fewest, 'number')}"
        raise ValueError(f"curves: lines must be {allowed}, got {dict(lines)!r:.200}")
    if unknown := set(reused) - set(lines):
        raise ValueError(f"curves: reused must be among {', '.join(lines)}, got {', '.join(sorted(unknown))}")
    drawn = {name: _curve(np.asarray(values, dtype=np.float64), mean_of, first) for name, values in lines.items()}
    drawing = draw_comparison(drawn, title, reused=reused, events=events, counted=counted, y=y, ends=ends)
    return CourseFigure(drawing, size=CURVES_SIZE)


def _curve(values: Any, mean_of: int, first: int) -> Curve:
    """Return a Curve of running means of ``values`` from update ``first`` up to the first inf or NaN."""
    broken = next(map(int, np.flatnonzero(~np.isfinite(values))), None)
    finite = values[:broken]
    means = np.convolve(finite, np.ones(mean_of) / mean_of, "valid").tolist() if len(finite) >= mean_of else []
    updates = [first + mean_of - 1 + index for index in range(len(means))]
    now = means[-1] if mean_of > 1 and means else float(values[-1])
    return Curve(updates, means, means, means, broken=broken, now=now)


def head_to_tail(gradients: Any, kept: Mapping[str, float]) -> CourseFigure:
    """Draw gradients (updates x 2 weights) head to tail, in a picture for each name in ``kept``, all at the same scale.

    ``kept`` maps a name to the share of older gradients that each update keeps, such as 1 if ``.grad`` is not cleared,
    or 0.9 for momentum 0.9. Raises ValueError if an argument is empty or a gradient is not two finite numbers.
    """
    fresh = np.asarray(gradients, dtype=np.float64)
    if fresh.ndim != 2 or fresh.shape[1] != 2 or not len(fresh) or not np.isfinite(fresh).all():
        shape = f"the shape {fresh.shape}" + " and values that are not finite" * (not np.isfinite(fresh).all())
        raise ValueError(f"head_to_tail: gradients must be one or more rows of two finite numbers, got {shape}")
    if not kept:
        raise ValueError("head_to_tail: kept must have at least one name, got none")
    ages = np.arange(len(fresh))[::-1, None]
    scenes = {name: _sum_scene(share**ages * fresh) for name, share in kept.items()}
    axes = equal_axes([arrow_ends(each) for each in scenes.values()], ("gradient of weight 1", "gradient of weight 2"))
    drawings = [_draw_sum(name, scene, axes) for name, scene in scenes.items()]
    return CourseFigure(*drawings, size=ARROWS_SIZE, title="gradients head to tail")


def bowl_steps(pictures: Mapping[str, Mapping[str, Sequence[Any]]]) -> CourseFigure:
    """Draw steps of two weights head to tail on the contours of 1/2 * (w1^2 + 0.1 * w2^2), in a picture for each title.

    ``pictures`` maps each title to paths by name. A path starts from (-1.6, 1.3), and lists the weights after each
    step. The first path is drawn with solid arrows, and the others behind it with wide, pale arrows.
    """
    edge, drawings = np.linspace(-2.0, 2.0, 81), []
    loss = 0.5 * (edge[None] ** 2 + 0.1 * edge[:, None] ** 2)
    contours = Contours(edge.tolist(), edge.tolist(), loss.tolist())
    for title, paths in pictures.items():
        marks, key, moves = [*surface_marks(contours)], [], []
        for number, (name, reached) in reversed([*enumerate(paths.items())]):
            way = np.array([_BOWL_START, *(np.asarray(weights, dtype=np.float64) for weights in reached)])
            steps = np.diff(way, axis=0)
            steps /= np.maximum(np.hypot(*steps.T) / 8.0, 1.0)[:, None]  # a step of length 8 already leaves the picture
            fill, stroke, width = ("weights/30", "weights", 1.8) if number else ("weights", "paper", 0.8)
            ends = np.hstack([way[:-1], way[:-1] + steps])
            marks += [Arrow(f"step {number} {index}", points, fill, stroke, width) for index, points in enumerate(ends)]
            key.append(Key((name,), fill, stroke))
            moves.append(f"{name} ({', '.join(short(round(float(each), 4) + 0.0) for each in way[-1] - way[0])})")
        marks.append(Dots("start", _BOWL_START, "ring", 9.0, "paper", "weights", 1.8))
        moved, (axes, _) = f"moved: {'; '.join(moves[::-1])}", surface_axes(contours, _BOWL_START)
        description = f"{title}: {moved}."
        drawings.append(Drawing(title, marks, (axes,), description, notes=((moved,),), key=tuple(key[::-1])))
    return CourseFigure(*drawings, size=_BOWL_SIZE, title="steps on the bowl")


def _sum_scene(parts: npt.NDArray[np.float64]) -> Arrows:
    """Return the gradients ``parts`` (updates x 2) as Arrows, in which all later updates apply each gradient again."""
    total = parts.sum(axis=0)
    shares = parts @ total / (float(total @ total) or 1.0)
    arrows = [
        BatchArrow((batch, batch), x, y, share, (len(parts) - batch, len(parts) - batch))
        for batch, ((x, y), share) in enumerate(zip(parts.tolist(), shares.tolist(), strict=True), start=1)
    ]
    return Arrows(arrows, tuple(total.tolist()))


def _draw_sum(name: str, scene: Arrows, axes: Axes) -> Drawing:
    count, length = len(scene.arrows), math.hypot(*scene.total)
    share = share_text(math.hypot(scene.arrows[-1].x, scene.arrows[-1].y) / (length or 1.0))
    newest = Text("newest", (f"newest: {share}",), of=f"arrow {count - 1}", where="beside", backed=True)
    description = f"{name}: {count} gradients, a sum of length {length:.2f}, the newest is {share} of it."
    key = tuple(replace(entry, texts=entry.texts[-1:]) for entry in batch_key())  # an entry's last text omits .grad
    return Drawing(name, [*arrow_marks(scene), newest], (axes,), description, key=key)


def equal_axes(points: Sequence[npt.NDArray[np.float64]], names: tuple[str, str]) -> Axes:
    """Return axes around all ``points`` (arrays of n x 2), with one scale for x and y, which keeps angles."""
    together = np.concatenate(points)
    low, high = together.min(axis=0), together.max(axis=0)
    room = max(0.08 * float((high - low).max()), 1e-12)
    x, y = (Axis(float(a) - room, float(b) + room, words=name) for a, b, name in zip(low, high, names, strict=True))
    return Axes(x, y, equal="fill")
