"""A learner's record as a table and as CSV, which a teacher's machine reads again."""

from __future__ import annotations

import base64
import csv
import html
import io
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..formatting import html_table
from ..widgets import CHECK, GUESS, RECORD, RecordEvent, RecordText, find_question, first_guesses, question_names
from .exercises import exercise_notebooks, exercise_texts

_FILE = "gradlab_guesses.csv"
_COLUMNS = ("event", "notebook", "name", "asked", "answer", "right", "at")


def record_csv(events: Iterable[RecordEvent]) -> str:
    """Return a record as CSV: a row for each guess and each checked exercise."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\r\n")
    rows.writerow(_COLUMNS)
    for event in events:
        notebook, asked = event.name.partition("/")[0], ""
        if event.kind == GUESS and event.name in question_names():
            asked = find_question(event.name).text
        elif event.kind == CHECK:
            notebook = exercise_notebooks().get(event.name, "")[:2]
            asked = exercise_texts()[event.name].title if notebook else ""
        right, at = "yes" if event.right else "no", event.at.astimezone(UTC).isoformat()
        rows.writerow((event.kind, notebook, event.name, asked, event.choice, right, at))
    return text.getvalue()


def record_from_csv(content: bytes) -> tuple[RecordEvent, ...]:
    """Return the events of a CSV file as ``record_csv`` writes it. Raises ValueError for any other file."""
    try:
        rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True))
        return tuple(
            RecordEvent(
                row["event"], row["name"], datetime.fromisoformat(row["at"]), row["answer"], row["right"] == "yes"
            )
            for row in rows
            if row["event"] in (GUESS, CHECK)
        )
    except (csv.Error, KeyError, TypeError, ValueError):
        raise ValueError("it is not a CSV file as `gradlab guesses export` writes it") from None


class MyRecord:
    """The record as it is now; ``save`` writes it as CSV."""

    def __init__(self, found: RecordText, where: str) -> None:
        """``where`` says in one sentence where it is kept."""
        self.events, self._where, self._trouble = found.events, where, found.trouble

    def csv(self) -> str:
        """Return it as CSV."""
        return record_csv(self.events)

    def save(self, path: str | Path = _FILE) -> Path:
        """Write it as CSV and return the path of the file."""
        target = Path(path)
        with open(target, "w", encoding="utf-8-sig", newline="") as file:  # the mark tells Excel that it is UTF-8
            file.write(self.csv())
        return target

    def __repr__(self) -> str:
        rows = [" ".join(cells) for cells in self._rows()]
        return "\n".join([self._summary(), *rows, *self._sentences()])

    def _summary(self) -> str:
        first = first_guesses(self.events)
        solved = {event.name for event in self.events if event.kind == CHECK and event.right}
        right = sum(event.right for event in first.values())
        return f"{right} of {len(first)} first guesses right, {len(solved)} exercises solved"

    def _rows(self) -> list[tuple[str, str, str]]:
        """One row for each question: right or not, its name, and the first guess."""
        first = first_guesses(self.events)
        return [("\u2713" if event.right else "\u2717", name, event.choice) for name, event in sorted(first.items())]

    def _sentences(self) -> list[str]:
        return [f"Your record: {self._trouble}"] * bool(self._trouble) + [self._where]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        rows = []
        for sign, name, choice in self._rows():
            asked = html.escape(find_question(name).text) if name in question_names() else ""
            rows.append((sign, f'<span title="{asked}">{html.escape(name)}</span>', html.escape(choice)))
        data = base64.b64encode(self.csv().encode("utf-8-sig")).decode()
        link = f'<a download="{_FILE}" href="data:text/csv;charset=utf-8;base64,{data}">Download it as CSV</a>'
        table = html_table(("", "question", "your first guess"), rows) if rows else ""
        told = "".join(f"<p>{html.escape(each, quote=False)}</p>" for each in self._sentences())
        own = f"<code>my_record().save()</code> writes {_FILE} beside the notebook."
        page = f"<div><p><b>{self._summary()}.</b> {link}. {own}</p>{table}{told}</div>"
        return {"text/plain": repr(self), "text/html": page}


def my_record() -> MyRecord:
    """Return what is recorded of you on this machine: a table, with a link to download it as CSV."""
    return MyRecord(RECORD.read(), RECORD.where())
