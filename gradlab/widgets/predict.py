"""Questions before an experiment: the learner chooses an answer, runs the experiment and reads the explanation."""

from __future__ import annotations

import base64
import html
import itertools
import json
from dataclasses import asdict
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from ..formatting import inline_html
from ..front import bet_module, bet_script, bet_style
from .question import Question, find_question

Guesses = dict[str, tuple[str, bool | None]]  # name of a question -> (guess, True if right, None before the answer)
GUESSES: Guesses = {}  # the guesses in this kernel: a cell that is run again creates a Prediction with the same guess


class _Live(anywidget.AnyWidget):
    """The widget of a question. The browser sets ``guess`` after a choice and ``answered`` when it shows the answer."""

    _esm = traitlets.Unicode("").tag(sync=True)
    _css = traitlets.Unicode("").tag(sync=True)
    page = traitlets.Unicode("").tag(sync=True)
    guess = traitlets.Int(-1).tag(sync=True)  # index of the chosen option, or -1 before the choice
    answered = traitlets.Bool(False).tag(sync=True)
    tally = traitlets.Unicode("").tag(sync=True)


class Prediction:
    """A question with its options; ``guess`` is the option that the learner chose first, or None."""

    def __init__(self, question: Question, guesses: Guesses) -> None:
        self.question, self._guesses = question, guesses
        self.options = [option.text for option in question.options]
        name, plain = html.escape(question.name, quote=True), _plain_html(question)
        self.page = f'<div class="gl-bet" data-name="{name}" data-sealed="{seal(question)}">{plain}</div>'
        """The question as an HTML element, which is readable without scripts; ``front/bet.js`` adds the buttons."""
        self._live = _Live(_esm=bet_module(), _css=bet_style(), page=self.page)
        self._live.observe(self._choose_from_browser, names="guess")
        self._live.observe(lambda change: self.tell(), names="answered")
        help_ = (
            "The buttons have not loaded. If this does not change, install anywidget in Jupyter's environment "
            "(<code>pip install anywidget</code>) and reload this page."
        )
        still = widgets.HTML(f'<div class="gl-bet-still">{plain}<p>{help_}</p></div>')
        self.widget = widgets.VBox([still, self._live])
        if self.guess is not None:  # the cell was run again
            self._show()

    @property
    def guess(self) -> str | None:
        """The option that the learner chose in this kernel, or None before the choice."""
        return self._guesses.get(self.question.name, (None,))[0]

    def choose(self, option: str) -> None:
        """Choose ``option``, as a click does. Only the first choice counts. Raises ValueError for an unknown option."""
        if option not in self.options:
            raise ValueError(f"predict: the guess must be one of {', '.join(map(repr, self.options))}, got {option!r}")
        if self.guess is None:
            self._guesses[self.question.name] = option, None
        self._show()

    def tell(self) -> None:
        """Show the answer if an option has been chosen, as the button "Tell me" does."""
        if self.guess is not None:
            self._guesses[self.question.name] = self.guess, self.guess == self.options[self.question.answer]
            self._show()

    def _choose_from_browser(self, change: Any) -> None:
        if 0 <= change["new"] < len(self.options):
            self.choose(self.options[change["new"]])

    def _show(self) -> None:
        assert self.guess is not None
        self._live.guess = self.options.index(self.guess)
        self._live.answered = self._guesses[self.question.name][1] is not None
        rights = [right for _, right in self._guesses.values() if right is not None]
        if self._live.answered:
            self._live.tally = f"Your guesses so far: {sum(rights)} of {len(rights)} right."

    def __repr__(self) -> str:
        return "\n".join([f"Bet. {self.question.text}", *(f"  ( ) {option}" for option in self.options)])

    def _display_(self) -> anywidget.AnyWidget:
        return self._live

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        view = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
        still = f'<style>{bet_style()}</style>{self.page}<script type="module">\n{bet_script()}</script>'
        return {"application/vnd.jupyter.widget-view+json": view, "text/html": still, "text/plain": repr(self)}


def predict(name: str) -> Prediction:
    """Return the question ``name`` to show before an experiment, as in ``predict("03/where-do-the-weights-go")``.

    The learner's guess is kept until the kernel restarts, and the answer appears once the cells below have run. Raises
    ValueError, which lists similar names, for an unknown name, and TypeError if ``name`` is not a string.
    """
    return Prediction(find_question(name), GUESSES)


def _plain_html(question: Question) -> str:
    options = "".join(f"<li>{inline_html(option.text)}</li>" for option in question.options)
    return (
        f'<div class="gl-bet-question" role="heading" aria-level="3"><b>Bet.</b> {inline_html(question.text)}</div>'
        f'<ul>{options}</ul><p class="gl-bet-note">To bet, run this cell where the notebook is live.</p>'
    )


def seal(question: Question) -> str:
    """Return the answer, explanation and remarks as a string that is unreadable at a glance, but not secret."""
    answer: dict[str, Any] = {
        "answer": question.answer,
        "why": inline_html(question.why),
        "remarks": [inline_html(option.remark) for option in question.options],
    }
    if question.loss:
        answer["loss"] = asdict(question.loss) | {"courses": [option.course for option in question.options]}
    text, key = json.dumps(answer, ensure_ascii=False).encode(), itertools.cycle(question.name.encode())
    return base64.b64encode(bytes(byte ^ other for byte, other in zip(text, key, strict=False))).decode()
