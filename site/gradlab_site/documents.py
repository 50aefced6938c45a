"""The content of several pages: the repository's documents, the reference, and the fact check by PyTorch version."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from gradlab.formatting import inline_html

from .notebook_html import markdown_html
from .pages import heading_text, html_soup


class Document(NamedTuple):
    """A Markdown file of the repository that is a page of the site."""

    file: str
    page: str
    title: str
    menu: str = ""  # the label in the menu, or "" if the document is not in the menu
    footer: str = ""  # the label at the foot of every page, or "" if the document is not there
    searched: bool = True  # whether the search index includes the document; documents for developers are left out


DOCUMENTS = (
    Document("notebooks/README.md", "teach.html", "For teachers", "Teach"),
    Document("notebooks/NINETY_MINUTES.md", "ninety_minutes.html", "90 minutes", footer="90 minutes"),
    Document("notebooks/CLASSROOM.md", "classroom.html", "For who runs a hub", footer="For who runs a hub"),
    Document("gradlab/doctor/README.md", "doctor.html", "The doctor", footer="The doctor"),
    Document("ARCHITECTURE.md", "architecture.html", "Architecture", searched=False),
    Document("CONTRIBUTING.md", "contributing.html", "For developers", footer="For developers", searched=False),
    Document("CHANGELOG.md", "changelog.html", "What has changed", footer="What has changed", searched=False),
    Document("SECURITY.md", "security.html", "Security", searched=False),
    Document("tests/README.md", "tested.html", "How it is tested", searched=False),
    Document("gradlab/front/README.md", "front.html", "The browser's half", searched=False),
    Document("gradlab/widgets/README.md", "widgets.html", "The widgets", searched=False),
    Document(
        "gradlab/tasks/data/SOURCES.md", "sources.html", "Where the data come from", footer="Where the data come from"
    ),
)


def document_html(root: Path, document: Document) -> str:
    """Return a document as HTML, without comments, and with Mermaid graphs as lists."""
    path = root / document.file
    text = re.sub(r"<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    graphs = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
    return text_html(graphs.sub(lambda match: _graph_text(match[1]), text), path.parent)


def text_html(text: str, folder: Path) -> str:
    """Return Markdown as HTML, with GitHub's ids for headings and a symbol for each check box."""
    soup = html_soup(markdown_html(text, folder))
    for box in soup.select("input[type=checkbox]"):
        box.replace_with("\N{BALLOT BOX} ")  # readers tick it on paper, and an <input> would need an accessible label
    for heading in soup.find_all(["h1", "h2", "h3", "h4"]):
        heading["id"] = github_anchor(heading_text(heading))
    return str(soup)


def github_anchor(heading: str) -> str:
    """Return the id that GitHub gives to a heading, by which links in the documents refer to the heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _graph_text(graph: str) -> str:
    """Return a Mermaid graph, which the site cannot draw, as a Markdown list of its boxes and their arrows' targets."""
    names = dict(re.findall(r"^\s*(\w+)\[\"(.*?)\"\]$", graph, re.MULTILINE))
    arrows: dict[str, list[str]] = {}
    for start, end in re.findall(r"^\s*(\w+) -[^>]*> (\w+)$", graph, re.MULTILINE):
        arrows.setdefault(start, []).append(end)

    lines = []
    for name, label in names.items():
        head, _, description = label.partition("<br>")
        uses = ", ".join(names.get(each, each).partition("<br>")[0] for each in arrows.get(name, []))
        lines.append(f"- **{head}**: {description}" + (f" \u2192 {uses}" if uses else ""))
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Name:
    """An entry of the reference: a public name, its signature and docstring, and the entries of its members."""

    name: str
    signature: str
    text: str  # the docstring as HTML
    members: tuple[Name, ...] = ()


def public_names() -> list[Name]:
    """Return the entries of gradlab's public names that have docstrings, in alphabetical order."""
    import gradlab

    names = (_name(name, getattr(gradlab, name)) for name in sorted(vars(gradlab)["__all__"], key=str.lower))
    return [each for each in names if each.text]


def _name(name: str, value: Any) -> Name:
    members: tuple[Name, ...] = ()
    if inspect.isclass(value):
        members = tuple(_members(value))
    elif inspect.ismodule(value):
        members = tuple(_name(each, getattr(value, each)) for each in vars(value)["__all__"] if each[0].islower())
    return Name(name, _signature(value), docstring_html(value), members)


def _members(owner: type) -> Iterator[Name]:
    for name in dir(owner):
        value = inspect.getattr_static(owner, name)
        home = next(base for base in owner.__mro__ if name in vars(base))
        if name.startswith("_") or not home.__module__.startswith("gradlab"):
            continue
        function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if (callable(function) or isinstance(function, property)) and (text := docstring_html(function)):
            yield Name(name, _signature(function), text)


def _signature(value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # a module or a property has no signature
        return ""
    parameters = [each for name, each in signature.parameters.items() if name not in ("self", "cls")]
    unannotated = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return str(signature.replace(parameters=unannotated, return_annotation=inspect.Signature.empty))


def docstring_html(value: Any) -> str:
    """Return the docstring of ``value`` as HTML, or "" if it has none."""
    text = inspect.getdoc(value) or ""
    return markdown_html(re.sub(r"``(.+?)``", r"`\1`", text), Path()) if text else ""


@dataclass(frozen=True)
class Verdicts:
    """A claim from an article, with the verdict on the claim for each version of PyTorch."""

    code: str
    title: str
    says: str  # the claim as HTML
    by_version: tuple[str, ...]
    differ: bool  # whether the verdict differs between versions of PyTorch


def verdict_table(folder: Path) -> tuple[list[str], list[Verdicts]]:
    """Return the PyTorch versions that have a file in ``folder``, and the verdicts on each claim for these versions."""
    from gradlab.course.claims import CLAIMS

    results = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    verdicts = {key: {claim["code"]: claim["verdict"] for claim in each["claims"]} for key, each in results.items()}
    rows = []
    for code, claim in CLAIMS.items():
        by_version = tuple(each.get(code, "\u2013") for each in verdicts.values())
        rows.append(Verdicts(code, claim.title, inline_html(claim.says), by_version, len(set(by_version)) > 1))
    return list(results), rows
