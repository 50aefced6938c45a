"""predict: the first guess counts, the reason comes after it, and it reads well without a kernel."""

from __future__ import annotations

from typing import Any

import pytest

from gradlab import predict

GOOD: dict[str, Any] = {
    "question": "What does a second backward() do?",
    "options": ["adds", "replaces"],
    "answer": "adds",
    "why": ".grad is a buffer that adds.",
}


def test_the_first_guess_counts_and_the_reason_comes_after_it() -> None:
    asked = predict(**GOOD)
    assert asked.guess is None
    assert asked.right is None
    assert GOOD["why"] not in asked._reply.value
    asked._buttons[1].click()
    asked._buttons[0].click()
    assert asked.guess == "replaces"
    assert asked.right is False
    assert "You said: replaces. It is: adds." in asked._reply.value
    assert GOOD["why"] in asked._reply.value
    assert all(button.disabled for button in asked._buttons)


def test_a_right_guess_is_called_right() -> None:
    asked = predict(**GOOD)
    asked.choose("adds")
    assert asked.right is True
    assert "<b>Yes.</b>" in asked._reply.value


def test_without_a_kernel_it_is_a_readable_question_that_does_not_give_the_answer_away() -> None:
    bundle = predict(**GOOD)._repr_mimebundle_()
    text = bundle["text/plain"]
    assert text == "Predict. What does a second backward() do?\n  ( ) adds\n  ( ) replaces"


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
