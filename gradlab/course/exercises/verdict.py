"""What a check says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...formatting import html_box, inline_html, svg_img

RIGHT, NOT_YET, NOT_ATTEMPTED = "right", "not yet", "not attempted"
# A sign beside each colour, for those who do not see it.
_LOOK = {RIGHT: ("\u2713 Right", "#009E73"), NOT_YET: ("\u2717 Not yet", "#D55E00")}
_LOOK[NOT_ATTEMPTED] = ("\u25cb Not attempted yet", "#767676")


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check; it counts as true when the answer is right."""

    state: str
    """``"right"``, ``"not yet"`` or ``"not attempted"``."""
    remark: str
    mistake: str | None = None
    """The name of the typical wrong answer that this is, None if it is none of those known."""
    draw: Callable[[], str | None] = field(default=lambda: None, repr=False, compare=False)
    """Makes the picture; most verdicts are never looked at twice, so it is made when it is shown."""

    @cached_property
    def picture(self) -> str | None:
        """Yours against expected, as a picture; None where there is nothing to draw."""
        return self.draw()

    def __bool__(self) -> bool:
        return self.state == RIGHT

    def __repr__(self) -> str:
        return f"{_LOOK[self.state][0]}. {self.remark}".rstrip()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        head, colour = _LOOK[self.state]
        picture = ""
        if self.picture is not None:
            picture = f"<br>{svg_img(self.picture, self.remark, 560)}"
        page = html_box(f"<b>{head}.</b> {inline_html(self.remark)}{picture}", colour)
        return {"text/plain": repr(self), "text/html": page}
