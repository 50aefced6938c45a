"""``gradlab page``: a stored notebook as one HTML file that needs no network. Exit codes: 0 written, 2 not possible."""

from __future__ import annotations

import argparse
import html
import re
import sys
from collections.abc import Mapping
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

from .. import formatting
from ..formatting import lesson_address
from . import Parsers

_HERE = files("gradlab.commands")
_SHOWN = ("text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/latex", "text/plain")
"""Of an output that comes in several forms, the first of these is shown; a live widget would need a kernel."""
_OF_THE_SERIES = re.compile(r"\d\d_\w+")


def add_page(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    parser = parsers.add_parser(
        "page",
        help="write a stored notebook as an HTML file that needs no network",
        description="Writes each notebook, as it is stored, as one HTML file with formulas, pictures and styles in it.",
    )
    parser.set_defaults(run=_run)
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK.ipynb")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="a file.html, or a folder for several notebooks"
    )


def _run(options: argparse.Namespace) -> int:
    paths = [found for path in options.notebooks for found in _matching(path)]
    one = options.output is not None and options.output.suffix == ".html"
    if one and len(paths) > 1:
        raise ValueError(f"-o must be a folder for {len(paths)} notebooks, got {str(options.output)!r}")
    folder = options.output or Path()
    targets = [options.output if one else folder / f"{path.stem}.html" for path in paths]
    neighbours = {path.stem: target.name for path, target in zip(paths, targets, strict=True)}
    for path, target in zip(paths, targets, strict=True):
        page = notebook_page(path, neighbours)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(page, encoding="utf-8")
        except OSError as error:
            raise ValueError(f"{target} cannot be written: {error.strerror}") from None
        print(target)
        for address in outside_addresses(page):
            print(f"{target} needs the network for {address}", file=sys.stderr)
    return 0


def _matching(path: Path) -> list[Path]:
    """Return the notebooks that a name with a star stands for; the shells of Windows leave that to the program."""
    return ("*" in path.name and sorted(path.parent.glob(path.name))) or [path]


def notebook_page(path: Path, neighbours: Mapping[str, str] | None = None) -> str:
    """Return a stored notebook as a page; links to the notebooks in ``neighbours`` lead to the files that it names."""
    notebook = read_notebook(path)
    exporter = notebook_exporter(path.parent, _HERE / "page.html.j2")
    heading = next((found[1] for cell in notebook.cells if (found := re.match(r"# (.+)", cell.source))), path.stem)
    resources = {"metadata": {"name": heading.strip(), "path": str(path.parent)}, "page_style": _style()}
    page, _ = exporter.from_notebook_node(notebook, resources)
    ours = rf"(?:{re.escape(address)}/[^\"]*/)?" if (address := formatting.REPOSITORY) else ""
    lesson = re.compile(rf'<a href="{ours}([^/"?#]+)\.ipynb(#[^"]*)?"([^>]*)>(.*?)</a>', re.DOTALL)
    return lesson.sub(lambda link: _neighbour(link, neighbours or {}), page)


def read_notebook(path: Path) -> Any:
    """Return a stored notebook without the state of its widgets; ValueError where there is none."""
    try:
        import nbformat
    except ModuleNotFoundError as error:
        raise ValueError(f"{error.name} is missing: pip install nbconvert latex2mathml") from None
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook, relax_add_props=True)  # as nbconvert does, which would not name the file
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (AttributeError, KeyError, TypeError, ValueError, nbformat.ValidationError):
        raise ValueError(f"{path} is not a Jupyter notebook") from None
    notebook.metadata.pop("widgets", None)
    return notebook


def notebook_exporter(folder: Path, template: object) -> Any:
    """Return what writes a notebook that lies in ``folder`` as HTML: without prompts, with formulas as MathML."""
    try:
        import latex2mathml  # noqa: F401
        from nbconvert import HTMLExporter
        from traitlets.config import Config
    except ModuleNotFoundError as error:
        raise ValueError(f"{error.name} is missing: pip install nbconvert latex2mathml") from None
    return HTMLExporter(
        config=Config({"NbConvertBase": {"display_data_priority": list(_SHOWN)}}),
        template_file=str(template),
        extra_template_paths=[str(_HERE)],  # for a template that begins with the one here
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        filters={"markdown2html": lambda text: markdown_html(text, folder), "formula": formula_html},
    )


def _neighbour(link: re.Match[str], neighbours: Mapping[str, str]) -> str:
    """Return a link to a notebook as one to its page, if that is written too, or to where a lesson is on the web.

    As long as lessons have no address, the words of such a link stay, without a link that leads nowhere.
    """
    name, place, more, words = link[1], link[2] or "", link[3], link[4]
    if name not in neighbours and not _OF_THE_SERIES.fullmatch(name):
        return link[0]
    target = neighbours.get(name) or lesson_address(name)
    return f'<a href="{target}{place}"{more}>{words}</a>' if target else words


def markdown_html(text: str, folder: Path) -> str:
    """Return Markdown as HTML, with formulas as MathML and the pictures that lie in ``folder`` inside."""
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    class Renderer(IPythonRenderer):
        def block_math(self, body: str) -> str:
            return formula_html(body, "block")

        def inline_math(self, body: str) -> str:
            return formula_html(body)

    renderer = Renderer(escape=False, embed_images=True, exclude_anchor_links=False, path=str(folder))
    return str(MarkdownWithMath(renderer=renderer).render(text))


def formula_html(latex: str, display: str = "inline") -> str:
    """Return a formula as MathML, which browsers draw themselves; one that cannot be translated stays as written."""
    from latex2mathml.converter import convert

    latex = latex.strip().strip("$")
    try:
        formula = convert(latex, display=display)
    except Exception:
        formula = "\\"
    if "\\" in formula:  # it leaves a command that it does not know as it was
        formula = f"<code>${html.escape(latex)}$</code>"
    return f'<span class="formula">{formula}</span>' if display == "block" else str(formula)


class _Addresses(HTMLParser):
    """Collects what a browser would load by itself from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Links of a text are not loaded; whatever else has an address is."""
        for name, value in attrs:
            loads = name in ("src", "srcset", "poster", "data", "background") or (name == "href" and tag != "a")
            if loads and value and re.match(r"\s*(https?:)?//", value):
                self.found.append(value)


def outside_addresses(page: str) -> list[str]:
    """Return the addresses on the network that a browser would load with the page."""
    reader = _Addresses()
    reader.feed(page)
    styles = re.findall(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")\s]+)", page)
    return sorted({*reader.found, *styles})


def _style() -> str:
    """Return the style of the page."""
    return f"{(_HERE / 'page.css').read_text(encoding='utf-8')}\n{code_colours()}"


def code_colours() -> str:
    """Return the colours of code for a light and a dark screen, or for the theme that the page's root names."""
    from pygments.formatters import HtmlFormatter

    light, dark = (HtmlFormatter(style=style).get_style_defs(".highlight") for style in ("default", "github-dark"))
    system = f"@media (prefers-color-scheme: dark) {{\n:root:not([data-theme=light]) {{\n{dark}\n}}\n}}"
    return f"{light}\n{system}\n:root[data-theme=dark] {{\n{dark}\n}}"
