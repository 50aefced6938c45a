"""What a learner has done: the map with ticks, CSV there and back, and a class's histograms."""

from __future__ import annotations

import csv
import html
import io
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradlab.__main__ import main
from gradlab.course import class_guesses, exercise, my_record, series_map
from gradlab.course.exercises import exercise_notebooks
from gradlab.course.my_record import MyRecord, record_csv, record_from_csv
from gradlab.course.series import SeriesMap, notebook_tallies, series_notebooks, series_stages
from gradlab.widgets import CHECK, GUESS, RECORD, RecordEvent, RecordText, find_question, question_names
from gradlab.widgets.learner_record import append_to_record

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 11, 22, 17, 20, 22, 123456, tzinfo=UTC)


def guess(name: str, place: int, minutes: float = 0) -> RecordEvent:
    question = find_question(name)
    return RecordEvent(
        GUESS, name, NOW + timedelta(minutes=minutes), question.options[place].text, place == question.answer
    )


def in_notebook(number: str) -> list[str]:
    return [name for name in question_names() if name.startswith(number)]


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record of its own; what an earlier test could not write is not in it."""
    path = tmp_path / "home" / "record.jsonl"
    monkeypatch.setenv("GRADLAB_RECORD", str(path))
    monkeypatch.setattr(RECORD, "_unwritten", [])
    monkeypatch.setattr(RECORD, "_refused", False)
    return path


def test_the_series_is_as_the_teachers_map_has_it() -> None:
    text = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\d\d) (\w+)\]\((\S+)\) \| .* \| (\d+) \+ (\d+) \+ (\d+) \| (.*) \|$", text, re.M)
    ours = [
        (each.number, each.name, each.file, *map(str, each.minutes), each.needs_text) for each in series_notebooks()
    ]
    assert ours == rows
    assert len(ours) == 14
    placed = [notebook.number for _, stage in series_stages() for notebook in stage]
    assert sorted(placed) == [each.number for each in series_notebooks()]
    for notebook in series_notebooks():
        for other in (*notebook.needs, *notebook.helps):
            assert other == "the series" or placed.index(other) < placed.index(notebook.number)


def test_the_map_counts_each_question_and_each_exercise_once() -> None:
    first, second = in_notebook("03")[:2]
    events = [guess(first, 0), guess(first, 1), guess(second, 0), guess("05/peak-with-adam", 2)]
    events += [RecordEvent(CHECK, "period_of", NOW, right=right) for right in (False, True, True)]
    events += [
        RecordEvent(CHECK, "curvature_from", NOW, right=False),
        RecordEvent(CHECK, "of_yesterday", NOW, right=True),
    ]
    found = notebook_tallies(events)
    assert (found["03"].answered, found["03"].questions) == (2, len(in_notebook("03")))
    assert (found["03"].solved, found["03"].exercises) == (1, 3)
    assert (found["05"].answered, found["05"].solved) == (1, 0)
    assert not found["04"].sign
    lines = repr(SeriesMap(RecordText(tuple(events)))).splitlines()
    asked = {number: len(in_notebook(number)) for number in ("03", "04")}
    assert re.fullmatch(rf"\u25d0 03 forgetting_zero_grad +00 +\d+ min +2 of {asked['03']} +1 of 3", lines[4])
    assert re.fullmatch(rf"  04 zero_grad +00 +\d+ min +0 of {asked['04']} +0 of 3", lines[5])


def test_a_notebook_is_done_when_all_is_answered_and_solved() -> None:
    events = [guess(name, 0) for name in in_notebook("13")]
    events += [
        RecordEvent(CHECK, name, NOW, right=True) for name, home in exercise_notebooks().items() if home[:2] == "13"
    ]
    shown = SeriesMap(RecordText(tuple(events)))._repr_mimebundle_()
    assert "\u2713 13 cheat_sheet" in shown["text/plain"]
    (tile,) = re.findall(r'<li class="gl-map-done">.*?</li>', shown["text/html"])
    assert "13 cheat_<wbr>sheet" in tile, "a name breaks at underscores only"
    assert "\u25d0 13 cheat_sheet" in repr(SeriesMap(RecordText(tuple(events[1:]))))


def test_the_empty_map_says_what_there_is_and_nothing_else(record: Path) -> None:
    shown = series_map()._repr_mimebundle_()
    assert "\u2713" not in shown["text/html"] + shown["text/plain"]
    assert str(record) not in shown["text/html"]
    assert not record.exists()
    assert "<a href" not in shown["text/html"]  # there is no notebook beside this test


def test_the_map_links_to_notebooks_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "notebooks")
    page = series_map()._repr_mimebundle_()["text/html"]
    assert sorted(re.findall(r'href="([^"]+)"', page)) == sorted(path.name for path in Path().glob("*.ipynb"))


def test_a_check_is_recorded_without_the_answer(record: Path) -> None:
    it = exercise("batches_in_grad")
    assert it.check(None).state == "not attempted"
    assert not record.exists()
    it.check(lambda updates, accumulate, zero_grad: "a secret of mine")
    it.check(lambda updates, accumulate, zero_grad: accumulate if zero_grad else updates * accumulate)
    assert [(event.name, event.right) for event in RECORD.read().events] == [(it.name, False), (it.name, True)]
    assert "secret" not in record.read_text(encoding="utf-8")


def test_where_the_record_cannot_be_written_one_sentence_says_so(record: Path) -> None:
    record.parent.write_text("a file where a folder is wanted")
    it = exercise("batches_in_grad")
    it.check(lambda updates, accumulate, zero_grad: 0)
    for shown in (series_map(), my_record()):
        bundle = shown._repr_mimebundle_()
        for text in (bundle["text/plain"], html.unescape(bundle["text/html"])):
            assert text.count("cannot be written: what you do is kept only as long as this kernel runs.") == 1


def test_a_record_that_was_cut_off_is_told_where_the_learner_looks(record: Path) -> None:
    append_to_record(record, [guess(name, 0) for name in in_notebook("03")[:2]])
    record.write_bytes(record.read_bytes()[:-30])
    sentence = "Your record: Line 3 could not be read; it is skipped, and everything else is read."
    for shown in (series_map(), my_record()):
        assert sentence in repr(shown)
        assert sentence in html.unescape(shown._repr_mimebundle_()["text/html"])
    assert "1 first guesses right" in repr(my_record())


WORDS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20)
TRICKY = st.sampled_from(["=1+1", "'=1", "-18.0", "\r\n", '"', "a;b", "'", ","])


@given(st.lists(st.tuples(TRICKY | WORDS, st.booleans()), max_size=6))
def test_what_is_written_as_csv_is_read_again(answers: list[tuple[str, bool]]) -> None:
    events = tuple(
        RecordEvent(GUESS, f"03/q{at}", NOW + timedelta(seconds=at), answer, right)
        for at, (answer, right) in enumerate(answers)
    )
    assert record_from_csv(record_csv(events).encode("utf-8-sig")) == events


def test_the_csv_tells_questions_and_exercises() -> None:
    name = in_notebook("03")[0]
    events = [guess(name, 1, minutes=4), RecordEvent(CHECK, "period_of", NOW, right=True)]
    rows = list(csv.DictReader(io.StringIO(record_csv(events))))
    question = find_question(name)
    assert [row["event"] for row in rows] == ["guess", "check"]
    assert (rows[0]["asked"], rows[0]["answer"], rows[0]["notebook"]) == (question.text, question.options[1].text, "03")
    assert (rows[1]["asked"], rows[1]["right"], rows[1]["notebook"]) == (exercise("period_of").title, "yes", "03")


@pytest.mark.parametrize(
    "content", [b"\0\xff\xfe,", b"event;name\r\nguess;03/a\r\n", b"event,name,at,answer,right\r\nguess,03/a\r\n"]
)
def test_another_file_is_refused_as_a_csv(content: bytes) -> None:
    with pytest.raises(ValueError, match="not a CSV file as `gradlab guesses export` writes it"):
        record_from_csv(content)


def classroom(folder: Path) -> list[Path]:
    """Three learners: two files with one name, one as CSV."""
    ask, other = in_notebook("03")[:2]
    events = {
        "a/record.jsonl": [guess(ask, 0), guess(ask, 3, minutes=1), guess(other, 1)],
        "b/record.jsonl": [guess(ask, 0, minutes=0.5)],
        "c.csv": [guess(ask, 3, minutes=2), guess(other, 1, minutes=3)],
    }
    for name, made in events.items():
        path = folder / name
        if path.suffix == ".csv":
            MyRecord(RecordText(tuple(made)), "").save(path)
        else:
            append_to_record(path, made)
    return [folder / name for name in events]


def test_a_class_is_counted_by_first_choices(tmp_path: Path) -> None:
    found = class_guesses(classroom(tmp_path))
    ask, other = in_notebook("03")[:2]
    counts = {each.name: +Counter(each.counts) for each in found.questions}
    texts = [option.text for option in find_question(ask).options]
    assert found.learners == 3
    assert counts[ask] == {texts[0]: 2, texts[3]: 1}
    assert counts[other] == {find_question(other).options[1].text: 2}
    assert found.notes == ()
    lines = repr(found).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(ask))
    bars = [(line[2], int(line[4:8]), line[10:40].count("\u2588")) for line in lines[at + 1 : at + 5]]
    answer = find_question(ask).answer
    assert bars == [("\u2713" if place == answer else " ", n, 10 * n) for place, n in enumerate((2, 0, 0, 1))]


def test_the_page_of_a_class_needs_nothing_else_and_escapes_what_it_shows(tmp_path: Path) -> None:
    paths = classroom(tmp_path)
    strange = tmp_path / "<script>.jsonl"
    append_to_record(strange, [RecordEvent(GUESS, "77/<b>gone</b>", NOW, "<script>alert(1)</script>", False)])
    strange.write_bytes(strange.read_bytes() + b"<i>cut")
    page = class_guesses([*paths, strange]).page()
    assert "<script" not in page
    assert not re.search(r"https?:|src=|@import|url\(", page)
    assert "&lt;b&gt;gone&lt;/b&gt;" in page
    assert "This version of gradlab does not ask it." in page
    assert page.count('class="bar right"') == 2  # one for each question that is known
    assert "4 learners, 3 questions" in page


def told(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return main(arguments), *capfd.readouterr()


def test_export_and_merge_on_the_command_line(
    record: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    append_to_record(record, [guess(in_notebook("03")[0], 0)])
    out = tmp_path / "mine.csv"
    assert told(capfd, "guesses", "export", str(out))[0] == 0
    assert told(capfd, "guesses", "export")[1].replace("\n", "\r\n").encode("utf-8-sig") == out.read_bytes()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.csv").write_bytes(b"\0\xff\xfe,")
    code, shown, errors = told(capfd, "guesses", "merge", "*.csv", "no such.csv")
    assert code == 0
    assert shown.startswith("1 learner, 1 question.")
    assert "broken.csv is left out" in errors
    assert "no such.csv is left out: No such file or directory." in errors
    code, shown, _ = told(capfd, "guesses", "merge", "mine.csv", "-o", "class.html")
    assert (code, shown) == (0, "class.html: 1 learner, 1 question. \u2713 marks the answer.\n")
    assert "<h1>What the class guessed</h1>" in (tmp_path / "class.html").read_text(encoding="utf-8")
    code, _, errors = told(capfd, "guesses", "merge", "broken.csv")
    assert code == 2
    assert errors.count("\n") == 1
    code, _, errors = told(capfd, "guesses", "export", str(tmp_path / "no" / "folder.csv"))
    assert (code, "cannot be written" in errors) == (2, True)


def test_a_record_is_deleted_by_one_command(record: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert told(capfd, "guesses", "delete")[:2] == (0, "There is no record on this machine.\n")
    append_to_record(record, [guess(in_notebook("03")[0], 0)])
    assert told(capfd, "guesses", "delete")[:2] == (0, f"Deleted {record}.\n")
    assert not record.exists()
