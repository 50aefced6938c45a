"""The ForecastLab in a browser: each change is answered."""

from __future__ import annotations

from collections.abc import Callable

from .driving import Notebook

FIT = "from gradlab.course import ForecastLab\nlab = ForecastLab('llama-8b', context=128{})\nlab"


def test_each_change_is_answered_without_a_press(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(FIT.format(""))
    page.wait_for_text(r"^Does not fit an H100: .*llama-8b with batch 1, context 128, adamw, AMP bf16 needs [\d.]+ GiB")
    assert "What would help" in page.text()
    page.wait_until_painted()  # at the size for two panels
    assert len(page.pictures()) == 2
    first = page.pictures()
    page.turn("optimizer", "sgd")
    page.wait_for_text("Calculating: .*sgd")
    page.wait_for_text("^Fits an H100.*sgd, AMP bf16 needs")
    page.wait_until_painted()
    assert page.pictures()[0] != first[0]
    page.turn("card", "T4")
    page.wait_for_text("^Does not fit a T4")
    page.turn("optimizer", "adamw")  # a repeated request: answered at once
    page.wait_for_text("adamw, AMP bf16 needs")
    assert page.root.locator("progress").is_hidden()
    folded = page.root.locator("details")
    assert folded.inner_text() == "What a forecast leaves out"
    folded.locator("summary").click()
    assert len(folded.inner_text()) > 200


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
    page.wait_for_text("needs")
    assert not page.page.locator(".gl-chip").is_visible()
