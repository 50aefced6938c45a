"""What a class guessed: the records of several learners as one histogram for each question."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..formatting import html_page, html_table, inline_html, number_of
from ..widgets import RecordEvent, find_question, first_guesses, question_names, read_record_text
from .my_record import record_from_csv

_TITLE = "What the class guessed"
_BAR = 30  # characters of the longest bar in plain text
_STYLE = """\
:root { color-scheme: light dark; }
body { font: 16px/1.4 system-ui, sans-serif; max-width: 60rem; margin: 1rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; }
h2 { font-size: 1rem; margin: 1.6rem 0 0; }
p { margin: .2rem 0 .4rem; }
table { width: 100%; table-layout: fixed; border-collapse: collapse; }
td { padding: 2px 6px 2px 0; vertical-align: top; overflow-wrap: anywhere; }
td:first-child { width: 55%; }
td:last-child { width: 3rem; text-align: right; }
.bar {
  height: 1.1em;
  border: 1px solid #767676;
  background: repeating-linear-gradient(135deg, #767676 0 2px, transparent 2px 7px);
}
.bar[style="width:0.0%"] { border: 0; }
.bar.right { border-color: #009e73; background: #009e73; }
section { break-inside: avoid; }
"""


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
        many = f"{number_of(self.learners, 'learner')}, {number_of(len(self.questions), 'question')}"
        return f"{many}. \u2713 marks the answer."

    def page(self) -> str:
        """Return it as one HTML page that needs nothing else."""
        sections = "".join(map(_section, self.questions))
        notes = "".join(f"<p>{html.escape(note, quote=False)}</p>" for note in self.notes)
        head = f"<h1>{_TITLE}</h1>\n<p>{self._head()} Each learner's first guess counts.</p>\n"
        return html_page(_TITLE, f"{head}{sections}\n{notes}", _STYLE)


def class_guesses(paths: Iterable[Path]) -> ClassGuesses:
    """Read records, as CSV or as they are kept (``.jsonl``), and count the first guess of each learner.

    Each file is a learner. Raises ValueError where no file can be read.
    """
    learners, notes = [], []
    for path in paths:
        try:
            events, trouble = _events_of(path)
        except (OSError, ValueError) as error:
            notes.append(f"{path} is left out: {getattr(error, 'strerror', None) or error}.")
            continue
        if trouble:
            notes.append(f"{path}: {trouble}")
        if first := first_guesses(events):
            learners.append(first)
        else:
            notes.append(f"{path} is left out: it holds no guesses.")
    if not learners:
        raise ValueError(" ".join(notes) or "there is no file to read")
    return ClassGuesses(learners, notes)


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
    rows = []
    for option in each.options:
        count, words, look = each.counts.get(option, 0), inline_html(option), "bar"
        if option == each.answer:
            words, look = f"<b>\u2713 {words}</b>", "bar right"
        bar = f'<div class="{look}" style="width:{100 * count / each.learners:.1f}%"></div>'
        rows.append((words, bar, str(count)))
    asked = inline_html(each.asked) or "This version of gradlab does not ask it."
    head = f"<h2>{html.escape(each.name)}</h2><p>{asked} <i>({number_of(each.learners, 'learner')})</i></p>"
    return f"<section>{head}{html_table((), rows)}</section>"
