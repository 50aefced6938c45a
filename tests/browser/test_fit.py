"""The ForecastLab in a browser: each change is answered; and it fits the screens that the Lab fits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .driving import Notebook
from .test_layout import VIEWPORT, boxes, check_apart, contrast

FIT = "from gradlab.course import ForecastLab\nlab = ForecastLab('llama-8b', context=128{})\nlab"
NAMES = ("model", "batch", "context", "accumulate", "set_to_none", "AMP", "optimizer", "checkpointing", "card")


def test_each_change_is_answered_without_a_press(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(FIT.format(""))
    page.wait_for_words(r"^Does not fit an H100 .*llama-8b with batch 1, context 128, adamw, AMP bf16 needs [\d.]+ GiB")
    assert "What would help" in page.words()
    page.wait_until_painted()  # at the size that two panels have
    assert len(page.pictures()) == 2
    first = page.pictures()
    page.turn("optimizer", "sgd")
    page.wait_for_words("Being worked out: .*sgd")
    page.wait_for_words("^Fits an H100.*sgd, AMP bf16 needs")
    page.wait_until_painted()
    assert page.pictures()[0] != first[0]
    page.turn("card", "T4")
    page.wait_for_words("^Does not fit a T4")
    page.turn("optimizer", "adamw")  # was asked before: at once
    page.wait_for_words("adamw, AMP bf16 needs")
    assert page.root.locator("progress").is_hidden()
    folded = page.root.locator("details")
    assert folded.inner_text() == "What a forecast leaves out"
    folded.locator("summary").click()
    assert len(folded.inner_text()) > 200


def test_of_many_changes_only_the_last_is_forecast(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(
        "import gradlab.widgets.forecast_lab as fit\nasked, whole = [], fit.forecast\n"
        "fit.forecast = lambda *what, **more: (asked.append(more['batch']), whole(*what, **more))[1]",
        FIT.format(""),
    )
    page.wait_for_words("needs")
    page.evaluate("""lab => {
      for (const batch of [2, 3, 4, 5]) {
        const field = lab.querySelector('[name=batch]');
        field.value = batch;
        field.dispatchEvent(new Event('change', {bubbles: true}));
      }
    }""")
    page.wait_for_words("with batch 5, .* needs")
    assert page.ask("asked") == [1, 5]
    page.ask("setattr(fit, 'forecast', whole)")


def test_an_error_is_a_sentence(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(
        "import gradlab.widgets.forecast_lab as fit\n"
        "def broken(*args, **more): raise ValueError('forecast: no such thing')\n"
        "real, fit.forecast = fit.forecast, broken",
        FIT.format(""),
    )
    page.page.locator(".gl-chip").wait_for()
    assert page.page.locator(".gl-chip").inner_text() == "⚠ forecast: no such thing"
    page.ask("setattr(fit, 'forecast', real)")
    page.button("Try again").click()
    page.wait_for_words("needs")
    assert not page.page.locator(".gl-chip").is_visible()


@pytest.mark.parametrize("width", [390, 1366])
def test_it_fits_and_can_be_read_and_every_control_has_a_name(lab_page: Callable[..., Notebook], width: int) -> None:
    page = lab_page(f"{FIT.format('')}.run().run(checkpoint=True, batch=2)", width=width, height=768)
    page.side_bar(width >= 1366)
    page.page.wait_for_timeout(300)
    seen = boxes(page)
    assert len(seen) >= len(NAMES) + 1 + 2 + 1
    lines = page.page.locator(".gradlab").aria_snapshot().splitlines()
    assert [name for name in NAMES if any(f' "{name}"' in line for line in lines)] == list(NAMES)
    check_apart(seen)
    _, _, right, bottom = page.page.evaluate(VIEWPORT)
    assert max(box[2] for box in seen.values()) <= right
    for what in (".gl-words", ".gl-note", ".gl-label"):
        assert contrast(page, f".gradlab {what}") >= 4.5, what
    if width == 1366:
        assert max(box[3] for box in seen.values()) <= bottom
