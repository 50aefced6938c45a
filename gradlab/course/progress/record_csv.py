"""A record as CSV that opens in a spreadsheet, and the guesses in such a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from datetime import UTC, datetime

from ...widgets import CHECK, GUESS, RecordEvent, find_question, question_names
from ..exercises import exercise_notebooks, exercise_texts
from .tally import notebook_tallies

COLUMNS = ("event", "notebook", "name", "asked", "answer", "right", "at")
_MINUTES = "minutes"
UNKNOWN_TIME = datetime.min.replace(tzinfo=UTC)
"""The time of an event whose time a spreadsheet has rewritten in its own way."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet runs a cell that begins so


def record_csv(events: Iterable[RecordEvent]) -> str:
    """Return a record as CSV: a row for each guess and each checked exercise, and the minutes of each notebook."""
    events = tuple(events)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\r\n")
    rows.writerow(COLUMNS)
    for event in events:
        if event.kind in (GUESS, CHECK):
            rows.writerow(map(_harmless, _row(event)))
    for number, tally in notebook_tallies(events).items():
        if tally.minutes:
            rows.writerow((_MINUTES, number, "", "", tally.minutes, "", ""))
    return text.getvalue()


def _row(event: RecordEvent) -> tuple[str, ...]:
    notebook, asked = event.name.partition("/")[0], ""
    if event.kind == GUESS and event.name in question_names():
        asked = find_question(event.name).text
    elif event.kind == CHECK:
        notebook = exercise_notebooks().get(event.name, "")[:2]
        asked = exercise_texts()[event.name].title if notebook else ""
    right = "yes" if event.right else "no"
    return event.kind, notebook, event.name, asked, event.choice, right, event.at.astimezone(UTC).isoformat()


def record_from_csv(content: bytes) -> tuple[RecordEvent, ...]:
    """Return the guesses and checks of a CSV file, as ``record_csv`` wrote it or as a spreadsheet saved it again.

    Raises ValueError where it has other columns or is no CSV.
    """
    try:
        return _read(content)
    except csv.Error as error:
        raise ValueError(f"it is not a CSV file: {error}") from None


def _read(content: bytes) -> tuple[RecordEvent, ...]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")  # what Excel saves as "CSV" on Windows
    head = text.partition("\n")[0]
    separator = max(",;\t", key=head.count)
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
    if not set(COLUMNS) <= set(rows.fieldnames or ()):
        raise ValueError(f"it is not a CSV file of guesses, which has the columns {', '.join(COLUMNS)}")
    found = []
    for row in rows:
        cells = {name: _as_written(row[name] or "") for name in COLUMNS}
        if cells["event"] in (GUESS, CHECK):
            right = cells["right"].strip().lower() == "yes"
            found.append(RecordEvent(cells["event"], cells["name"], _time(cells["at"]), cells["answer"], right))
    return tuple(sorted(found, key=lambda event: event.at))  # whoever opened it may have sorted it in another way


def _time(text: str) -> datetime:
    """Return a time, UNKNOWN_TIME where it cannot be read."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return UNKNOWN_TIME
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def _harmless(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: an apostrophe goes before what looks like one."""
    return f"'{cell}" if cell.lstrip("'").startswith(_FORMULA) else cell


def _as_written(cell: str) -> str:
    """Undo ``_harmless``."""
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(_FORMULA) else cell
