"""What a learner's record holds, as a table, with its CSV to download."""

from __future__ import annotations

import base64
import html
from pathlib import Path
from typing import Any

from ...widgets import CHECK, RECORD, RecordText, find_question, first_guesses, question_names
from .record_csv import record_csv

_FILE = "gradlab_guesses.csv"


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
        names = question_names()
        rows = ""
        for sign, name, choice in self._rows():
            asked = html.escape(find_question(name).text) if name in names else ""
            rows += (
                f'<tr><td>{sign}</td><td title="{asked}">{html.escape(name)}</td><td>{html.escape(choice)}</td></tr>'
            )
        data = base64.b64encode(self.csv().encode("utf-8-sig")).decode()
        link = f'<a download="{_FILE}" href="data:text/csv;charset=utf-8;base64,{data}">Download it as CSV</a>'
        table = f"<table><tr><th></th><th>question</th><th>your first guess</th></tr>{rows}</table>" if rows else ""
        told = "".join(f"<p>{html.escape(each, quote=False)}</p>" for each in self._sentences())
        own = f"<code>my_record().save()</code> writes {_FILE} beside the notebook."
        page = f"<div><p><b>{self._summary()}.</b> {link}. {own}</p>{table}{told}</div>"
        return {"text/plain": repr(self), "text/html": page}


def my_record() -> MyRecord:
    """Return what is recorded of you on this machine: a table, with a link to download it as CSV."""
    return MyRecord(RECORD.read(), RECORD.where())
