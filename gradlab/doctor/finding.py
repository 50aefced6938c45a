"""Findings of the doctor, and the report that contains them."""

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
""""error" is proven by the run, "warning" is very likely a mistake, and "hint" may be intentional."""
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True)
class Code:
    """A kind of bug that the doctor reports, with a short stable name, a severity, a message, a fix and a lesson."""

    name: str
    notebook: str = "10_loop_doctor"
    section: str = ""
    """A heading of the notebook; "" if no section is about this bug alone."""
    severity: Severity = "error"
    message: str = ""
    """The bug in one sentence; may contain {fields} that a rule fills in."""
    fix: str = ""
    """The fix in one sentence, used if the search finds no line of Python that fixes the bug; may contain {fields}."""

    def with_(self, **changes: Any) -> Code:
        """Return a copy of this Code in which ``changes`` replace fields, for example the message or the severity."""
        return replace(self, **changes)

    @property
    def lesson(self) -> str:
        """The URL of the lesson on this bug or, if no URL is known, the names of the lesson's notebook and section."""
        return lesson_words(self.notebook, self.section)


@dataclass(frozen=True)
class Cause:
    """The location of a fix in the learner's code: characters or a line to change, or the position for a new line."""

    file: str
    line: int
    column: int = 0
    end_column: int = 0
    """Indices of the first character to change and of the next one to keep; ``end_column`` is 0 for the whole line."""
    insert: Literal["", "above", "below"] = ""
    """The side of ``line`` on which to insert a new line; "" if characters or the whole line are to change."""

    @property
    def what(self) -> str:
        """The instruction that a report prints at this location, such as "edit here" or "insert below line 36"."""
        return f"insert {self.insert} line {self.line}" if self.insert else "edit here"


@dataclass(frozen=True)
class Edit:
    """A line of Python that fixes a bug, and the location where the line is inserted or replaces another line."""

    cause: Cause
    line: str


@dataclass(frozen=True)
class Finding:
    """A bug, or a likely bug, in a training loop."""

    code: str
    """A short stable name, such as "missing-zero-grad"."""
    severity: Severity
    message: str
    evidence: str
    """The evidence from the run, with the numbers of updates and batches."""
    file: str
    line: int
    """The line of the learner's code that shows the bug; ``file`` is "" and ``line`` is 0 if there is none."""
    fix: str
    """The fix: a line of Python for the location ``cause`` if ``fix_is_line``, otherwise a sentence."""
    lesson: str
    """The lesson that explains the bug: a URL or, if it has none yet, a notebook and its section."""
    cause: Cause | None = None
    """The location to edit; None if it is not certain."""
    fix_is_line: bool = False
    excerpt: str = ""
    """The source lines that show the bug and the location to edit, which is marked; "" if they cannot be read."""

    @property
    def lesson_address(self) -> str:
        """The URL of the lesson, or "" if the lesson has none."""
        return self.lesson if "://" in self.lesson else ""

    @property
    def where(self) -> str:
        """The file and line that show the bug, in the form "train.py:12", or "" if there is no such line."""
        return f"{short_path(self.file)}:{self.line}" if self.line else ""


@dataclass
class Report:
    """The findings of one ``watch`` block, the most severe first. A report without findings is falsy."""

    findings: list[Finding] = field(default_factory=list)
    watched: str = ""
    """A sentence on what was watched, such as "Watched 24 backward passes, 24 updates of Adam."."""
    missing: list[str] = field(default_factory=list)
    """Descriptions of the features that the doctor lacks on the running version of PyTorch."""
    judged: bool = True
    """False if nothing was trained, or only where the doctor could not follow; ``watched`` gives the reason."""
    ignored: int = 0
    """Number of further findings that comments in the source ignore."""
    checked: str = ""
    """The counts of the events that were checked, and a list of what was not judged; "" if nothing was trained."""
    ended: str = ""
    """The error that ended the block: "The block ended with ValueError in line 12 (no label)"; "" if none did."""

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
        """True if any finding is an error or a warning."""
        return any(finding.severity != "hint" for finding in self.findings)

    @property
    def summary(self) -> str:
        """Sentences that give the number of findings, the error that ended the block (if any), and what was watched."""
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
        """The report as plain text, with one paragraph for each finding."""
        paragraphs = ["\n".join(self._head()), *map(_paragraph, self.findings), self.checked]
        return "\n\n".join(filter(None, paragraphs))

    def _head(self) -> list[str]:
        return [self.summary, *(f"Not available on this version of PyTorch: {what}." for what in self.missing)]

    def plain(self) -> Report:
        """Return a copy that is a plain Report, without the attributes that only the subclass ``watch`` has."""
        return Report(**{item.name: getattr(self, item.name) for item in fields(Report)})

    def as_dict(self) -> dict[str, Any]:
        """Return the report, including its findings, as nested dicts and lists that can be written as JSON."""
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


_COLOURS = {"error": "#D55E00", "warning": "#E69F00", "hint": "#0072B2"}  # the Okabe-Ito palette
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
    """Return "cell" for a notebook cell, otherwise ``file``, made relative to the working directory if it is inside."""
    if "ipykernel" in file or file.startswith("<"):
        return "cell"
    try:
        return str(Path(file).resolve().relative_to(Path.cwd()))
    except ValueError:
        return file
