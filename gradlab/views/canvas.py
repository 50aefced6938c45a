"""Canvas: one panel, drawn over a kept background, and its picture as PNG bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from ..formatting import short
from .label import Label
from .palette import INK
from .png import Encoder, Pixels
from .style import own_look

SceneType = TypeVar("SceneType")


class Canvas(Generic[SceneType]):
    """A panel: artists are made once, a scene moves them, and only they are drawn over the kept background.

    ``width`` and ``height`` are CSS pixels; ``density`` real pixels are drawn for each. A subclass makes its artists
    in ``build`` and moves them in ``draw_scene``. Whatever changes the background calls ``refresh``.
    """

    colours: ClassVar[tuple[str, ...]] = ()
    """Colours that the panel uses besides greys; the palette of its PNG is made of them."""
    title: ClassVar[str] = ""

    def __init__(self, width: int = 400, height: int = 260, density: float = 2.0) -> None:
        """Make the figure and its artists; nothing is drawn yet."""
        self.width, self.height = width, height
        self.redraws = 0
        self._animated: list[Artist] = []
        self._background: Any = None
        self._scene: SceneType | None = None
        self._png = b""
        self._dirty = True
        with own_look():
            self.figure = Figure(figsize=(width / 100, height / 100), dpi=100 * density, facecolor="white")
            self._canvas: Any = FigureCanvasAgg(self.figure)  # matplotlib has no types for it
            self.heading = self.add_text(0.025, self.y_from_top(17), self.title, size=13, weight="bold", animate=False)
            self.corner_text = self.add_text(0.985, self.y_from_top(17), "", size=11, ha="right")
            self.build()
        self._encoder = Encoder(self.colours)

    # What a subclass says ------------------------------------------------------------------------------------------

    def build(self) -> None:
        """Make the axes and the artists of this panel."""
        raise NotImplementedError

    def draw_scene(self, scene: SceneType) -> None:
        """Move the artists to where the scene says."""
        raise NotImplementedError

    # What a caller does --------------------------------------------------------------------------------------------

    def update(self, scene: SceneType) -> None:
        """Show this scene from the next ``png`` on. Giving the very same object again costs nothing."""
        if scene is self._scene:
            return
        self.draw_scene(scene)
        self._scene = scene
        self._dirty = True

    def pixels(self) -> Pixels:
        """Draw what is shown now; return a height x width x 4 view that the next drawing overwrites."""
        if self._background is None:
            with own_look():
                self._canvas.draw()
            self._background = self._canvas.copy_from_bbox(self.figure.bbox)
            self.redraws += 1
        else:
            self._canvas.restore_region(self._background)
        renderer = self._canvas.get_renderer()
        for artist in sorted(self._animated, key=Artist.get_zorder):
            artist.draw(renderer)
        return np.asarray(self._canvas.buffer_rgba())

    def png(self) -> bytes:
        """Return the panel as PNG bytes (64 colours, ``density`` times the CSS size)."""
        if self._dirty:
            self._png = self._encoder.encode(self.pixels())
            self._dirty = False
        return self._png

    # What subclasses build with ------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Have the background drawn anew at the next picture."""
        self._background = None
        self._dirty = True

    def animate(self, *artists: Artist) -> None:
        """Draw these at every frame, above the background, in the order of their zorder."""
        for artist in artists:
            artist.set_animated(True)
            artist.set_zorder(10 + len(self._animated))  # above spines and ticks, as a full draw must agree
            self._animated.append(artist)

    def y_from_top(self, pixels: float) -> float:
        """Return the height, as a share of the figure, that lies so many CSS pixels below the top."""
        return 1 - pixels / self.height

    def add_axes(self, left: float = 50, right: float = 20, top: float = 32, bottom: float = 40) -> Axes:
        """Make axes that leave these margins, in CSS pixels."""
        wide, tall = self.width, self.height
        axes = self.figure.add_axes(
            (left / wide, bottom / tall, (wide - left - right) / wide, (tall - top - bottom) / tall)
        )
        axes.set_autoscale_on(False)
        plain_ticks(axes)
        return axes

    def add_text(self, x: float, y: float, text: str, *, animate: bool = True, size: float = 10, **look: Any) -> Label:
        """Make a text at a place given as shares of the figure."""
        look = {"va": "center", "color": INK, "fontsize": size, "parse_math": False, **look}
        artist = Label(x, y, text, transform=self.figure.transFigure, **look)
        self.figure.add_artist(artist)
        if animate:
            self.animate(artist)
        return artist

    def labels(self, axes: Axes, count: int, size: float = 10, **look: Any) -> list[Label]:
        """Make a stock of moving labels, empty as yet, in data coordinates of the axes."""
        look = {"va": "center", "color": INK, "fontsize": size, "parse_math": False, **look}
        stock = [Label(0, 0, "", transform=axes.transData, **look) for _ in range(count)]
        for label in stock:
            axes.add_artist(label)
            label.set_clip_on(False)
        self.animate(*stock)
        return stock

    def set_limits(self, axes: Axes, x: Sequence[float] | None = None, y: Sequence[float] | None = None) -> None:
        """Set limits; the background is drawn anew only when they differ from those now."""
        if x is not None and tuple(axes.get_xlim()) != tuple(x):
            axes.set_xlim(x[0], x[1])
            self.refresh()
        if y is not None and tuple(axes.get_ylim()) != tuple(y):
            axes.set_ylim(y[0], y[1])
            self.refresh()

    def set_y_scale(self, axes: Axes, span: tuple[float, float], log: bool) -> None:
        """Set the y axis: its limits, and whether it is logarithmic."""
        if (axes.get_yscale() == "log") != log:
            # between the two scales the limits must be fit for both, else matplotlib warns
            axes.set_ylim(1.0, 10.0)
            axes.set_yscale("log" if log else "linear")
            plain_ticks(axes)
        self.set_limits(axes, y=span)
        if log:
            low, high = (math.log10(edge) for edge in span)
            step = max(1, math.ceil((high - low) / 5))
            ticks = [10.0**power for power in range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1, step)]
            axes.yaxis.set_major_locator(FixedLocator(ticks))
            axes.yaxis.set_minor_locator(NullLocator())


def plain_ticks(axes: Axes) -> None:
    """Put few ticks on the axes, written short."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        axis.set_minor_formatter(NullFormatter())


def set_label(label: Label, x: float, y: float, text: str, **look: Any) -> None:
    """Move a label of a stock to a place and let it say this."""
    label.set(x=x, y=y, text=text, **look)
