"""The cheat sheet: its loops are the recipes' own text, its rows lead to lessons, and it prints on one page."""

from __future__ import annotations

import errno
import html
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from browser.driving import chromium

from gradlab.course.cheat_sheet import CheatSheet, Pitfall, cheat_sheet
from gradlab.formatting import lesson_address, link_html


def test_the_loops_are_what_the_recipes_give() -> None:
    sheet = cheat_sheet()
    shown = [html.unescape(re.sub(r"<[^>]+>", "", text)) for text in re.findall(r"<pre>(.*?)</pre>", sheet.html, re.S)]
    assert shown == [recipe.source().rstrip() for recipe in sheet.loops.values()]
    assert all(text in repr(sheet) for text in shown)


def test_every_row_leads_to_a_lesson() -> None:
    for pitfall in cheat_sheet().pitfalls:
        assert f"<td>{link_html(lesson_address(pitfall.lesson), pitfall.lesson[:2])}</td>" in cheat_sheet().html


def test_what_a_row_says_is_text_and_not_markup() -> None:
    sheet = CheatSheet({}, (), (Pitfall("a < b", "<b>", "`c > d`", "01_autograd"),))
    assert "<td>a &lt; b</td><td>&lt;b&gt;</td><td><code>c &gt; d</code></td>" in sheet.html


def test_in_a_read_only_folder_it_is_written_elsewhere_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = Path.write_text
    read_only = [Path()]

    def refuse(path: Path, *args: str, **kwargs: str) -> int:
        if path.parent in read_only:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return write(path, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", refuse)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    cheat_sheet().save("sheet.html")
    assert (tmp_path / "sheet.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert capsys.readouterr().out == f"You cannot write in this folder. The page is in {tmp_path / 'sheet.html'}\n"

    read_only.append(tmp_path)
    cheat_sheet().save("sheet.html")
    elsewhere = Path(capsys.readouterr().out.rpartition(" in ")[2].strip())
    assert elsewhere.is_file()
    shutil.rmtree(elsewhere.parent)
    with pytest.raises(OSError, match="Read-only"):
        cheat_sheet().save(tmp_path / "sheet.html")  # a folder that was asked for by name


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
