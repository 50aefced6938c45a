"""The answers for teachers: every question with its reason, every exercise with a solution and typical mistakes."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..formatting import inline_html
from ..widgets import find_question, question_names
from .exercises import exercise_notebooks, exercise_texts
from .progress.series import series_notebooks

_ABOUT = (
    "For teachers. \u2713 marks the right option of a bet; the others stand with the remark that a learner gets. "
    "The solutions use `import math`, `import torch` and `from torch import nn`."
)


class _Block(NamedTuple):
    """A piece of the key: ``"h1"`` to ``"h3"``, ``"p"``, ``"code"``, or ``"item"`` of a list."""

    kind: str
    text: str
    remark: str = ""
    right: bool = False


class AnswerKey:
    """The key to all notebooks, or to some of them by their numbers."""

    def __init__(self, numbers: Sequence[str] = ()) -> None:
        """Raises ValueError that names a number that no notebook has."""
        known = [notebook.number for notebook in series_notebooks()]
        for number in numbers:
            if number not in known:
                raise ValueError(f"a notebook is one of {', '.join(known)}, got {number!r}")
        self._blocks = tuple(_blocks(tuple(numbers) or tuple(known)))

    def markdown(self) -> str:
        """Return the key as Markdown."""
        text, before = "", ""
        for block in self._blocks:
            text += "\n" if before and not before == block.kind == "item" else ""
            text += _MARKDOWN[block.kind].format(_markdown_words(block)) + "\n"
            before = block.kind
        return text

    def page(self) -> str:
        """Return the key as one HTML page that needs nothing else."""
        text, before = "", ""
        for block in self._blocks:
            if (before == "item") != (block.kind == "item"):
                text += "</ul>\n" if before == "item" else "<ul>\n"
            words = html.escape(block.text) if block.kind == "code" else _html_words(block)
            text += _HTML[block.kind].format(words) + "\n"
            before = block.kind
        return _PAGE.replace("CONTENT", text + "</ul>" * (before == "item"))


def _blocks(numbers: Sequence[str]) -> Iterator[_Block]:
    """Write the key to these notebooks from the words of the questions and exercises."""
    texts, homes = exercise_texts(), exercise_notebooks()
    yield _Block("h1", "Answers")
    yield _Block("p", _ABOUT)
    for notebook in series_notebooks():
        if notebook.number not in numbers:
            continue
        yield _Block("h2", f"{notebook.number} {notebook.name}")
        for name in question_names():
            if name.partition("/")[0] == notebook.number:
                yield from _question(name)
        for name, text in texts.items():
            if homes[name][:2] == notebook.number:
                yield _Block("h3", f"Exercise `{name}`: {text.title} ({text.level}, {text.minutes} minutes)")
                yield _Block("p", text.spec)
                yield _Block("code", text.solution)
                yield _Block("p", "Typical mistakes, and what the check says to each:")
                yield from (_Block("item", f"`{mistake}`", remark) for mistake, remark in text.remarks.items())


def _question(name: str) -> Iterator[_Block]:
    question = find_question(name)
    yield _Block("h3", f"Bet `{name}`")
    yield _Block("p", question.text)
    for place, option in enumerate(question.options):
        yield _Block("item", option.text, option.remark, right=place == question.answer)
    yield _Block("p", f"Why: {question.why}")


_MARKDOWN = {"h1": "# {}", "h2": "## {}", "h3": "### {}", "p": "{}", "code": "```python\n{}```", "item": "- {}"}
_HTML = {
    "h1": "<h1>{}</h1>",
    "h2": "<h2>{}</h2>",
    "h3": "<h3>{}</h3>",
    "p": "<p>{}</p>",
    "code": "<pre>{}</pre>",
    "item": "<li>{}</li>",
}


def _markdown_words(block: _Block) -> str:
    words = f"**\u2713 {block.text}**" if block.right else block.text
    return f"{words} \u2192 {block.remark}" if block.remark else words


def _html_words(block: _Block) -> str:
    words = inline_html(block.text)
    words = f"<b>\u2713 {words}</b>" if block.right else words
    return f"{words} \u2192 <i>{inline_html(block.remark)}</i>" if block.remark else words


_PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>gradlab: answers</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.45 system-ui, sans-serif; max-width: 54rem; margin: 1rem auto; padding: 0 1rem; }
body { overflow-wrap: anywhere; }
h2 { border-top: 2px solid #767676; padding-top: .6rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
p, ul { margin: .3rem 0; }
pre { overflow-x: auto; border: 1px solid #767676; border-radius: 4px; padding: .5rem; }
@media print { h2 { break-before: page; } h3 { break-after: avoid; } pre { white-space: pre-wrap; } }
</style>
CONTENT
</html>
"""
