"""The browser's modules, joined into one file for anywidget, for a replay or for a page."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

_DATA = re.compile(r'^import (\w+) from "\.\./drawing/(\w+)\.json" with \{ type: "json" \};\n', re.MULTILINE)
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)


@cache
def joined_module(entry: str) -> str:
    """Return the module ``entry`` and all that it imports as one string, each file once and after its dependencies.

    Import statements are removed, as is ``export`` in all but the entry. Top-level names must be unique in all modules.
    """
    texts: dict[str, str] = {}
    _collect(entry, texts)
    *parts, last = texts.values()
    return "\n".join([*(re.sub(r"^export (default )?", "", part, flags=re.MULTILINE) for part in parts), last])


def style_sheet() -> str:
    """Return the style sheet of labs and instruments."""
    return _read("lab.css")


def bet_style() -> str:
    """Return the style sheet of questions, without comments."""
    return _without_comments(_read("bet.css"))


@cache
def bet_module() -> str:
    """Return the module for questions that have a kernel, for anywidget."""
    return joined_module("bet") + "\nexport default { render: renderBet };\n"


@cache
def bet_script() -> str:
    """Return the script of questions without a kernel, without comments, since each question's output has a copy."""
    return _without_comments(joined_module("bet") + "\nstartBets();\n")


@cache
def player_module(entry: str) -> str:
    """Return the module that plays a recording on its own page, without comments."""
    return _without_comments(joined_module(entry))


def page_script() -> str:
    """Return the script of a page with recordings and questions: a classic script, which a page on disk can load."""
    return f'(() => {{\n"use strict";\n{_without_comments(joined_module("page"))}}})();\n'


def page_style() -> str:
    """Return the style sheet of a page with recordings and questions, without comments."""
    return _without_comments("".join(map(_read, ("lab.css", "bet.css", "page.css"))))


def _collect(name: str, texts: dict[str, str]) -> None:
    if name in texts:
        return
    text = _read(f"{name}.js")
    for needed in _IMPORT.findall(text):
        _collect(needed, texts)
    texts[name] = _IMPORT.sub("", _DATA.sub(_written_out, text))


def _written_out(match: re.Match[str]) -> str:
    data = json.loads(files("gradlab.drawing").joinpath(f"{match[2]}.json").read_text(encoding="utf-8"))
    return f"const {match[1]} = {json.dumps(data, separators=(',', ':'))};\n"


def _without_comments(text: str) -> str:
    text = re.sub(r"^ *(/\*((?!\*/).)*\*/|//[^\n]*)\n", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"( +//[^\n]*)?\n\n*", "\n", text)


def _read(name: str) -> str:
    return files("gradlab.front").joinpath(name).read_text(encoding="utf-8")
