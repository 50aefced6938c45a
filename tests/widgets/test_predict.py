"""predict: the first guess counts, the reason comes after it, and it reads well without a kernel."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from ipywidgets import Button
from seen import html, inside

from gradlab import predict
from gradlab.widgets import guesses
from gradlab.widgets.predict import Prediction

GOOD: dict[str, Any] = {
    "question": "What does a second backward() do?",
    "options": ["adds", "replaces"],
    "answer": "adds",
    "why": ".grad is a buffer that adds.",
}


@pytest.fixture(autouse=True)
def a_fresh_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("gradlab.widgets.predict")  # by its name the package has the function
    monkeypatch.setattr(module, "GUESSES", guesses.Guesses())


def buttons(asked: Prediction) -> list[Button]:
    return inside(asked.widget, Button)


def test_the_first_guess_counts_and_the_reason_comes_after_it() -> None:
    asked = predict(**GOOD)
    assert asked.guess is None
    assert asked.right is None
    assert GOOD["why"] not in html(asked.widget)
    buttons(asked)[1].click()
    buttons(asked)[0].click()
    assert asked.guess == "replaces"
    assert asked.right is False
    assert "You said: replaces. It is: adds." in html(asked.widget)
    assert GOOD["why"] in html(asked.widget)
    assert all(button.disabled for button in buttons(asked))


def test_a_right_guess_is_called_right() -> None:
    asked = predict(**GOOD)
    asked.choose("adds")
    assert asked.right is True
    assert "<b>Yes.</b>" in html(asked.widget)


def test_without_a_kernel_it_is_a_readable_question_that_does_not_give_the_answer_away() -> None:
    bundle = predict(**GOOD)._repr_mimebundle_()
    text = bundle["text/plain"]
    assert text == "Predict. What does a second backward() do?\n  ( ) adds\n  ( ) replaces"
    shown, _, folded = bundle["text/html"].partition("<details>")
    assert GOOD["why"] not in shown
    assert "<summary>The answer</summary><b>adds.</b> .grad is a buffer that adds." in folded


def test_a_guess_is_kept_when_its_cell_is_run_again() -> None:
    predict(**GOOD).choose("replaces")
    again = predict(**GOOD)
    assert again.guess == "replaces"
    assert "You said: replaces." in html(again.widget)
    again.choose("adds")
    assert again.guess == "replaces"


def test_an_option_that_is_gone_can_be_chosen_anew() -> None:
    predict(**GOOD).choose("replaces")
    edited = predict(**GOOD | {"options": ["adds", "multiplies"]})
    assert not any(button.disabled for button in buttons(edited))
    edited.choose("multiplies")
    assert edited.guess == "multiplies"
    assert "You said: multiplies." in html(edited.widget)


def test_the_tally_counts_each_question_once() -> None:
    told: list[Prediction] = []
    for question, guess in (("One?", "adds"), ("Two?", "replaces"), ("One?", "replaces"), ("Three?", "adds")):
        told.append(predict(**GOOD | {"question": question}))
        told[-1].choose(guess)
    assert "Your guesses so far: 1 of 2 right." in html(told[1].widget)
    assert "Your guesses so far: 2 of 3 right." in html(told[3].widget)


def test_code_in_a_question_is_shown_as_code() -> None:
    asked = predict(**GOOD | {"question": "What is in `.grad` if a < b?"})
    assert "What is in <code>.grad</code> if a &lt; b?" in asked._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"question": 1}, r"question must be a text that is not empty, got 1"),
        ({"question": " "}, r"question must be .*got ' '"),
        ({"why": None}, r"why must be .*got None"),
        ({"answer": 2}, r"answer must be .*got 2"),
        ({"answer": "maybe"}, r"answer must be one of the options, got 'maybe'"),
        ({"options": "adds"}, r"options must be a list of texts, got 'adds'"),
        ({"options": ["adds"]}, r"options must be 2 to 6 different texts, got \['adds'\]"),
        ({"options": ["adds", "adds"]}, r"options must be 2 to 6 different texts"),
        ({"options": ["adds", 3]}, r"options must be texts that are not empty, got \['adds', 3\]"),
        ({"options": [str(i) for i in range(7)]}, r"options must be 2 to 6 different texts"),
        ({"options": None}, r"options must be a list of texts, got None"),
    ],
)
def test_bad_input_is_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        predict(**(GOOD | wrong))


def test_a_guess_that_is_no_option_is_refused() -> None:
    with pytest.raises(ValueError, match="guess must be one of 'adds', 'replaces', got 'both'"):
        predict(**GOOD).choose("both")
