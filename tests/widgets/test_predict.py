"""predict: the first guess counts, the reason comes after it, and no page tells it in clear."""

from __future__ import annotations

import base64
import html
import importlib
import json
import re

import pytest

from gradlab import predict
from gradlab.widgets import learner_record
from gradlab.widgets.learner_record import LearnerRecord
from gradlab.widgets.predict import Prediction
from gradlab.widgets.question import Question, find_question, read_question

ENTRY = {
    "question": "What is in `.grad` if a < b?",
    "options": [
        {"text": "the sum", "right": True},
        {"text": "the last", "remark": "Nothing is overwritten."},
        {"text": "none", "remark": "It is filled at the first call."},
    ],
    "why": "`backward()` adds.",
}
NAME = "03/where-do-the-weights-go"


@pytest.fixture(autouse=True)
def a_fresh_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("gradlab.widgets.predict")  # by its name the package has the function
    monkeypatch.setattr(module, "GUESSES", learner_record.Guesses())


def made_up(name: str = "99/made-up", kept: learner_record.Guesses | None = None) -> Prediction:
    return Prediction(read_question(name, ENTRY), kept or learner_record.Guesses())


def live(asked: Prediction) -> object:
    """The part that the browser knows."""
    return asked.widget.children[1]


def opened(page: str) -> dict[str, object]:
    """What the browser opens after the choice: written here a second time, with other means."""
    name = html.unescape(re.search(r'data-name="([^"]+)"', page)[1]).encode()
    sealed = base64.b64decode(re.search(r'data-sealed="([^"]+)"', page)[1])
    return json.loads(bytes(sealed[at] ^ name[at % len(name)] for at in range(len(sealed))))


def test_the_first_guess_counts() -> None:
    asked = predict(NAME)
    assert asked.guess is None
    assert asked.right is None
    wrong, other = asked.options[0], asked.options[1]
    asked.choose(wrong)
    asked.choose(other)
    assert asked.guess == wrong
    assert asked.right is False
    assert live(asked).guess == 0
    assert live(asked).tally == "Your guesses so far: 0 of 1 right."


def test_a_click_in_the_browser_is_a_guess_and_the_first_one_counts() -> None:
    asked = made_up()
    live(asked).guess = 0
    assert asked.right is True
    live(asked).guess = 2  # another view of the same question, late
    assert asked.guess == "the sum"
    assert live(asked).guess == 0


def test_one_can_bet_again_in_another_kernel_and_the_first_guess_counts() -> None:
    record = LearnerRecord(lambda: None)
    made_up(kept=learner_record.Guesses(record)).choose("none")
    asked = made_up(kept=learner_record.Guesses(record))
    assert (asked.guess, asked.earlier) == (None, "none")
    asked.choose("the sum")
    assert asked.right is True
    assert live(asked).tally == "Your guesses so far: 0 of 1 right."


def test_a_choice_that_is_none_is_ignored() -> None:
    asked = made_up()
    live(asked).guess = 7
    assert asked.guess is None


def test_a_guess_is_kept_when_its_cell_is_run_again() -> None:
    first = predict(NAME)
    first.choose(first.options[-1])
    again = predict(NAME)
    assert again.guess == first.guess
    assert live(again).guess == live(first).guess
    assert "1 of 1 right" in live(again).tally


def test_an_option_that_is_gone_can_be_chosen_anew() -> None:
    kept = learner_record.Guesses()
    kept.record("99/made-up", "what was an option yesterday", False)
    asked = made_up(kept=kept)
    assert asked.guess is None
    asked.choose("the last")
    assert asked.guess == "the last"


def test_the_tally_counts_each_question_once() -> None:
    kept = learner_record.Guesses()
    told = [made_up(name, kept) for name in ("99/one", "99/two", "99/one", "99/three")]
    for asked, guess in zip(told, ("the sum", "the last", "none", "the sum"), strict=True):
        asked.choose(guess)
    assert live(told[1]).tally == "Your guesses so far: 1 of 2 right."
    assert live(told[3]).tally == "Your guesses so far: 2 of 3 right."


def test_the_page_asks_and_tells_nothing_in_clear() -> None:
    bundle = made_up()._repr_mimebundle_()
    assert bundle["text/plain"] == "Bet. What is in `.grad` if a < b?\n  ( ) the sum\n  ( ) the last\n  ( ) none"
    page = bundle["text/html"]
    assert "What is in <code>.grad</code> if a &lt; b?" in page
    assert "<li>the sum</li><li>the last</li><li>none</li>" in page
    assert "Open this notebook live and run this cell to bet." in page
    for secret in ("adds.", "Nothing is overwritten.", "It is filled at the first call."):
        assert secret not in page
        assert base64.b64encode(secret.encode()).decode()[:-4] not in page
    assert opened(page) == {
        "answer": 0,
        "why": "<code>backward()</code> adds.",
        "remarks": ["", "Nothing is overwritten.", "It is filled at the first call."],
    }


def test_without_scripts_the_words_stay() -> None:
    """As GitHub shows it: no script, no style, no data attributes."""
    page = re.sub(r"<(script|style).*?</\1>|<[^>]+>", "", made_up()._repr_mimebundle_()["text/html"], flags=re.S)
    assert page == (
        "Bet. What is in .grad if a &lt; b?the sumthe lastnoneOpen this notebook live and run this cell to bet."
    )


def test_a_guess_that_is_no_option_is_refused() -> None:
    with pytest.raises(ValueError, match="guess must be one of 'the sum', 'the last', 'none', got 'both'"):
        made_up().choose("both")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "03/where-do-weights-go",
            r"no question '03/where-do-weights-go'; near names are '03/where-do-the-weights-go'",
        ),
        ("where-do-the-weights-go", r"near names are '03/where-do-the-weights-go'"),
        ("04/where-do-the-weights-go", r"near names are '03/where-do-the-weights-go'"),
        ("03/q", r"notebook 03 has 03/where-do-the-weights-go, "),
        ("", r"begins with the number of a notebook: 00, 01"),
        ("../../x", r"there is no question '\.\./\.\./x'"),
    ],
)
def test_an_unknown_name_is_answered_with_near_ones(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        predict(name)


@pytest.mark.parametrize("name", [1, None, ["03/x"]])
def test_a_name_is_a_text(name: object) -> None:
    with pytest.raises(TypeError, match="the name must be a text such as"):
        predict(name)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"why": " "}, "no text may be empty, got ' '"),
        ({"question": ""}, "no text may be empty"),
        ({"answer": "the sum"}, "it must have options, question, why, got answer"),
        ({"options": ENTRY["options"][:1]}, "it must have 2 to 6 options, got 1"),
        ({"options": [{"text": str(i), "remark": "No."} for i in range(7)]}, "it must have 2 to 6 options, got 7"),
        ({"options": ENTRY["options"][1:]}, "exactly one option must have right = true, got 0"),
        ({"options": [ENTRY["options"][0], {"text": "b", "right": True}]}, "exactly one .* got 2"),
        ({"options": [ENTRY["options"][0], {"text": "b"}]}, "an option has a text, and a remark or right = true"),
        ({"options": [ENTRY["options"][0], {"text": "b", "remark": ""}]}, "no text may be empty"),
        ({"options": [ENTRY["options"][0], {"text": "the sum", "remark": "No."}]}, "its options must differ"),
    ],
)
def test_an_entry_that_is_not_complete_is_named(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=f"question 99/made-up: {words}"):
        read_question("99/made-up", ENTRY | wrong)


def test_a_question_is_read_as_it_is_written() -> None:
    question = find_question(NAME)
    assert isinstance(question, Question)
    assert question.name == NAME
    assert question.options[question.answer].remark == ""
