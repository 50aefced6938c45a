"""predict: the first guess counts, the reason comes after it, and no page has it in clear text."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable

import pytest

from gradlab import predict
from gradlab.widgets.predict import GUESSES, Guesses, Prediction
from gradlab.widgets.question import read_question

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
def a_fresh_kernel() -> None:
    GUESSES.clear()


def made_up(name: str = "99/made-up", guesses: Guesses | None = None) -> Prediction:
    return Prediction(read_question(name, ENTRY), {} if guesses is None else guesses)


def live(prediction: Prediction) -> object:
    """The part that the browser knows."""
    return prediction.widget.children[1]


def opened(page: str) -> dict[str, object]:
    """The answer that the browser opens after the choice, decoded independently of its code."""
    name = html.unescape(re.search(r'data-name="([^"]+)"', page)[1]).encode()
    sealed = base64.b64decode(re.search(r'data-sealed="([^"]+)"', page)[1])
    return json.loads(bytes(sealed[index] ^ name[index % len(name)] for index in range(len(sealed))))


def test_the_first_guess_counts_also_when_its_cell_is_run_again() -> None:
    prediction = predict(NAME)
    assert prediction.guess is None
    prediction.choose(prediction.options[0])
    prediction.choose(prediction.options[1])
    for shown in (prediction, predict(NAME)):
        assert shown.guess == prediction.options[0]
        assert (live(shown).guess, live(shown).answered, live(shown).tally) == (0, False, ""), "first the learner looks"
    live(shown).set_trait("answered", True)  # as the browser does
    for again in (shown, predict(NAME)):
        assert (live(again).answered, live(again).tally) == (True, "Your guesses so far: 0 of 1 right.")


def test_there_is_nothing_to_tell_before_a_guess() -> None:
    prediction = made_up()
    prediction.tell()
    assert (prediction.guess, live(prediction).answered, live(prediction).tally) == (None, False, "")


def test_a_click_is_a_guess_and_the_first_one_counts() -> None:
    prediction = made_up()
    live(prediction).guess = 7  # none of the options
    assert prediction.guess is None
    live(prediction).guess = 0
    assert prediction.guess == "the sum"
    live(prediction).guess = 2  # another view of the same question, late
    assert prediction.guess == "the sum"
    assert live(prediction).guess == 0


def test_the_tally_counts_each_question_once() -> None:
    guesses: Guesses = {}
    predictions = [made_up(name, guesses) for name in ("99/one", "99/two", "99/one", "99/three")]
    for prediction, guess in zip(predictions, ("the sum", "the last", "none", "the sum"), strict=True):
        prediction.choose(guess)
        prediction.tell()
    assert live(predictions[1]).tally == "Your guesses so far: 1 of 2 right."
    assert live(predictions[3]).tally == "Your guesses so far: 2 of 3 right."


def test_the_page_asks_and_tells_nothing_in_clear() -> None:
    bundle = made_up()._repr_mimebundle_()
    assert bundle["text/plain"] == "Bet. What is in `.grad` if a < b?\n  ( ) the sum\n  ( ) none\n  ( ) the last"
    page = bundle["text/html"]
    assert "What is in <code>.grad</code> if a &lt; b?" in page
    assert "<li>the sum</li><li>none</li><li>the last</li>" in page
    assert "To bet, run this cell where the notebook is live." in page
    for secret in ("adds.", "Nothing is overwritten.", "It is filled at the first call."):
        assert secret not in page
        assert base64.b64encode(secret.encode()).decode()[:-4] not in page
    assert opened(page) == {
        "answer": 0,
        "why": "<code>backward()</code> adds.",
        "remarks": ["", "It is filled at the first call.", "Nothing is overwritten."],
    }


def test_where_a_lab_settles_it_the_guesses_have_courses() -> None:
    entry = {**ENTRY, "loss": {"after": "zero_grad off", "over": 60, "decided": 30}}
    entry["options"] = [{**option, "course": [1, index]} for index, option in enumerate(ENTRY["options"])]
    page = Prediction(read_question("99/made-up", entry), {}).page
    assert opened(page)["loss"] == {**entry["loss"], "courses": [[1, 0], [1, 2], [1, 1]]}


def test_without_scripts_the_words_stay() -> None:
    """As GitHub shows it: no script, no style, no data attributes."""
    page = re.sub(r"<(script|style).*?</\1>|<[^>]+>", "", made_up()._repr_mimebundle_()["text/html"], flags=re.S)
    assert page == (
        "Bet. What is in .grad if a &lt; b?the sumnonethe lastTo bet, run this cell where the notebook is live."
    )


NEAR = "similar names are '03/where-do-the-weights-go'"
BAD = [
    (lambda: made_up().choose("both"), "guess must be one of 'the sum', 'none', 'the last', got 'both'"),
    (lambda: predict("03/where-do-weights-go"), f"no question '03/where-do-weights-go'; {NEAR}"),
    (lambda: predict("where-do-the-weights-go"), NEAR),
    (lambda: predict("04/where-do-the-weights-go"), NEAR),
    (lambda: predict("03/q"), "notebook 03 has 03/where-do-the-weights-go, "),
    (lambda: predict(""), "begins with the number of a notebook: 00, 01"),
    (lambda: predict("../../x"), r"there is no question '\.\./\.\./x'"),
    (lambda: predict(None), "the name must be a string such as"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call()
