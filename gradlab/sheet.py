"""The cheat sheet: the loops, the order of calls, and the pitfalls, on one page that prints."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from .formatting import prose
from .loop import Recipe


class Call(NamedTuple):
    """One call of the loop and what it does to ``.grad`` and to the weights."""

    code: str
    does: str


class Pitfall(NamedTuple):
    """What one sees, why, the line that mends it, and the notebook that shows it."""

    symptom: str
    cause: str
    mend: str
    lesson: str


class Sheet:
    """One page: a notebook shows it, ``save`` writes it as a file that prints on one sheet of A4."""

    def __init__(self, loops: Mapping[str, Recipe], calls: Sequence[Call], pitfalls: Sequence[Pitfall]) -> None:
        """``loops`` maps a title to the Recipe whose ``source()`` is printed under it."""
        self.loops, self.calls, self.pitfalls = dict(loops), list(calls), list(pitfalls)

    @property
    def html(self) -> str:
        """The page as an element with its own style."""
        css = files("gradlab").joinpath("sheet.css").read_text(encoding="utf-8")
        loops = "".join(
            f"<section><h4>{html.escape(title)}</h4><pre>{_coloured(recipe.source())}</pre></section>"
            for title, recipe in self.loops.items()
        )
        calls = "".join(f"<li><code>{html.escape(call.code)}</code> {prose(call.does)}</li>" for call in self.calls)
        rows = "".join(
            f"<tr><td>{prose(it.symptom)}</td><td>{prose(it.cause)}</td><td>{prose(it.mend)}</td>"
            f'<td><a href="{it.lesson}.ipynb">{it.lesson[:2]}</a></td></tr>'
            for it in self.pitfalls
        )
        head = "".join(f"<th scope=col>{word}</th>" for word in ("what you see", "why", "what mends it", "see"))
        return (
            f'<div class="gl-sheet"><style>{css}</style>'
            "<h3><code>.grad</code> is a buffer that adds</h3>"
            f'<div class="gl-loops">{loops}</div><h4>The calls, in this order</h4><ol>{calls}</ol>'
            f"<h4>When it goes wrong</h4><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )

    def save(self, path: str | Path) -> None:
        """Write the page as a file of its own; open it in a browser and print it."""
        head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>.grad on one page</title>'
        Path(path).write_text(f"{head}<body>{self.html}</body></html>", encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        loops = "\n".join(f"# {title}\n{recipe.source()}" for title, recipe in self.loops.items())
        calls = "\n".join(f"{number}. {call.code}: {call.does}" for number, call in enumerate(self.calls, 1))
        pitfalls = "\n".join(f"{it.symptom}: {it.cause}. {it.mend} ({it.lesson})" for it in self.pitfalls)
        return f"{loops}\n{calls}\n\n{pitfalls}"


def cheat_sheet() -> Sheet:
    """Return the sheet of the series."""
    everything = Recipe(accumulate=4, amp="fp16", clip=1.0, optimizer="adamw", lr=0.001)
    loops = {
        "The loop": Recipe(),
        "Accumulation: four micro-batches an update": Recipe(accumulate=4),
        "Mixed precision (AMP), fp16": Recipe(amp="fp16"),
        "All of it, with clipping": everything,
    }
    return Sheet(loops, _CALLS, _PITFALLS)


def _coloured(source: str) -> str:
    """Return a loop as HTML with the classes of Pygments."""
    return highlight(source.rstrip(), PythonLexer(), HtmlFormatter(nowrap=True)).rstrip()


_CALLS = (
    Call("zero_grad()", "empties `.grad`: sets it to None"),
    Call("model(x)", "builds the graph; touches neither `.grad` nor weights"),
    Call("loss.backward()", "adds to `.grad`, frees the graph"),
    Call("scaler.unscale_(optimizer)", "divides `.grad` by the scale, once an update"),
    Call("clip_grad_norm_(...)", "shortens `.grad`, after the whole window, before the step"),
    Call("optimizer.step()", "reads `.grad`, moves the weights, leaves `.grad` full"),
    Call("scaler.update()", "changes the scale: half after inf or NaN, double after 2,000 good updates in a row"),
    Call("scheduler.step()", "changes lr, after the optimizer's step"),
)

_PITFALLS = (
    Pitfall(
        "The loss falls, then swings",
        "`.grad` was never cleared: each step uses old batches again",
        "`optimizer.zero_grad()` once an update",
        "03_forgetting_zero_grad",
    ),
    Pitfall(
        "Nothing is learned, no error",
        "cleared between backward and step, or the optimizer holds other parameters",
        "zero, forward, backward, step; make the optimizer when the model is whole",
        "04_zero_grad",
    ),
    Pitfall(
        "`NoneType` has no attribute ...",
        "`.grad` is None before the first backward and after zero_grad",
        "`if p.grad is not None:`",
        "05_set_to_none",
    ),
    Pitfall(
        "Accumulating, the loss explodes",
        "the loss was not divided: the step is as many times too long",
        "`(loss / len(window)).backward()`",
        "07_gradient_accumulation",
    ),
    Pitfall(
        "The last batches of an epoch are lost, or come back later",
        "the last window is not full",
        "cut the batches into windows, as above; divide by `len(window)`",
        "07_gradient_accumulation",
    ),
    Pitfall(
        "With fp16 and SGD the model hardly moves",
        "clipped before unscale_: the scaled gradient was cut",
        "`scaler.unscale_(optimizer)`, then clip",
        "08_mixed_precision",
    ),
    Pitfall(
        "Some steps are skipped",
        "fp16 overflowed; the scaler halves its scale",
        "nothing, if it is seldom; else bf16 or a smaller lr",
        "08_mixed_precision",
    ),
    Pitfall(
        "Memory grows from update to update",
        "a tensor with its graph is kept: `losses.append(loss)`",
        "`losses.append(loss.item())`",
        "09_gpu_memory",
    ),
    Pitfall(
        "backward through the graph a second time",
        "the graph was freed, or a state is carried over",
        "a new forward pass, or `state.detach()`",
        "01_autograd",
    ),
    Pitfall(
        "Validation is worse than training for no reason",
        "`model.eval()` is missing, or was left on",
        "`model.eval()` before, `model.train()` after",
        "10_loop_doctor",
    ),
    Pitfall(
        "Several devices, and accumulation is slow",
        "every micro-batch is sent across, though only the sum is used",
        "`with model.no_sync():` for all but the last",
        "11_many_devices",
    ),
)
