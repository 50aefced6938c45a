"""The fixtures of the browser tests; what they do is in driving.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from .driving import Jupyter, Notebook, browsing, chromium, serving


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip browser tests where there is no Chromium, unless GRADLAB_REQUIRE_BROWSER says that this is a failure."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and chromium() is None and not os.environ.get("GRADLAB_REQUIRE_BROWSER"):
            item.add_marker(pytest.mark.skip(reason="needs Chromium (Debian: apt-get install chromium)"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say what JupyterLab logged last before a test failed, such as that a kernel died, and where."""
    report = yield
    jupyter = getattr(item, "funcargs", {}).get("jupyter")
    if report.failed and jupyter is not None:
        report.sections.append(("JupyterLab", "\n".join(jupyter.log.read_text().splitlines()[-40:])))
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

    Not longer: while Playwright runs, its event loop would be in the way of other tests that need one.
    """
    with browsing(jupyter, tmp_path_factory.mktemp("profile"), "lab.ipynb") as notebook:
        yield notebook


@pytest.fixture
def lab_page(notebook: Notebook) -> Iterator[Callable[..., Notebook]]:
    """A function that shows these cells in a window of this size; the test fails on any error that is not asked for."""
    for left in notebook.page.context.pages[1:]:  # by a test that failed: behind it nothing moves
        left.close()
    notebook.problems()
    logged = len(notebook.jupyter.errors())

    def show(*cells: str, width: int = 1366, height: int = 768) -> Notebook:
        notebook.show(*cells, width=width, height=height)
        return notebook

    yield show
    assert notebook.problems() == []
    assert notebook.jupyter.errors()[logged:] == []
