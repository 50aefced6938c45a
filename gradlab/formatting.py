"""Formatting of numbers, bytes, lists and lesson addresses as text and HTML, for the whole package."""

from __future__ import annotations

import base64
import html
import math
import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

REPOSITORY = ""  # web address of the repository, such as https://github.com/OWNER/NAME, or "" if there is none
EN_DASH = "\u2013"  # separator of the ends of a range where space is short
_COLUMN_UNITS = {"GiB": 1024**3, "MiB": 1024**2, "KiB": 1024, "B": 1}
_DARK_PAGES = ('[data-jp-theme-light="false"]', ".vscode-dark", "[theme=dark]")  # in JupyterLab, VS Code and Colab
_SUPERSCRIPTS = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def lesson_address(notebook: str, section: str = "") -> str:
    """Return the web address of a notebook such as "04_zero_grad", or of a section, or "" without a ``REPOSITORY``."""
    fragment = f"#{quote(section.replace(' ', '-'))}" if section else ""
    return f"{REPOSITORY}/blob/main/notebooks/{notebook}.ipynb{fragment}" if REPOSITORY else ""


def lesson_words(notebook: str, section: str = "") -> str:
    """Return the web address of a notebook or section or, without a ``REPOSITORY``, text that names both."""
    section_text = f', section "{section}"' if section else ""
    return lesson_address(notebook, section) or f"notebook {notebook}{section_text}"


def link_html(address: str, text: str) -> str:
    """Return ``text``, escaped for HTML, as a link to ``address``, or without a link if ``address`` is ""."""
    escaped = html.escape(text)
    return f'<a href="{html.escape(address)}">{escaped}</a>' if address else escaped


def inline_html(text: str) -> str:
    """Return ``text`` as HTML, with ``<code>`` for words between backticks and ``<br>`` for line breaks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False)).replace("\n", "<br>")


def short(value: float) -> str:
    """Format a number briefly, with up to four digits: ``0.31``, ``12.4``, ``25k``, ``1e30``, ``inf``, ``NaN``."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "\u2212inf"
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 999_500 or size < 0.0005:
        mantissa, exponent = f"{size:.1e}".split("e")
        text = f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    elif size >= 9_999.5:
        text = f"{size / 1000:.3g}k"
    elif size >= 999.5:
        text = f"{size:.0f}"
    else:
        text = f"{size:.3g}"
    return ("\u2212" if value < 0 else "") + text.replace("-", "\u2212")


def power_text(power: float) -> str:
    """Format 2 to the ``power``, which is rounded to an integer, with a superscript: ``2\u207b\u2074``."""
    return f"2{str(round(power)).translate(_SUPERSCRIPTS)}"


def share_text(share: float) -> str:
    """Format a share of a sum: ``84%``, ``\u221212%``, ``31 times`` (from 10 on), ``an unknown share`` (inf or NaN)."""
    if not math.isfinite(share):
        return "an unknown share"
    if abs(share) < 0.005:
        return "0%"  # not "-0%"
    return f"{share:.0%}".replace("-", "\u2212") if abs(share) < 9.995 else f"{short(share)} times"


def share_of_sum(share: float) -> str:
    """Format a share of a sum: ``84% of the sum``, ``31 times the sum``, ``many times the sum`` (from 100 on)."""
    if math.isfinite(share) and abs(share) >= 100:
        return "many times the sum"  # the sum is nearly 0, so the exact ratio is meaningless
    text = share_text(share)
    return f"{text} the sum" if text.endswith("times") else f"{text} of the sum"


def bytes_text(count: float) -> str:
    """Format a number of bytes with a binary unit: ``512 B``, ``24.1 KiB``, ``6.1 TiB``."""
    if not math.isfinite(count):
        return short(count)
    size, unit = abs(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 999.5 or unit == "PiB":
            break
        size /= 1024
    text = short(size) if unit == "PiB" else f"{size:.0f}" if unit == "B" or size >= 100 else f"{size:.3g}"
    return ("\u2212" if count < 0 else "") + f"{text} {unit}"


def column_unit(largest: float) -> str:
    """Return the unit, from B to GiB, for a column of byte counts whose maximum is ``largest``."""
    return next((unit for unit, size in _COLUMN_UNITS.items() if largest >= size), "B")


def in_unit(count: float, unit: str = "GiB") -> str:
    """Format a number of bytes, however large or small, in ``unit``, which is B, KiB, MiB or GiB."""
    return f"{count / _COLUMN_UNITS[unit]:,.{0 if unit == 'B' else 2}f} {unit}"


def number_of(count: int, word: str, ending: str = "s") -> str:
    """Format a count with its noun: "1 update", "1,200 updates", and "3 passes" with ``ending="es"``."""
    return f"{count:,} {word}{'' if count == 1 else ending}"


def join_words(items: Sequence[str], last: str = "and") -> str:
    """Join items with commas, and ``last`` before the last item: "T4, L4 and A100-40"."""
    return f"{', '.join(items[:-1])} {last} {items[-1]}" if len(items) > 1 else "".join(items)


def spans_text(spans: Sequence[tuple[int, int]], between: str = " to ") -> str:
    """Format (first, last) ranges of numbers: "3, 7 to 9"; if there are more than three, omit all but the outer two."""
    runs = [f"{first:,}" if first == last else f"{first:,}{between}{last:,}" for first, last in spans]
    return ", ".join(runs if len(runs) <= 3 else [runs[0], "\u2026", runs[-1]])


def batches_text(spans: Sequence[tuple[int, int]], between: str = " to ") -> str:
    """Format (first, last) ranges of batches: "no batch", "batch 41", "batches 38 to 41", "batches 3, 7 to 9"."""
    if not spans:
        return "no batch"
    is_single = len(spans) == 1 and spans[0][0] == spans[0][1]
    return f"{'batch' if is_single else 'batches'} {spans_text(spans, between)}"


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], style: str = "", cell_style: str = "") -> str:
    """Return an HTML table with ``heads``, if any, above ``rows``. All cells are HTML; the two styles are CSS."""

    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{cell}</{tag[:2]}>" for cell in cells) + "</tr>"

    table_attribute, cell_attribute = (f' style="{css}"' if css else "" for css in (style, cell_style))
    head = f"<thead>{line(f'th scope=col{cell_attribute}', heads)}</thead>" if heads else ""
    body = "".join(line(f"td{cell_attribute}", row) for row in rows)
    return f"<table{table_attribute}>{head}<tbody>{body}</tbody></table>"


def html_page(title: str, content: str, style: str = "", head: str = "") -> str:
    """Return an HTML page in English from ``title`` (plain text), ``style`` (CSS), ``content`` and ``head`` (HTML)."""
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n{head}<style>\n{style}</style>\n<body>\n{content}</body>\n</html>\n"
    )


def html_box(content: str, colour: str) -> str:
    """Return the HTML ``content`` in a ``<div>`` that has inline styles and a bar of ``colour`` on the left."""
    style = f"border-left:6px solid {colour};padding:2px 12px;max-width:72ch;font-size:15px;line-height:1.45"
    return f'<div role="status" style="{style}">{content}</div>'


def png_img(png: bytes, alt: str, width: int) -> str:
    """Return an ``<img>`` with a PNG, at most ``width`` CSS pixels wide, and with the alternative text ``alt``."""
    return _img(png, "png", alt, f'style="max-width:100%;width:{width}px"')


def svg_img(svg: str, alt: str, width: int) -> str:
    """Return an ``<img>`` with an SVG from ``themed_svg()``, at most ``width`` CSS pixels wide.

    The picture is dark on a page marked as dark, unless the page removes ``<style>`` elements; otherwise it is light.
    """
    dark = ", ".join(f"{page} .gl-themed" for page in _DARK_PAGES)
    attributes = f'class="gl-themed" style="color-scheme:light;max-width:100%;width:{width}px"'
    return f"<style>{dark} {{ color-scheme: dark !important; }}</style>{_img(svg.encode(), 'svg+xml', alt, attributes)}"


def _img(picture: bytes, kind: str, alt: str, attributes: str) -> str:
    source = base64.b64encode(picture).decode()
    return f'<img {attributes} alt="{html.escape(alt, quote=True)}" src="data:image/{kind};base64,{source}">'
