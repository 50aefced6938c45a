"""The build of the site: recordings, pages, search index and checks, in this order."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from tqdm.auto import tqdm

from gradlab import __version__
from gradlab.course import cheat_sheet
from gradlab.course.series import series_notebooks, series_stages
from gradlab.front import page_script, page_style
from gradlab.widgets import predict

from .check import problems_of
from .documents import DOCUMENTS, document_html, public_names, text_html, verdict_table
from .handouts import answers_markdown, worksheets_markdown
from .lessons import Lesson, cells_html, read_lesson
from .notebook_html import code_colours
from .pages import POLICY, PageWriter, png_size
from .recordings import Replay, record_all, replay_settings
from .slides import opening_note, slide_cells

_MARK = ".gradlab-site"  # name of the file that marks a folder which this module wrote and may replace


@dataclass(frozen=True)
class SiteAddress:
    """The repository's address on the web, for links to its files, to Binder and to Colab."""

    repository: str = ""  # a URL such as ``https://github.com/YOU/NAME``, or "" to leave out links to the repository
    tag: str = "main"

    def file(self, path: str) -> str | None:
        """Return the address of a file of the repository, or None if the repository has no address."""
        return f"{self.repository}/blob/{self.tag}/{path}" if self.repository else None

    def hubs(self, notebook: str) -> dict[str, str]:
        """Return addresses that open ``notebook`` live, by button label, or {} if the repository is not on GitHub."""
        repository = self.repository.removeprefix("https://github.com/")
        if not repository or repository == self.repository:
            return {}
        return {
            "Open on Binder": f"https://mybinder.org/v2/gh/{repository}/{self.tag}?urlpath=lab/tree/notebooks/{notebook}",
            "Open in Colab": f"https://colab.research.google.com/github/{repository}/blob/{self.tag}/notebooks/{notebook}",
        }


def build_site(root: Path, out: Path, address: SiteAddress, only: str | None = None) -> list[str]:
    """Write the site of the repository at ``root`` into ``out``; return the site's problems, one sentence each.

    Args:
        root: the folder of the repository.
        out: a new or empty folder, or one with an earlier site, which is replaced when the new site is complete.
        address: the repository's address on the web.
        only: the number of a notebook, such as "03", to write only its lesson, worksheet and answers.

    Raises:
        ValueError: for an invalid argument, for a notebook that fails, or if pagefind is missing or fails.
    """
    if out.exists() and not out.is_dir():
        raise ValueError(f"OUT must be a folder, got the file {str(out)!r}")
    if out.is_dir() and any(out.iterdir()) and not (out / _MARK).exists():
        allowed = "a new or empty folder, or one that holds an earlier site"
        raise ValueError(f"OUT must be {allowed}, got {str(out)!r}, which contains other files")
    numbers = [notebook.number for notebook in series_notebooks()]
    if only not in (None, *numbers):
        raise ValueError(f"--only must be one of {', '.join(numbers)}, got {only!r}")
    if not only and find_spec("pagefind") is None:
        raise ValueError('pagefind, which the search needs, is missing: pip install "torch-gradlab[site]"')
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-")
    except OSError as error:
        raise ValueError(f"OUT cannot be written: {error.strerror}: {str(out.parent)!r}") from None
    with _sigterm_raises(), temporary as folder:
        new_site = Path(folder) / "site"
        new_site.mkdir()
        _Site(root, new_site, address, only).build(os.cpu_count() or 1)
        problems = problems_of(new_site)
        if out.exists():
            shutil.rmtree(out)
        new_site.rename(out)
    return problems


@contextmanager
def _sigterm_raises() -> Iterator[None]:
    """Make SIGTERM raise SystemExit during a ``with`` block, so that temporary folders are removed."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Site:
    def __init__(self, root: Path, out: Path, address: SiteAddress, only: str | None) -> None:
        self.root, self.out, self.address, self.whole = root, out, address, only is None
        self.source = root / "site"
        self.entries = [each for each in series_notebooks() if only in (None, each.number)]
        self.notebooks = [root / "notebooks" / each.file for each in self.entries]
        self.documents = [each for each in DOCUMENTS if self.whole and (root / each.file).exists()]
        menu = [(each.page, each.menu) for each in self.documents if each.menu]
        first, last = [("cheat_sheet.html", "Cheat sheet"), ("fact_check.html", "Fact check")], ("api.html", "API")
        shared = {
            "version": __version__,
            "whole": self.whole,
            "menu": [*first, *menu, last] if self.whole else [],
            "documents": [each for each in self.documents if each.footer],
            "repository": address.repository,
            "stages": series_stages() if self.whole else (),
            "page_of": self._page_of,
            "cells_html": cells_html,
        }
        self.writer = PageWriter(out, self.source / "templates", shared)
        self.pages = {f"notebooks/{path.name}": f"{path.stem}.html" for path in self.notebooks}
        self.pages |= {each.file: each.page for each in self.documents}

    def _page_of(self, number: str) -> str:
        return next(path.stem for path in self.notebooks if path.name.startswith(number)) + ".html"

    def build(self, workers: int) -> None:
        settings = replay_settings(self.source)
        steps = 2 * len(self.notebooks) + len(self.documents) + (7 if self.whole else 2)
        replays: dict[str, list[tuple[int, Replay]]] = {}
        (self.out / "replays").mkdir()
        with tqdm(total=steps, desc="site", unit="step") as bar:
            bar.set_postfix_str("recording the labs")
            for path, recordings in record_all(self.notebooks, settings, workers, home=self.whole):
                replays[path.name if path else ""] = recordings
                for _, replay in recordings:
                    (self.out / replay.file).write_text(replay.script, encoding="utf-8")
                bar.update()
            self._write_all(replays, bar)
        (self.out / _MARK).touch()
        (self.out / ".nojekyll").touch()  # otherwise GitHub Pages omits files whose names begin with an underscore

    def _write_all(self, replays: Mapping[str, list[tuple[int, Replay]]], bar: Any) -> None:
        def step(label: str) -> None:
            bar.set_postfix_str(label)
            bar.update()

        for order, path in enumerate(self.notebooks):
            lesson = read_lesson(path, self.source / "templates" / "cells.html.j2", dict(replays[path.name]))
            self._write_lesson(order, path, lesson)
            step(path.stem)
        self._write_handouts()
        step("worksheets.html")
        if self.whole:
            self._write_shared(replays[""][0][1], step)
        else:
            lines = [f'<li><a data-kept href="{page}">{title}</a></li>' for page, title in self.writer.written.items()]
            content = f"<h1>gradlab</h1><ul>{''.join(lines)}</ul>"
            self._page("index.html", "document.html.j2", title="One lesson", content=content)
        self._write_static()
        step("styles and scripts")
        if self.whole:
            self._index()
            step("search")

    def _write_shared(self, home: Replay, step: Callable[[str], None]) -> None:
        """Write all pages except lessons, slides and handouts."""
        for document in self.documents:
            about = {"content": document_html(self.root, document), "searched": document.searched}
            folder = str(PurePosixPath(document.file).parent)
            self._page(document.page, "document.html.j2", folder, title=document.title, **about)
            step(document.page)
        self._write_home(home)
        step("index.html")
        sheet = f"<h1>Cheat sheet</h1>{cheat_sheet().html}"
        self._page("cheat_sheet.html", "document.html.j2", title="Cheat sheet", content=sheet)
        versions, claims = verdict_table(self.source / "factcheck")
        self._page("fact_check.html", "fact_check.html.j2", title="Fact check", versions=versions, claims=claims)
        step("fact_check.html")
        self._page("api.html", "api.html.j2", title="The public names", names=public_names())
        step("api.html")
        search = POLICY.replace("script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'")
        self._page("search.html", "search.html.j2", title="Search", policy=search)
        start = '<a data-kept href="index.html">The series begins here.</a>'
        not_found = f"<h1>Page not found</h1><p>There is no such page. {start}</p>"
        self._page("404.html", "document.html.j2", title="Page not found", content=not_found)

    def _write_handouts(self) -> None:
        answers = '<p>For teachers: <a data-kept href="answers.html">the answers</a>.</p>'
        for name, title, text, more in (
            ("worksheets.html", "Worksheets", worksheets_markdown(self.entries), answers),
            ("answers.html", "Answers", answers_markdown(self.entries), ""),
        ):
            content = f"<h1>{title}</h1>{more}{text_html(text, self.root)}"
            self._page(name, "handout.html.j2", title=title, content=content)

    def _page(self, name: str, template: str, folder: str = "", **about: Any) -> None:
        self.writer.write(name, template, partial(self._resolve, name, folder), **about)

    def _write_lesson(self, order: int, path: Path, lesson: Lesson) -> None:
        neighbors = [None, *self.notebooks, None][order : order + 3 : 2]
        before, after = ((f"{each.stem}.html", each.stem.replace("_", " ")) if each else None for each in neighbors)
        about: dict[str, Any] = {"lesson": lesson, "hubs": self.address.hubs(path.name), "notebook": path.name}
        about |= {"entry": self.entries[order], "before": before, "after": after}
        self._page(f"{path.stem}.html", "lesson.html.j2", "notebooks", title=lesson.title, **about)
        page = f"../{path.stem}.html"
        cells = [str(cell) for cell in slide_cells(lesson, page)]
        teachers = (self.root / "notebooks" / "README.md").read_text(encoding="utf-8")
        about = {"lesson": lesson, "cells": cells, "lesson_page": page}
        about["note"] = str(opening_note(teachers, lesson.number))
        self._page(f"slides/{path.stem}.html", "slides.html.j2", "notebooks", title=f"Slides: {lesson.title}", **about)

    def _write_home(self, replay: Replay) -> None:
        width, height = png_size(replay.png)
        about: dict[str, Any] = {"replay": replay, "still": self.writer.picture(replay.png)}
        about |= {"width": width // 2, "height": height // 2, "bet": predict("home/zero-grad-taken-out").page}
        self._page("index.html", "home.html.j2", title="gradlab: .grad is a buffer that adds", **about)

    def _write_static(self) -> None:
        for file in (self.source / "static").iterdir():
            shutil.copy(file, self.out / file.name)
        (self.out / "gradlab.js").write_text(page_script(), encoding="utf-8")
        (self.out / "gradlab.css").write_text(page_style(), encoding="utf-8")
        (self.out / "outputs.css").write_text(self.writer.styles(), encoding="utf-8")
        (self.out / "code.css").write_text(code_colours(), encoding="utf-8")

    def _index(self) -> None:
        """Write the search index. Raises ValueError if pagefind fails."""
        command = [sys.executable, "-m", "pagefind", "--site", str(self.out), "--quiet"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise ValueError(f"pagefind could not write the search index: {result.stderr[-300:]}")
        for interface in ("ui", "modular-ui", "component-ui", "highlight"):  # the site uses its own search.js instead
            for file in (self.out / "pagefind").glob(f"pagefind-{interface}*"):
                file.unlink()

    def _resolve(self, page: str, folder: str, link: str) -> str | None:
        """Return the address on ``page`` for ``link``, or None if it is dead; relative links start at ``folder``."""
        files = self.address.file("")
        if re.match(r"(https?|mailto):", link):
            if not files or not link.startswith(files):
                return link
            link, folder = link.removeprefix(files), ""
        path, separator, fragment = link.partition("#")
        target = os.path.normpath(PurePosixPath(folder) / path).replace(os.sep, "/")
        if target in self.pages:
            return f"{'../' * page.count('/')}{self.pages[target]}{separator}{fragment}"
        return f"{files}{target}{separator}{fragment}" if files and (self.root / target).exists() else None
