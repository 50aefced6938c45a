"""MessagePanel: words in the place of a picture that could not be drawn."""

from __future__ import annotations

from .canvas import Canvas


class MessagePanel(Canvas[str]):
    """A sentence in the middle of an empty panel."""

    def build(self) -> None:
        """Make the sentence."""
        self._said = self.add_text(0.5, 0.5, "", ha="center")

    def draw_scene(self, scene: str) -> None:
        """Say it."""
        self._said.set_text(scene)
