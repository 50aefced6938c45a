"""What a class guessed: the records of several learners as one histogram for each question."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...formatting import inline_html, number_of
from ...widgets import RecordEvent, find_question, first_guesses, question_names, read_record_text
from .record_csv import UNKNOWN_TIME, record_from_csv

_BAR = 30  # characters of the longest bar in plain text


@dataclass(frozen=True)
class QuestionCount:
    """How many learners chose each option of a question first."""

    name: str
    asked: str
    """The question; "" where this version does not ask it."""
    options: tuple[str, ...]
    """Those of the question in their order, then what else was chosen: options of another version."""
    answer: str
    counts: Mapping[str, int]

    @property
    def learners(self) -> int:
        """How many learners answered it."""
        return sum(self.counts.values())


class ClassGuesses:
    """The first guesses of several learners, counted. ``notes`` tells what could not be read."""

    def __init__(self, learners: Sequence[Mapping[str, RecordEvent]], notes: Sequence[str] = ()) -> None:
        """``learners`` has the first guesses of each learner, by the name of the question."""
        self.learners, self.notes = len(learners), tuple(notes)
        self.questions = _counted(learners)

    def __repr__(self) -> str:
        parts = [self._head()]
        for each in self.questions:
            parts += ["", f"{each.name} ({number_of(each.learners, 'learner')}): {each.asked}".rstrip(": ")]
            for option in each.options:
                count, sign = each.counts.get(option, 0), "\u2713" if option == each.answer else " "
                bar = "\u2588" * round(_BAR * count / max(each.learners, 1))
                parts.append(f"  {sign} {count:4}  {bar:{_BAR}}  {option}")
        return "\n".join(parts)

    def _head(self) -> str:
        counts = f"{number_of(self.learners, 'learner')}, {number_of(len(self.questions), 'question')}"
        return f"{counts}. \u2713 marks the answer."

    def page(self) -> str:
        """Return it as one HTML page that needs nothing else."""
        sections = "".join(map(_section, self.questions))
        notes = "".join(f"<p>{html.escape(note, quote=False)}</p>" for note in self.notes)
        return _PAGE.format(head=self._head(), sections=sections, notes=notes)


def class_guesses(paths: Iterable[Path]) -> ClassGuesses:
    """Read records, as CSV or as they are kept (``.jsonl``), and count the first guess of each learner.

    Each file is a learner. A file whose guesses are all in another one, made at the same moments, is an earlier copy of
    that one and is left out. Raises ValueError where no file can be read.
    """
    read, notes = [], []
    for path in paths:
        try:
            events, trouble = _events_of(path)
        except (OSError, ValueError) as error:
            notes.append(f"{path} is left out: {getattr(error, 'strerror', None) or error}.")
            continue
        if trouble:
            notes.append(f"{path}: {trouble}")
        if first := first_guesses(events):
            read.append((path, first))
        else:
            notes.append(f"{path} is left out: it holds no guesses.")
    kept: list[tuple[Path, dict[str, RecordEvent]]] = []
    for path, first in sorted(read, key=lambda each: -len(each[1])):  # a copy comes after what it is a copy of
        timed = all(event.at > UNKNOWN_TIME for event in first.values())  # else alike says nothing of the moments
        twin = next((other for other, events in kept if timed and first.items() <= events.items()), None)
        if twin is None:
            kept.append((path, first))
        else:
            notes.append(f"{path} is left out: {twin} has all its guesses, made at the same moments.")
    if not kept:
        raise ValueError(" ".join(notes) or "there is no file to read")
    return ClassGuesses([first for _, first in kept], notes)


def _events_of(path: Path) -> tuple[tuple[RecordEvent, ...], str]:
    content = path.read_bytes()
    if path.suffix.lower() == ".jsonl":
        found = read_record_text(content)
        return found.events, found.trouble
    return record_from_csv(content), ""


def _counted(learners: Sequence[Mapping[str, RecordEvent]]) -> tuple[QuestionCount, ...]:
    known = question_names()
    chosen: dict[str, Counter[str]] = {}
    for first in learners:
        for name, event in first.items():
            chosen.setdefault(name, Counter())[event.choice] += 1
    order = [*(name for name in known if name in chosen), *sorted(chosen.keys() - set(known))]
    found = []
    for name in order:
        counts, asked, answer = chosen[name], "", ""
        options: tuple[str, ...] = ()
        if name in known:
            question = find_question(name)
            asked, options = question.text, tuple(option.text for option in question.options)
            answer = options[question.answer]
        others = tuple(sorted(counts.keys() - set(options)))
        found.append(QuestionCount(name, asked, (*options, *others), answer, counts))
    return tuple(found)


def _section(each: QuestionCount) -> str:
    rows = ""
    for option in each.options:
        count = each.counts.get(option, 0)
        right = option == each.answer
        share = 100 * count / each.learners
        mark, sign = (' class="right"', "\u2713 ") if right else ("", "")
        rows += (
            f"<tr{mark}><td>{sign}{inline_html(option)}</td>"
            f'<td class="bar"><div style="width:{share:.1f}%"></div></td><td>{count}</td></tr>'
        )
    asked = inline_html(each.asked) or "This version of gradlab does not ask it."
    many = number_of(each.learners, "learner")
    return f"<section><h2>{html.escape(each.name)}</h2><p>{asked} <i>({many})</i></p><table>{rows}</table></section>"


_PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>What the class guessed</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.4 system-ui, sans-serif; max-width: 60rem; margin: 1rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.4rem; }}
h2 {{ font-size: 1rem; margin: 1.6rem 0 0; }}
p {{ margin: .2rem 0 .4rem; }}
table {{ width: 100%; table-layout: fixed; border-collapse: collapse; }}
td {{ padding: 2px 6px 2px 0; vertical-align: top; overflow-wrap: anywhere; }}
td:first-child {{ width: 55%; }}
td:last-child {{ width: 3rem; text-align: right; }}
.bar div {{
  height: 1.1em;
  border: 1px solid #767676;
  background: repeating-linear-gradient(135deg, #767676 0 2px, transparent 2px 7px);
}}
.bar div[style="width:0.0%"] {{ border: 0; }}
.right .bar div {{ border-color: #009e73; background: #009e73; }}
.right td:first-child {{ font-weight: bold; }}
section {{ break-inside: avoid; }}
</style>
<h1>What the class guessed</h1>
<p>{head} Each learner's first guess counts.</p>
{sections}
{notes}
</html>
"""
