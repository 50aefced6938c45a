"""Stored notebooks and Markdown as HTML that needs no network, with formulas as MathML and embedded pictures."""

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

_MIME_TYPES = ("text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/latex", "text/plain")
"""Formats of an output in order of preference; widgets are not among them, because widgets need a kernel."""


def read_notebook(path: Path) -> Any:
    """Return a stored notebook without the state of its widgets and without empty outputs."""
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.get("outputs"):
            cell.outputs = [output for output in cell.outputs if output.get("data") != {}]
    return notebook


def notebook_exporter(folder: Path, template: Path) -> Any:
    """Return an exporter that renders notebooks in ``folder`` with ``template``, MathML formulas and no prompts."""
    return HTMLExporter(
        config=Config({"NbConvertBase": {"display_data_priority": list(_MIME_TYPES)}}),
        template_file=str(template),
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        filters={"markdown2html": lambda text: markdown_html(text, folder), "formula": formula_html},
    )


class _Renderer(IPythonRenderer):
    def block_math(self, body: str) -> str:
        return formula_html(body, "block")

    def inline_html(self, html: str) -> str:
        return str(super().inline_html(html)) if "<img" in html else html  # super() would close each tag immediately

    def inline_math(self, body: str) -> str:
        return formula_html(body)


def markdown_html(text: str, folder: Path) -> str:
    """Return Markdown as HTML, with formulas as MathML and the pictures in ``folder`` embedded."""
    renderer = _Renderer(escape=False, embed_images=True, exclude_anchor_links=False, path=str(folder))
    return str(MarkdownWithMath(renderer=renderer).render(text))


def formula_html(latex: str, display: str = "inline") -> str:
    """Return a LaTeX formula as MathML, or as code if it cannot be converted."""
    latex = latex.strip().strip("$")
    try:
        formula = convert(latex, display=display)
    except Exception:
        formula = "\\"
    if "\\" in formula:  # unknown LaTeX commands stay in the result
        formula = f"<code>${html.escape(latex)}$</code>"
    return f'<span class="formula">{formula}</span>' if display == "block" else str(formula)


def code_colours() -> str:
    """Return CSS for highlighted code in a light and a dark theme; ``data-theme`` or the system chooses the theme."""
    light, dark = (HtmlFormatter(style=style).get_style_defs(".highlight") for style in ("default", "github-dark"))
    system = f"@media (prefers-color-scheme: dark) {{\n:root:not([data-theme=light]) {{\n{dark}\n}}\n}}"
    return f"{light}\n{system}\n:root[data-theme=dark] {{\n{dark}\n}}"
