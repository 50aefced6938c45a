"""A real JupyterLab and a real Chromium: the fixtures of the browser tests."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

CHROMIUM = "/usr/bin/chromium"
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip browser tests where there is no Chromium, unless GRADLAB_REQUIRE_BROWSER says that this is a failure."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if not os.path.exists(CHROMIUM) and not os.environ.get("GRADLAB_REQUIRE_BROWSER"):
                item.add_marker(pytest.mark.skip(reason=f"needs Debian's chromium at {CHROMIUM}"))


class Jupyter:
    """A running JupyterLab: its address, the folder that it serves and its log."""

    def __init__(self, url: str, folder: Path, log: Path) -> None:
        self.url, self.folder, self.log = url, folder, log

    def errors(self) -> list[str]:
        """Lines of the log that tell of an error or of a traceback."""
        bad = ("Traceback", "Error", "ERROR", "Exception")
        return [line for line in self.log.read_text().splitlines() if any(word in line for word in bad)]


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    """JupyterLab on a free port, with a home and settings of its own."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "work"
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR", "IPYTHONDIR")
    environment = {**os.environ, "HOME": str(home), "OMP_NUM_THREADS": "1"}
    environment |= {place: str(home / place.lower()) for place in (*places, "JUPYTERLAB_WORKSPACES_DIR", "MPLCONFIGDIR")}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    log = home / "log.txt"
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token=", "--LabApp.expose_app_in_browser=True"]
    quiet = home / "jupyterlab_settings_dir" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    with log.open("w") as out:
        server = subprocess.Popen([*command, f"--notebook-dir={folder}"], stdout=out, stderr=out, env=environment)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(lambda: urllib.request.urlopen(f"{url}/api/status", timeout=2).status == 200, 60, log)
        yield Jupyter(url, folder, log)
    finally:
        server.terminate()
        server.wait(20)


def _wait_for(ready: Callable[[], bool], seconds: float, log: Path) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            if ready():
                return
        except OSError:
            pass
        if time.monotonic() > end:
            raise AssertionError(f"JupyterLab did not answer within {seconds:g} s:\n{log.read_text()[-3000:]}")
        time.sleep(0.2)


class Page:
    """A notebook open in JupyterLab, driven as a learner would."""

    def __init__(self, page: Any, jupyter: Jupyter) -> None:
        self.page, self.jupyter = page, jupyter
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(f"page: {error}"))
        page.on("console", self._console)

    def _console(self, message: Any) -> None:
        # The server without news and extensions answers 404 to some look-ups; those are not ours.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(f"console: {message.text}")

    def open(self, notebook: str) -> None:
        """Open a notebook in a workspace of its own, without the tabs of earlier tests; wait until its kernel is idle."""
        self.page.goto(f"{self.jupyter.url}/lab/workspaces/{notebook.removesuffix('.ipynb')}/tree/{notebook}")
        self.page.wait_for_function(
            "() => window.jupyterapp && window.jupyterapp.shell.currentWidget"
            " && window.jupyterapp.shell.currentWidget.sessionContext"
            " && window.jupyterapp.shell.currentWidget.sessionContext.session"
            " && window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"
            " && window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status == 'idle'",
            timeout=60_000,
        )

    def run_all(self) -> None:
        """Run every cell, and wait until a Lab is there."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
        self.page.wait_for_selector(".gradlab img", timeout=90_000)

    def theme(self, name: str) -> None:
        """Choose "JupyterLab Light" or "JupyterLab Dark"."""
        self.page.evaluate("name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})", name)
        dark = str("Light" in name).lower()
        self.page.wait_for_function(f"() => document.body.dataset.jpThemeLight == '{dark}'")

    def button(self, words: str) -> Any:
        """The Lab's button with these words."""
        return self.page.locator(".gradlab button", has_text=words).first

    def code(self) -> str:
        """The text in the code pane, without its gutter."""
        lines = self.page.locator(".gradlab pre.gl .line").all_inner_texts()
        return "\n".join(line.split("\u00a0")[-1] for line in lines)

    def lit(self) -> list[int]:
        """The numbers of the lit lines."""
        script = "() => [...document.querySelectorAll('.gradlab pre.gl .line')].map((l, i) => l.classList.contains('lit') ? i + 1 : 0)"
        return [n for n in self.page.evaluate(script) if n]

    def words(self) -> str:
        """What the Lab says under its pictures."""
        return str(self.page.locator(".gradlab .gl-words").first.inner_text())


def write_notebook(path: Path, *cells: str) -> None:
    """Write a notebook of code cells."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """A function that starts Chromium with a window of a size and returns its page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        contexts = []

        def start(width: int = 1366, height: int = 768) -> Any:
            profile = tmp_path / f"profile{len(contexts)}"
            context = playwright.chromium.launch_persistent_context(
                str(profile),
                executable_path=CHROMIUM,
                headless=True,
                args=QUIET,
                viewport={"width": width, "height": height},
            )
            contexts.append(context)
            return context.pages[0] if context.pages else context.new_page()

        yield start
        for context in contexts:
            context.close()


@pytest.fixture
def lab_page(jupyter: Jupyter, browser: Callable[..., Any], request: pytest.FixtureRequest) -> Callable[..., Page]:
    """A function that opens a notebook with these cells in a window of this size, runs it and returns the Page."""

    def show(*cells: str, width: int = 1366, height: int = 768) -> Page:
        name = f"{request.node.name.split('[')[0]}_{len(list(jupyter.folder.iterdir()))}.ipynb"
        write_notebook(jupyter.folder / name, *cells)
        page = Page(browser(width, height), jupyter)
        page.open(name)
        page.run_all()
        return page

    return show


@pytest.fixture(autouse=True)
def _chromium_there() -> None:
    if shutil.which(CHROMIUM) is None and os.environ.get("GRADLAB_REQUIRE_BROWSER"):
        pytest.fail(f"GRADLAB_REQUIRE_BROWSER is set, and there is no chromium at {CHROMIUM}")


def as_json(value: object) -> str:
    """Return a value as JavaScript can read it."""
    return json.dumps(value)
