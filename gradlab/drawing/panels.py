"""Which panel draws which scene."""
from __future__ import annotations
from typing import Any
import numpy as np
from .marks import *
from ..formatting import short
def draw(scene: Any, width: int = 400, height: int = 260, *, zoom: Any = None) -> Drawing:
    name = type(scene).__name__
    marks = [Text("title", 10, 17, name, size=13, bold=True)]
    if name == "Curve" and len(scene.updates):
        x = np.array(scene.updates, float); y = np.array(scene.mean, float)
        px = 50 + x / max(x.max(), 1) * (width - 70); py = height - 40 - y / max(np.nanmax(y), 1e-9) * (height - 80)
        marks.append(Path("line", np.column_stack([px, py]).ravel(), stroke="loss", width=1.8, readout=Readout("update {x}: loss {y}", Axis(0, 1), Axis(0, 1))))
        marks.append(Text("now", width - 10, 17, f"now {short(float(y[-1]))}", anchor="end"))
    return Drawing(name, marks, f"a {name}", width, height)
def to_png(drawings, columns=2, density=2.0):
    from matplotlib.figure import Figure
    import io
    f = Figure(figsize=(8,5.2)); b = io.BytesIO(); f.savefig(b, format="png"); return b.getvalue()
def to_svg(d): return ""
