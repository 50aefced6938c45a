"""The pictures of a Lab: one image a panel, each redrawn no oftener than it can afford."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from ..scenes import PanelName, RunScenes, find_oom
from ..views import Canvas, MessagePanel, compose, panel_for

_SHARE = 10.0  # a panel that takes 10 ms is redrawn every 100 ms at most while playing; the first panel at every frame


class PanelStrip:
    """A slot with an image for each panel; what is in a slot may change from frame to frame."""

    def __init__(self, scenes: RunScenes) -> None:
        """Start with no slots; ``draw`` makes them."""
        self._images: list[widgets.Image] = []
        self.widget = widgets.Box()
        self.widget.add_class("gradlab-panels")
        self.set_source(scenes)

    def set_source(self, scenes: RunScenes) -> None:
        """Show another run, or the same one after a reset, in the same images as if it were the first."""
        self._scenes = scenes
        self._canvases: dict[type, Canvas[Any]] = {}
        self._shown: list[PanelName] = []
        self._due: dict[PanelName, float] = {}
        self._pngs: list[bytes] = []

    def draw(self, names: Sequence[PanelName], *, skip_recent: bool = False) -> None:
        """Bring the panels of these names up to date; ``skip_recent`` leaves out what was drawn a moment ago."""
        if list(names) != self._shown:
            self._shown, self._due, skip_recent = list(names), {}, False
            self._pngs = [b""] * len(names)
        for slot, name in enumerate(names):
            began = time.perf_counter()
            if skip_recent and slot and began < self._due.get(name, 0.0):
                continue
            self._pngs[slot] = self._picture(name, self._pngs[slot])
            ended = time.perf_counter()
            self._due[name] = ended + _SHARE * (ended - began)
        self._send()

    def due(self, name: PanelName) -> bool:
        """Would a panel be redrawn now, while playing?"""
        return time.perf_counter() >= self._due.get(name, 0.0)

    def draw_next(self, name: PanelName) -> None:
        """Have a panel redrawn at the next drawing."""
        self._due.pop(name, None)

    def sheet(self, columns: int = 2) -> bytes:
        """Return all panels on one PNG."""
        return compose(self._pngs, min(columns, len(self._pngs)))

    def _picture(self, name: PanelName, old: bytes) -> bytes:
        try:
            scene = self._scenes.scene(name)
        except Exception as error:  # a picture that needs a forward pass may find no memory for it
            if find_oom(error) is None:
                raise
            if not old:
                blank = MessagePanel()
                blank.update("there is no memory left for this picture")
                return blank.png()
            return old
        canvas = self._canvases.get(type(scene))
        if canvas is None:
            canvas = self._canvases[type(scene)] = panel_for(type(scene))()
        canvas.update(scene)
        return canvas.png()

    def _send(self) -> None:
        for image, png in zip(self._images, self._pngs, strict=False):
            if image.value != png:
                image.value = png
        if len(self._images) != len(self._pngs):
            new = [widgets.Image(value=png, format="png") for png in self._pngs[len(self._images) :]]
            self._images = [*self._images[: len(self._pngs)], *new]
            self.widget.children = self._images
