"""The fixtures of the browser tests; they use driving.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from .driving import Jupyter, Notebook, browsing, chromium, serving

LABS = """() => [...document.querySelectorAll('.gradlab')].map((lab) =>
  [lab.className, JSON.stringify(lab.dataset), lab.ariaBusy, lab.innerText.replaceAll('\\n', ' | ')].join('; '))"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip browser tests without Chromium, unless GRADLAB_REQUIRE_BROWSER is set: then they fail."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and chromium() is None and not os.environ.get("GRADLAB_REQUIRE_BROWSER"):
            item.add_marker(pytest.mark.skip(reason="needs Chromium (Debian: apt-get install chromium)"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the labs of the page, its errors and the end of JupyterLab's log to the report of a failed test."""
    report = yield
    fixtures = getattr(item, "funcargs", {})
    if report.failed and "notebook" in fixtures:
        with suppress(Exception):  # the page may be gone
            report.sections.append(("Labs", "\n".join(fixtures["notebook"].page.evaluate(LABS))))
            report.sections.append(("Errors of the page", "\n".join(fixtures["notebook"].problems())))
    if report.failed and "jupyter" in fixtures:
        report.sections.append(("JupyterLab", "\n".join(fixtures["jupyter"].log.read_text().splitlines()[-40:])))
    return report


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    """A JupyterLab for all tests."""
    assert chromium() is not None, "GRADLAB_REQUIRE_BROWSER is set, and there is no chromium on the path"
    with serving(tmp_path_factory.mktemp("home")) as jupyter:
        yield jupyter


@pytest.fixture(scope="package")
def notebook(jupyter: Jupyter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """A Chromium with a notebook and a kernel for all tests of this folder.

    It ends with them: Playwright's event loop would disturb other tests that need one.
    """
    with browsing(jupyter, tmp_path_factory.mktemp("profile"), "lab.ipynb") as notebook:
        yield notebook


@pytest.fixture
def lab_page(notebook: Notebook) -> Iterator[Callable[..., Notebook]]:
    """A function that shows cells in a window of a given size; the test fails on any unexpected error."""
    for page in notebook.page.context.pages[1:]:  # left by a failed test: in pages behind it nothing moves
        page.close()
    notebook.problems()
    logged = len(notebook.jupyter.errors())

    def show(*cells: str, width: int = 1366, height: int = 768) -> Notebook:
        notebook.show(*cells, width=width, height=height)
        return notebook

    yield show
    assert notebook.problems() == []
    assert notebook.jupyter.errors()[logged:] == []
