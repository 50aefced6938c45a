"""What a teacher prints: a text of blocks, as Markdown or as one HTML page that needs nothing else."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import NamedTuple

from ..formatting import inline_html
from .progress.series import series_notebooks


class HandoutBlock(NamedTuple):
    """A piece of a handout.

    ``kind`` is ``"h1"`` to ``"h3"``, ``"p"``, ``"code"``, ``"item"`` of a list, ``"ask"`` for a question to answer on
    paper, ``"given"`` for what it is about, ``"box"`` to tick, or ``"line"`` to write on, after its text.
    """

    kind: str
    text: str
    remark: str = ""
    right: bool = False


class Handout:
    """Blocks under a title."""

    def __init__(self, title: str, blocks: Iterable[HandoutBlock]) -> None:
        self._title, self._blocks = title, tuple(blocks)

    def markdown(self) -> str:
        """Return it as Markdown."""
        text, before = "", ""
        for block in self._blocks:
            listed = before == block.kind and block.kind in ("item", "box")
            text += "\n" if before and not listed else ""
            text += _MARKDOWN[block.kind].format(_markdown_words(block)) + "\n"
            before = block.kind
        return text

    def page(self) -> str:
        """Return it as one HTML page that needs nothing else."""
        text, before = "", ""
        for block in self._blocks:
            if (before == "item") != (block.kind == "item"):
                text += "</ul>\n" if before == "item" else "<ul>\n"
            words = html.escape(block.text) if block.kind == "code" else _html_words(block)
            text += _HTML[block.kind].format(words) + "\n"
            before = block.kind
        style = files("gradlab.course").joinpath("handout.css").read_text(encoding="utf-8")
        content = text + "</ul>" * (before == "item")
        return _PAGE.format(title=html.escape(self._title), style=style, content=content)


def chosen_notebooks(numbers: Sequence[str]) -> tuple[str, ...]:
    """Return the numbers of notebooks that are asked for, all without any; ValueError names one that does not exist."""
    known = tuple(notebook.number for notebook in series_notebooks())
    for number in numbers:
        if number not in known:
            raise ValueError(f"a notebook is one of {', '.join(known)}, got {number!r}")
    return tuple(number for number in known if number in numbers) or known


_MARKDOWN = {
    "h1": "# {}",
    "h2": "## {}",
    "h3": "### {}",
    "p": "{}",
    "code": "```python\n{}```",
    "item": "- {}",
    "given": "{}",
    "ask": "**{}**",
    "box": "- [ ] {}",
    "line": "{} ______________________________",
}
_HTML = {
    "h1": "<h1>{}</h1>",
    "h2": "<h2>{}</h2>",
    "h3": "<h3>{}</h3>",
    "p": "<p>{}</p>",
    "code": "<pre>{}</pre>",
    "item": "<li>{}</li>",
    "given": '<p class="given">{}</p>',
    "ask": '<p class="ask">{}</p>',
    "box": '<p class="box"><span></span>{}</p>',
    "line": '<p class="line">{}<span></span></p>',
}


def _markdown_words(block: HandoutBlock) -> str:
    words = f"**\u2713 {block.text}**" if block.right else block.text
    return f"{words} \u2192 {block.remark}" if block.remark else words


def _html_words(block: HandoutBlock) -> str:
    words = inline_html(block.text)
    words = f"<b>\u2713 {words}</b>" if block.right else words
    return f"{words} \u2192 <i>{inline_html(block.remark)}</i>" if block.remark else words


_PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
{content}
</html>
"""
