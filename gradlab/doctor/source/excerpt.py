"""The lines of source that a finding is about, with a mark under the words to change."""

from __future__ import annotations

from ..finding import Cause, Finding
from .syntax import source_line

_MOST = 96  # characters of a line


def excerpt(finding: Finding) -> str:
    """Return the line where it shows and the line to edit, in the order of the file; "" if neither can be read."""
    cause = finding.cause
    places = {(finding.file, finding.line)} if finding.line else set()
    if cause is not None:
        places.add((cause.file, cause.line))
    lines = []
    width = max((len(str(line)) for _, line in places), default=1)
    for file, line in sorted(places):
        text = source_line((file, line)).rstrip()
        if not text:
            continue
        lines.append(f"{line:>{width}} | {text[:_MOST]}")
        if cause is not None and (file, line) == (cause.file, cause.line):
            lines.append(f"{'':>{width}} | {_mark(text, cause)}  edit here")
    return "\n".join(_outdented(lines, width))


def _mark(text: str, cause: Cause) -> str:
    """Return carets under the words to change."""
    first = cause.column if cause.end_column else len(text) - len(text.lstrip())
    last = cause.end_column or len(text.split("  #")[0].rstrip())
    return " " * first + "^" * max(1, min(last, _MOST) - first)


def _outdented(lines: list[str], width: int) -> list[str]:
    """Take away the blanks that all lines begin with."""
    head = width + 3
    blanks = min((len(line[head:]) - len(line[head:].lstrip()) for line in lines), default=0)
    return [line[:head] + line[head + blanks :] for line in lines]
