"""A stored notebook and Markdown as HTML that needs no network: formulas are MathML, pictures are inside."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import nbformat
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments.formatters import HtmlFormatter
from traitlets.config import Config

_SHOWN = ("text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/latex", "text/plain")
"""Of an output that comes in several forms, the first of these is shown; a live widget would need a kernel."""


def read_notebook(path: Path) -> Any:
    """Return a stored notebook without the state of its widgets, and without what only JupyterLab needs to fold."""
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.get("outputs"):
            cell.outputs = [output for output in cell.outputs if output.get("data") != {}]
    return notebook


def notebook_exporter(folder: Path, template: Path) -> Any:
    """Return what writes a notebook that lies in ``folder`` as HTML: without prompts, with formulas as MathML."""
    return HTMLExporter(
        config=Config({"NbConvertBase": {"display_data_priority": list(_SHOWN)}}),
        template_file=str(template),
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        filters={"markdown2html": lambda text: markdown_html(text, folder), "formula": formula_html},
    )


class _Renderer(IPythonRenderer):
    def block_math(self, body: str) -> str:
        return formula_html(body, "block")

    def inline_html(self, html: str) -> str:
        return str(super().inline_html(html)) if "<img" in html else html  # it would close each tag where it opens

    def inline_math(self, body: str) -> str:
        return formula_html(body)


def markdown_html(text: str, folder: Path) -> str:
    """Return Markdown as HTML, with formulas as MathML and the pictures that lie in ``folder`` inside."""
    renderer = _Renderer(escape=False, embed_images=True, exclude_anchor_links=False, path=str(folder))
    return str(MarkdownWithMath(renderer=renderer).render(text))


def formula_html(latex: str, display: str = "inline") -> str:
    """Return a formula as MathML, which browsers draw themselves; one that cannot be translated stays as written."""
    latex = latex.strip().strip("$")
    try:
        formula = convert(latex, display=display)
    except Exception:
        formula = "\\"
    if "\\" in formula:  # it leaves a command that it does not know as it was
        formula = f"<code>${html.escape(latex)}$</code>"
    return f'<span class="formula">{formula}</span>' if display == "block" else str(formula)


def code_colours() -> str:
    """Return the colours of code for a light and a dark screen, or for the theme that the page's root names."""
    light, dark = (HtmlFormatter(style=style).get_style_defs(".highlight") for style in ("default", "github-dark"))
    system = f"@media (prefers-color-scheme: dark) {{\n:root:not([data-theme=light]) {{\n{dark}\n}}\n}}"
    return f"{light}\n{system}\n:root[data-theme=dark] {{\n{dark}\n}}"
