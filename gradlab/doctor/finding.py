"""Findings, and the report that holds them."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from ..formatting import lesson_words, link_html, number_of

Site = tuple[str, int]
"""File and line of the learner's code."""
NO_SITE: Site = ("", 0)

Severity = Literal["error", "warning", "hint"]
"""error: proven from what happened. warning: very likely a mistake. hint: worth a look, and perhaps meant so."""
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True)
class Code:
    """A kind of finding: its short stable name, how grave it is, its words, and the lesson that explains it."""

    name: str
    notebook: str = "10_loop_doctor"
    section: str = ""
    """A heading of the notebook; "" where no section is about this alone."""
    severity: Severity = "error"
    message: str = ""
    """The bug in one sentence; may have {fields} for a rule's evidence."""
    fix: str = ""
    """The fix as a sentence, where no single line of Python at a known place does it; may have {fields}."""

    def with_(self, **changes: Any) -> Code:
        """Return the same code with other words or another severity, for another way to see it."""
        return replace(self, **changes)

    @property
    def lesson(self) -> str:
        """The address of the lesson or, as long as there is none, the name of its notebook and section."""
        return lesson_words(self.notebook, self.section)


@dataclass(frozen=True)
class Cause:
    """The place to edit, where it is sure: words of the learner's own code to change, or where a line is missing."""

    file: str
    line: int
    column: int = 0
    """The first character, from 0."""
    end_column: int = 0
    """The character after the last; 0 for the whole line."""
    insert: Literal["", "above", "below"] = ""
    """The side on which a line is missing; "" if these characters are to change."""

    @property
    def what(self) -> str:
        """The instruction: "edit here", or "insert below line 36"."""
        return f"insert {self.insert} line {self.line}" if self.insert else "edit here"


@dataclass(frozen=True)
class Edit:
    """A place, and the line of Python that is missing there, or that takes the place of the line."""

    cause: Cause
    line: str


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a loop."""

    code: str
    """A short stable name, such as "missing-zero-grad"."""
    severity: Severity
    message: str
    """The bug in one sentence."""
    evidence: str
    """The evidence, with the numbers of updates and batches."""
    file: str
    line: int
    """The line in the learner's own code; "" and 0 without one."""
    fix: str
    """The fix: a line of Python for the place of ``cause`` if ``fix_is_line``, else a sentence."""
    lesson: str
    """Its explanation: an address or, as long as the project has none, a notebook and its section."""
    cause: Cause | None = None
    """The place to edit; None where it is not sure."""
    fix_is_line: bool = False
    excerpt: str = ""
    """The line where it shows and the place to edit, from the source, with a mark under the words to change."""

    @property
    def lesson_address(self) -> str:
        """The lesson if it is an address, otherwise ""."""
        return self.lesson if "://" in self.lesson else ""

    @property
    def where(self) -> str:
        """File and line, as an editor takes them."""
        return f"{short_path(self.file)}:{self.line}" if self.line else ""


@dataclass
class Report:
    """All findings of one watch, the gravest first; empty and falsy when nothing was found."""

    findings: list[Finding] = field(default_factory=list)
    watched: str = ""
    """The extent of the watch: "120 updates of Adam over 6 parameters"."""
    missing: list[str] = field(default_factory=list)
    """The features that the doctor lacks on the running version of PyTorch, as text."""
    judged: bool = True
    """False if nothing was trained, or not where the doctor could follow; ``watched`` says why."""
    ignored: int = 0
    """The number of further findings that a comment ignores."""
    checked: str = ""
    """The counts of what the rules checked, and what they could not judge; "" if nothing was trained."""
    ended: str = ""
    """The exception that ended the block: "The block ended with ValueError in line 12 (no label)"."""

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def codes(self) -> list[str]:
        """The codes of all findings."""
        return [finding.code for finding in self.findings]

    @property
    def wrong(self) -> bool:
        """True if anything was found that is more than a hint."""
        return any(finding.severity != "hint" for finding in self.findings)

    @property
    def summary(self) -> str:
        """The counts in one line: "2 findings, 1 ignored by comment. Watched 24 updates."."""
        counts = [number_of(len(self), "finding")] if self else []
        if not counts and self.judged and not self.ended:
            counts = ["No findings"]
        if self.ignored:
            counts.append(f"{self.ignored:,} ignored by comment")
        text = self.watched
        if self.ended:
            text = f"{self.ended}; until then: {text[:1].lower()}{text[1:]}"
        return f"{', '.join(counts)}. {text}".strip() if counts else text

    @property
    def text(self) -> str:
        """The report to read, a paragraph a finding."""
        paragraphs = ["\n".join(self._head()), *map(_paragraph, self.findings), self.checked]
        return "\n\n".join(filter(None, paragraphs))

    def _head(self) -> list[str]:
        return [self.summary, *(f"Not on this version of PyTorch: {what}." for what in self.missing)]

    def plain(self) -> Report:
        """Return the report alone, without what has watched."""
        return Report(**{item.name: getattr(self, item.name) for item in fields(Report)})

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data, for ``--json``."""
        return asdict(self)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        head = "<br>".join(html.escape(line) for line in [*self._head(), self.checked] if line)
        cards = "".join(map(_card, self.findings))
        return f'<div style="font-family: sans-serif; max-width: 56em">{cards}<p>{head}</p></div>'


def _paragraph(finding: Finding) -> str:
    labelled = {"seen: ": finding.evidence, "fix:  ": finding.fix, "more: ": finding.lesson}
    lines = [
        f"{finding.severity}: {finding.code}" + (f"  at {finding.where}" if finding.where else ""),
        f"  {finding.message}",
        *(f"    {line}" for line in finding.excerpt.splitlines()),
        *(f"  {label}{text}" for label, text in labelled.items() if text),
    ]
    return "\n".join(lines)


_COLOURS = {"error": "#D55E00", "warning": "#E69F00", "hint": "#0072B2"}  # Okabe and Ito's
_SIGNS = {"error": "✖", "warning": "⚠", "hint": "ℹ"}
_BOX = "margin: 4px 0; padding: 4px 8px; overflow-x: auto; border: 1px solid currentColor; opacity: 0.9"


def _card(finding: Finding) -> str:
    escaped = {name: html.escape(str(value)) for name, value in vars(finding).items()}
    severity, fix, excerpt = finding.severity, escaped["fix"], escaped["excerpt"]
    more = link_html(finding.lesson_address, finding.lesson)
    parts = [
        f"<div><b>{_SIGNS[severity]} {severity}: {escaped['code']}</b> <code>{html.escape(finding.where)}</code></div>",
        f"<div>{escaped['message']}</div>",
        f'<pre style="{_BOX}">{excerpt}</pre>' if excerpt else "",
        f'<div style="opacity: 0.8">Seen: {escaped["evidence"]}</div>',
        f"<div>Fix: {f'<code>{fix}</code>' if finding.fix_is_line else fix}</div>" if fix else "",
        f'<div style="opacity: 0.8">More: {more}</div>',
    ]
    style = f"border-left: 6px solid {_COLOURS[severity]}; padding: 4px 12px; margin: 8px 0"
    return f'<div style="{style}">{"".join(parts)}</div>'


def short_path(file: str) -> str:
    """Return the short name of a file: its path from here if it is in this folder, "cell" for a cell of a notebook."""
    if "ipykernel" in file or file.startswith("<"):
        return "cell"
    try:
        return str(Path(file).resolve().relative_to(Path.cwd()))
    except ValueError:
        return file
