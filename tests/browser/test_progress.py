"""The map of the series and the record in JupyterLab: they fit, and the CSV can be downloaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from .driving import Notebook

LAB = "from gradlab import Lab\nLab('bowl', controls=['zero_grad'], panels=['loss'])"
RECORDED = (
    "from gradlab.course import my_record, series_map; from gradlab.course.exercises import exercise_notebooks\n"
    "from gradlab.widgets import RECORD, find_question, question_names; RECORD.__init__(lambda: None)\n"
    "for name in question_names()[:20]: RECORD.add('guess', name, find_question(name).options[0].text, False)\n"
    "for name in list(exercise_notebooks())[:4]: RECORD.add('check', name, right=True)"
)

FITS = """() => [document.querySelector(".gl-map"), ...document.querySelectorAll(".gl-map li")].every(
    (part) => part.clientWidth > 0 && part.scrollWidth <= part.clientWidth)"""


def test_the_map_fits_and_the_record_can_be_downloaded(lab_page: Callable[..., Notebook]) -> None:
    for width, height in ((1366, 768), (390, 844)):
        page = lab_page(LAB, RECORDED, "series_map()", "my_record()", width=width, height=height).page
        tiles = page.locator(".gl-map li")
        expect(tiles).to_have_count(14)
        tiles.first.scroll_into_view_if_needed()
        page.wait_for_function(FITS)  # the window has just changed
        if folder := os.environ.get("GRADLAB_PICTURES"):
            page.screenshot(path=Path(folder) / f"map_{width}.png")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download it as CSV").click()
    assert download.value.suggested_filename == "gradlab_guesses.csv"
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    assert text.startswith("event,notebook,name,asked,answer,right,at\n")
    assert text.count("\nguess,") == 20
