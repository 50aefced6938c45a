"""A question before the experiment: commit to a guess, run, and read why."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import ipywidgets as widgets

from ..formatting import inline_html
from .guesses import GUESSES, Guesses

_MOST_OPTIONS = 6


@cache
def _style() -> str:
    return files("gradlab.widgets").joinpath("predict.css").read_text(encoding="utf-8")


class Prediction:
    """The question with its options as buttons; ``guess`` is the learner's choice, None before it."""

    def __init__(self, question: str, options: Sequence[str], answer: str, why: str, guesses: Guesses) -> None:
        """Build the widgets; the arguments have been checked. A guess made before is shown at once, with its reason."""
        self.question, self.options, self.answer, self.why = question, list(options), answer, why
        self._guesses = guesses
        self._reply = widgets.HTML()
        self._buttons = []
        for option in self.options:
            button = widgets.Button(description=option, layout=widgets.Layout(width="auto", height="auto"))
            button.add_class("gl-option")
            button.on_click(lambda _, option=option: self.choose(option))
            self._buttons.append(button)
        bar = widgets.Box(self._buttons)
        bar.add_class("gl-options")
        asked = widgets.HTML(
            f'<div class="gl-words" role="heading" aria-level="4"><b>Predict.</b> {inline_html(question)}</div>'
        )
        self.widget = widgets.VBox([widgets.HTML(f"<style>{_style()}</style>"), asked, bar, self._reply])
        self.widget.add_class("gradlab-predict")
        if self.guess is not None:  # the cell was run again
            self._show()

    @property
    def guess(self) -> str | None:
        """The option that the learner chose, None before that."""
        guess = self._guesses.get(self.question)
        return guess if guess in self.options else None  # the author may have changed the options since

    @property
    def right(self) -> bool | None:
        """Whether the guess was right, None before it."""
        return None if self.guess is None else self.guess == self.answer

    def choose(self, option: str) -> None:
        """Commit to an option. The first choice counts and stays; the reason is shown after it."""
        if option not in self.options:
            raise ValueError(f"predict: the guess must be one of {', '.join(map(repr, self.options))}, got {option!r}")
        if self.guess is not None:
            return
        self._guesses.record(self.question, option, option == self.answer)
        self._show()

    def _show(self) -> None:
        """Mark the guess and the answer, and say why, with the score of this notebook."""
        for button in self._buttons:
            button.disabled = True
            if button.description == self.answer:
                button.icon = "check"
            elif button.description == self.guess:
                button.icon = "times"
        verdict = "Yes." if self.right else f"You said: {self.guess}. It is: {self.answer}."
        self._reply.value = (
            f'<div class="gl-words" role="status"><b>{inline_html(verdict)}</b> {inline_html(self.why)} '
            f'<span class="gl-note">{self._guesses.score_text}</span></div>'
        )

    def __repr__(self) -> str:
        options = "\n".join(f"  ( ) {option}" for option in self.options)
        return f"Predict. {self.question}\n{options}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        view = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
        options = "".join(f"<li>{inline_html(option)}</li>" for option in self.options)
        still = (  # for a page without a kernel: the answer is there, folded
            f'<div style="max-width:72ch"><b>Predict.</b> {inline_html(self.question)}<ul>{options}</ul><details>'
            f"<summary>The answer</summary><b>{inline_html(self.answer)}.</b> {inline_html(self.why)}</details></div>"
        )
        return {"application/vnd.jupyter.widget-view+json": view, "text/html": still, "text/plain": repr(self)}


def predict(question: str, options: Sequence[str], answer: str, why: str) -> Prediction:
    """Ask a question before the experiment; the guess is kept while the kernel lives, the reason is shown after it.

    ``options`` are 2 to 6 different texts, ``answer`` is one of them. Raises TypeError or ValueError that names the
    field, the value and what is allowed.
    """
    for name, text in (("question", question), ("answer", answer), ("why", why)):
        if not isinstance(text, str) or not text.strip():
            raise TypeError(f"predict: {name} must be a text that is not empty, got {text!r}")
    if isinstance(options, str) or not isinstance(options, Sequence):
        raise TypeError(f"predict: options must be a list of texts, got {options!r}")
    if not all(isinstance(option, str) and option.strip() for option in options):
        raise TypeError(f"predict: options must be texts that are not empty, got {options!r}")
    if not 2 <= len(options) <= _MOST_OPTIONS or len(set(options)) < len(options):
        raise ValueError(f"predict: options must be 2 to {_MOST_OPTIONS} different texts, got {list(options)!r}")
    if answer not in options:
        raise ValueError(f"predict: answer must be one of the options, got {answer!r}")
    return Prediction(question, options, answer, why, GUESSES)
