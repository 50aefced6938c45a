"""Functions that join gradlab's JavaScript modules, and its style sheets, for a widget or a page without a kernel."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

_DATA = re.compile(r'^import (\w+) from "\.\./drawing/(\w+)\.json" with \{ type: "json" \};\n', re.MULTILINE)
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)


@cache
def joined_module(entry: str) -> str:
    """Return the JavaScript module ``entry`` in one string with all its imports, each module after its dependencies.

    Import statements are removed, as is ``export`` except in ``entry``. Top-level names must be unique in all modules.
    """
    texts: dict[str, str] = {}
    _collect(entry, texts)
    *parts, last = texts.values()
    return "\n".join([*(re.sub(r"^export (default )?", "", part, flags=re.MULTILINE) for part in parts), last])


def style_sheet() -> str:
    """Return the CSS for a Lab or an instrument."""
    return _read("lab.css")


def bet_style() -> str:
    """Return the CSS for a question that ``predict`` shows, without comments."""
    return _without_comments(_read("bet.css"))


@cache
def bet_module() -> str:
    """Return the JavaScript module that anywidget loads for a question in a notebook with a kernel."""
    return joined_module("bet") + "\nexport default { render: renderBet };\n"


@cache
def bet_script() -> str:
    """Return the script for a question without a kernel, but not its comments, because each question has a copy."""
    return _without_comments(joined_module("bet") + "\nstartBets();\n")


@cache
def player_module(entry: str) -> str:
    """Return the module ``entry``, which plays a recording on a separate page, and its imports, without comments."""
    return _without_comments(joined_module(entry))


def page_script() -> str:
    """Return a classic script, which even a page on disk can load, for a page with recordings and questions."""
    return f'(() => {{\n"use strict";\n{_without_comments(joined_module("page"))}}})();\n'


def page_style() -> str:
    """Return the CSS for a page with recordings and questions, without comments."""
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
