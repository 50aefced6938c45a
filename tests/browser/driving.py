"""What drives the Lab as a learner would: a real JupyterLab, a real Chromium, and a notebook open in it."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
_QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Runs once in the page: keeps what the kernel reports outside of any cell, where JupyterLab would hide it.
_LISTEN = """() => {
  window.complaints = [];
  const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  kernel.iopubMessage.connect((_, message) => {
    const {content, header} = message;
    if (header.msg_type === 'error') window.complaints.push([...content.traceback].join('\\n'));
    if (header.msg_type === 'stream' && content.name === 'stderr') window.complaints.push(content.text);
  });
}"""
_READY = """() => {
  const panel = window.jupyterapp && jupyterapp.shell.currentWidget;
  const session = panel && panel.sessionContext && panel.sessionContext.session;
  return session && session.kernel && session.kernel.status === 'idle' && panel.content.model;
}"""
_RUN = """async cells => {
  const shared = jupyterapp.shell.currentWidget.content.model.sharedModel;
  await jupyterapp.commands.execute('notebook:clear-all-cell-outputs');
  shared.deleteCellRange(0, shared.cells.length);
  shared.insertCells(0, cells.map(source => ({cell_type: 'code', source, metadata: {}, outputs: []})));
  await jupyterapp.commands.execute('notebook:run-all-cells');
}"""
_ASK = """async expression => {
  const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const future = kernel.requestExecute({code: '', silent: true, user_expressions: {asked: expression}});
  const reply = (await future.done).content;
  return reply.user_expressions ? reply.user_expressions.asked : reply;
}"""
_STILL = """still => new Promise((resolve, reject) => {
  const read = () => document.querySelector('.gradlab .gl-words').innerText;
  const began = performance.now();
  let last = read(), since = began;
  const look = () => {
    const now = performance.now(), text = read();
    if (text !== last) { last = text; since = now; }
    if (now - since >= still) resolve(since - began);
    else if (now - began > 15000) reject(new Error('it does not stop: ' + text));
    else setTimeout(look, 20);
  };
  look();
})"""


def chromium() -> str | None:
    """Return the Chromium there is, None without one."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Jupyter:
    """A running JupyterLab: its address, the folder that it serves and its log."""

    def __init__(self, url: str, folder: Path, log: Path) -> None:
        self.url, self.folder, self.log = url, folder, log

    def errors(self) -> list[str]:
        """Lines of the log that tell of an error or of a traceback."""
        bad = ("Traceback", "Error", "ERROR", "Exception")
        return [line for line in self.log.read_text().splitlines() if any(word in line for word in bad)]


@contextlib.contextmanager
def serving(home: Path) -> Iterator[Jupyter]:
    """Start JupyterLab on a free port, with a home and settings of its own in ``home``."""
    folder = home / "work"
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR", "IPYTHONDIR")
    environment = {**os.environ, "HOME": str(home), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    environment |= {name: str(home / name.lower()) for name in (*places, "JUPYTERLAB_WORKSPACES_DIR", "MPLCONFIGDIR")}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token=", "--LabApp.expose_app_in_browser=True"]
    settings = home / "jupyterlab_settings_dir" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    log = home / "log.txt"
    with log.open("w") as out:
        server = subprocess.Popen([*command, f"--notebook-dir={folder}"], stdout=out, stderr=out, env=environment)
    try:
        jupyter = Jupyter(f"http://127.0.0.1:{port}", folder, log)
        _wait_for(jupyter, 60)
        yield jupyter
    finally:
        server.terminate()
        server.wait(20)


def _wait_for(jupyter: Jupyter, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{jupyter.url}/api/status", timeout=2):
            return
        time.sleep(0.2)
    raise AssertionError(f"JupyterLab did not answer within {seconds:g} s:\n{jupyter.log.read_text()[-3000:]}")


@contextlib.contextmanager
def browsing(jupyter: Jupyter, profile: Path, notebook: str) -> Iterator[Notebook]:
    """Start Chromium and open a new, empty notebook of this name in it."""
    write_notebook(jupyter.folder / notebook, "")
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(profile), executable_path=chromium(), headless=True, args=_QUIET
        )
        try:
            page = context.pages[0] if context.pages else context.new_page()
            page.set_default_timeout(20_000)
            yield Notebook(page, jupyter, notebook)
        finally:
            context.close()


def write_notebook(path: Path, *cells: str) -> None:
    """Write a notebook of code cells."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)


class Notebook:
    """A notebook open in JupyterLab, and the first Lab in it."""

    def __init__(self, page: Any, jupyter: Jupyter, name: str) -> None:
        self.page, self.jupyter, self.name = page, jupyter, name
        self._errors: list[str] = []
        page.on("pageerror", lambda error: self._errors.append(f"page: {error.stack}"))
        page.on("console", self._console)
        # A workspace of its own, so that no tabs of earlier notebooks are restored.
        page.goto(f"{jupyter.url}/lab/workspaces/{name.removesuffix('.ipynb')}/tree/{name}")
        page.wait_for_function(_READY, timeout=60_000)
        page.evaluate(_LISTEN)

    def _console(self, message: Any) -> None:
        # The server without news and extensions answers 404 to some look-ups; those are not ours.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self._errors.append(f"console: {message.text}")

    # The notebook -----------------------------------------------------------------------------------------------------

    def show(self, *cells: str, width: int = 1366, height: int = 768) -> None:
        """Put these cells in the place of all others, run them in the same kernel, and wait until a Lab is there."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.evaluate(_RUN, list(cells))
        self.page.wait_for_selector(".gradlab img")
        self.page.wait_for_function("() => [...document.querySelectorAll('.gradlab img')].every(img => img.complete)")
        self.page.evaluate("() => document.querySelector('.gradlab').scrollIntoView()")

    def ask(self, expression: str) -> Any:
        """Return what an expression is worth in the kernel; its ``repr`` must be a Python literal."""
        reply = self.page.evaluate(_ASK, expression)
        assert reply["status"] == "ok", reply
        return ast.literal_eval(reply["data"]["text/plain"])

    def problems(self) -> list[str]:
        """Return what went wrong in the page or in the kernel since it was asked last."""
        # JupyterLab's widget manager asks for a comm before ipywidgets is imported, and the kernel says so on stderr.
        told = self.page.evaluate("() => window.complaints.splice(0)")
        found = self._errors + [text for text in told if not text.startswith("No such comm")]
        self._errors = []
        return found

    def theme(self, name: str) -> None:
        """Choose the "Light" or the "Dark" theme."""
        self.page.evaluate(
            "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", f"JupyterLab {name}"
        )
        self.page.wait_for_function(f"() => document.body.dataset.jpThemeLight === '{json.dumps(name == 'Light')}'")
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")

    def side_bar(self, there: bool) -> None:
        """Open or close the list of files at the left."""
        self.page.evaluate("open => jupyterapp.shell[open ? 'expandLeft' : 'collapseLeft']()", there)

    # The Lab ----------------------------------------------------------------------------------------------------------

    def button(self, words: str) -> Any:
        """The Lab's button with these words."""
        return self.page.locator(".gradlab").get_by_role("button", name=words).first

    def control(self, label: str) -> Any:
        """The Lab's control with this label."""
        return self.page.locator(".gradlab").get_by_label(label, exact=True).first

    def turn(self, label: str, value: Any) -> None:
        """Turn a switch as a learner would: click, choose or type."""
        control = self.control(label)
        if isinstance(value, bool):
            control.set_checked(value)
        elif label in ("lr", "accumulate"):
            control.fill(str(value))
            control.press("Enter")
        else:
            control.select_option(label=str(value))

    def code(self) -> str:
        """The text in the code pane, exactly as it would be run."""
        lines = self.page.evaluate(
            "() => [...document.querySelectorAll('.gradlab pre.gl .line')].map("
            "line => line.textContent.slice(line.querySelector('.gutter').textContent.length))"
        )
        return "".join(f"{line}\n" for line in lines)

    def lines(self, mark: str) -> list[int]:
        """The numbers of the lines with a mark: "lit", "changed" or "wrong"."""
        script = "mark => [...document.querySelectorAll('.gradlab pre.gl .line')].map(l => l.classList.contains(mark))"
        return [number for number, on in enumerate(self.page.evaluate(script, mark), 1) if on]

    def words(self) -> str:
        """What the Lab says under its pictures."""
        return str(self.page.locator(".gradlab .gl-words").first.inner_text())

    def updates(self) -> int:
        """The number of updates that the words tell."""
        found = re.search(r"update ([\d,]+)", self.words())
        assert found, self.words()
        return int(found[1].replace(",", ""))

    def pictures(self) -> list[str]:
        """The pictures, as the browser got them (base64)."""
        script = """() => Promise.all([...document.querySelectorAll('.gradlab img')].map(async img => {
          const bytes = new Uint8Array(await (await fetch(img.src)).arrayBuffer());
          return btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(''));
        }))"""
        return [str(picture) for picture in self.page.evaluate(script)]

    def wait_for_words(self, pattern: str) -> None:
        """Wait until the words match a regular expression."""
        self._wait(
            "pattern => new RegExp(pattern).test(document.querySelector('.gradlab .gl-words').innerText)", pattern
        )

    def wait_for_updates(self, at_least: int) -> None:
        """Wait until so many updates have been made."""
        self._wait(
            "least => Number(/update ([0-9,]+)/.exec(document.querySelector('.gradlab .gl-words').innerText)[1]"
            ".replaceAll(',', '')) >= least",
            at_least,
        )

    def wait_for_code(self, source: str) -> None:
        """Wait until the code pane shows this text, and exactly this."""
        end = time.monotonic() + 10
        while self.code() != source and time.monotonic() < end:
            self.page.wait_for_timeout(20)
        assert self.code() == source

    def wait_until_still(self, seconds: float = 0.5) -> float:
        """Wait until the words have not changed for so long; return the seconds after which they did so last."""
        return float(self.page.evaluate(_STILL, seconds * 1000)) / 1000

    def _wait(self, script: str, argument: Any) -> None:
        try:
            self.page.wait_for_function(script, arg=argument, polling=30, timeout=20_000)
        except Exception as error:
            raise AssertionError(f"not seen: {argument!r}; the words are: {self.words()!r}") from error
