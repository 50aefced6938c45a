"""The cheat sheet: its loops are the recipes' own text, its rows lead to lessons, and it prints on one page."""

from __future__ import annotations

import html
import os
import re
import subprocess
from pathlib import Path

import pytest
from browser.driving import chromium

from gradlab.course.cheat_sheet import CheatSheet, Pitfall, cheat_sheet
from gradlab.formatting import lesson_address


def test_the_loops_are_what_the_recipes_give() -> None:
    sheet = cheat_sheet()
    shown = [html.unescape(re.sub(r"<[^>]+>", "", text)) for text in re.findall(r"<pre>(.*?)</pre>", sheet.html, re.S)]
    assert shown == [recipe.source().rstrip() for recipe in sheet.loops.values()]
    assert all(text in repr(sheet) for text in shown)


def test_every_row_leads_to_a_lesson() -> None:
    for pitfall in cheat_sheet().pitfalls:
        assert f'href="{lesson_address(pitfall.lesson)}"' in cheat_sheet().html


def test_what_a_row_says_is_text_and_not_markup() -> None:
    sheet = CheatSheet({}, (), (Pitfall("a < b", "<b>", "`c > d`", "01_autograd"),))
    assert "<td>a &lt; b</td><td>&lt;b&gt;</td><td><code>c &gt; d</code></td>" in sheet.html


@pytest.mark.browser
@pytest.mark.skipif(
    chromium() is None and not os.environ.get("GRADLAB_REQUIRE_BROWSER"),
    reason="needs Chromium (Debian: apt-get install chromium)",
)
def test_it_prints_on_one_sheet(tmp_path: Path) -> None:
    browser = chromium()
    assert browser is not None
    cheat_sheet().save(tmp_path / "sheet.html")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    options += ["--no-pdf-header-footer", f"--print-to-pdf={tmp_path / 'sheet.pdf'}"]
    subprocess.run(
        [browser, *options, (tmp_path / "sheet.html").as_uri()],
        check=True,
        capture_output=True,
        timeout=120,
    )
    pages = re.findall(rb"/Type\s*/Page\b(?!s)", (tmp_path / "sheet.pdf").read_bytes())
    assert len(pages) == 1
