"""Drives the Lab as a learner would: a real JupyterLab, a real Chromium, and a notebook open in it."""

from __future__ import annotations

import ast
import contextlib
import copy
import json
import math
import os
import re
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
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 60.0
"""Limit for events that are certain to happen: a busy machine may need long."""
expect.set_options(timeout=TIMEOUT_S * 1000)
_QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Runs once in the page: records the kernel's errors outside of cells, which JupyterLab hides, the unanswered requests
# of labs, and the maximum of these for one lab.
_LISTEN = """() => {
  window.complaints = [];
  window.onTheirWay = new Map();
  window.mostAtOnce = 0;
  const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  kernel.iopubMessage.connect((_, message) => {
    const {content, header} = message;
    if (header.msg_type === 'error') window.complaints.push([...content.traceback].join('\\n'));
    if (header.msg_type === 'stream' && content.name === 'stderr') window.complaints.push(content.text);
  });
  kernel.anyMessage.connect((_, {msg, direction}) => {
    const request = msg.header.msg_type === 'comm_msg' && msg.content.data.content;
    if (!request || request.n === undefined) return;
    const lab = `${msg.content.comm_id} ${request.client}`, sent = window.onTheirWay.get(lab) ?? [];
    // The kernel answers in order: an answer that was lost is so with those before it.
    const open = direction === 'send' ? [...sent, request.n] : sent.filter(number => number > request.n);
    window.onTheirWay[open.length ? 'set' : 'delete'](lab, open);
    window.mostAtOnce = Math.max(window.mostAtOnce, open.length);
  });
}"""
_NARROW_PX = 600  # in narrower windows the list of files leaves no room for the notebook
_READY = """() => {
  const panel = window.jupyterapp && jupyterapp.shell.currentWidget;
  const session = panel && panel.sessionContext && panel.sessionContext.session;
  return session && session.kernel && session.kernel.status === 'idle' && panel.content.model;
}"""
_RUN = """async cells => {
  const shared = jupyterapp.shell.currentWidget.content.model.sharedModel;
  await jupyterapp.commands.execute('notebook:clear-all-cell-outputs');
  shared.deleteCellRange(0, shared.cells.length);
  window.onTheirWay.clear();
  const plain = {cell_type: 'code', metadata: {}, outputs: []};
  shared.insertCells(0, cells.map(cell => typeof cell === 'string' ? {...plain, source: cell} : {...plain, ...cell}));
  await jupyterapp.commands.execute('notebook:run-all-cells');
}"""
_RUN_CELL = """index => {
  jupyterapp.shell.currentWidget.content.activeCellIndex = index;
  return jupyterapp.commands.execute('notebook:run-cell');
}"""
_ASK = """async expression => {
  const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const future = kernel.requestExecute({code: '', silent: true, user_expressions: {asked: expression}});
  const reply = (await future.done).content;
  return reply.user_expressions ? reply.user_expressions.asked : reply;
}"""
_LEND = """path => jupyterapp.serviceManager.sessions.startNew({path, name: path, type: 'notebook',
  kernel: {id: jupyterapp.shell.currentWidget.sessionContext.session.kernel.id}})"""
# The visible text, without text that is only read out.
_TEXT = """lab => ['.gl-state', '.gl-chip', '.gl-note'].map(part => lab.querySelector(part))
  .filter(part => !part.hidden && part.innerText).map(part => part.innerText).join('\\n')"""
# True when no request is on its way or to be made, and nothing moves, for three frames of the screen.
_SETTLED = """lab => {
  const isQuiet = !window.onTheirWay.size && !Number(lab.dataset.pending ?? 0) && !lab.querySelector('[data-moving]');
  lab.quietFrames = isQuiet ? (lab.quietFrames ?? 0) + 1 : 0;
  return lab.quietFrames > 2;
}"""
_PLAYS = "lab => [...lab.querySelectorAll('.gl-button')].some(button => button.innerText.includes('Pause'))"
# True when every panel of a lab has been painted.
_PAINTED = """number => {
  const lab = document.querySelectorAll('.gradlab')[number];
  const canvases = lab ? [...lab.querySelectorAll('canvas')] : [];
  return canvases.length > 0 && lab.querySelector('.gl-state').innerText !== '' && canvases.every(canvas => {
    if (!canvas.width) return false;
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    return pixels.some((value, at) => value !== pixels[at % 4]);
  });
}"""
# Tornado's log when a page is closed or reloaded while the server writes to it.
_PAGE_LEFT = re.compile(
    r"^.*Task exception was never retrieved\n *future: .*WebSocketClosedError\(\)>\n"
    r"(?:.*\n)*? *tornado\.websocket\.WebSocketClosedError\n",
    re.MULTILINE,
)
_BY_NAME = {"AMP": "amp", "window": "accumulate", "checkpointing": "checkpoint"}


def chromium() -> str | None:
    """Return the path of Chromium, None without one."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def evaluate_async(page: Any, script: str, argument: Any = None) -> Any:
    """Return the result of a JavaScript function that returns a promise; Playwright itself would wait for ever."""
    limit = f"new Promise((_, fail) => setTimeout(() => fail(new Error('no result')), {1000 * TIMEOUT_S}))"
    return page.evaluate(f"argument => Promise.race([({script})(argument), {limit}])", argument)


def run_cell(page: Any, index: int) -> None:
    """Run a cell of the notebook that is open, and wait for its end."""
    evaluate_async(page, _RUN_CELL, index)


def save_notebook(page: Any) -> None:
    evaluate_async(page, "() => jupyterapp.commands.execute('docmanager:save')")


def next_frames(page: Any, count: int = 3) -> None:
    """Wait until the page has painted this number of frames."""
    page.evaluate(
        "left => new Promise(done => { (function go() { left-- ? requestAnimationFrame(go) : done(); })(); })", count
    )


def button_of(lab: Any, label: str) -> Any:
    """Return the button with this label; buttons behind "more" are shown first."""
    button = lab.locator(".gl-button", has_text=label).first
    if button.count() and not button.is_visible() and lab.locator(".gl-rest").first.is_hidden():
        lab.locator(".gl-player [aria-expanded]").first.click()
    return button


class Jupyter:
    """A running JupyterLab: its address, the folder that it serves and its log."""

    def __init__(self, url: str, folder: Path, log: Path) -> None:
        self.url, self.folder, self.log = url, folder, log

    def errors(self) -> list[str]:
        """Return the lines of the log with an error or a traceback."""
        bad = ("Traceback", "Error", "ERROR", "Exception")
        log = _PAGE_LEFT.sub("", self.log.read_text())
        return [line for line in log.splitlines() if any(word in line for word in bad)]


@contextlib.contextmanager
def serving(home: Path) -> Iterator[Jupyter]:
    """Run JupyterLab on a free port, with its home and settings in ``home``."""
    folder = home / "work"
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folders = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR", "IPYTHONDIR")
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT)}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
    environment |= {name: str(home / name.lower()) for name in (*folders, "JUPYTERLAB_WORKSPACES_DIR", "MPLCONFIGDIR")}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token=", "--LabApp.expose_app_in_browser=True"]
    command += ["--JupyterNotebookApp.expose_app_in_browser=True"]  # of Notebook 7, which is on the same server
    settings = home / "jupyterlab_settings_dir" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    log = home / "log.txt"
    with log.open("w") as out:
        server = subprocess.Popen([*command, f"--notebook-dir={folder}"], stdout=out, stderr=out, env=environment)
    try:
        jupyter = Jupyter(f"http://127.0.0.1:{port}", folder, log)
        _wait_for(jupyter, TIMEOUT_S)
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
    """Start Chromium and open a new, empty notebook of this name in it.

    Motion is reduced, so that pictures can be compared; test_motion.py turns it on.
    """
    write_notebook(jupyter.folder / notebook, "")
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(profile), executable_path=chromium(), headless=True, args=_QUIET, reduced_motion="reduce"
        )
        try:
            context.set_default_timeout(TIMEOUT_S * 1000)
            page = context.pages[0] if context.pages else context.new_page()
            opened = Notebook(page, jupyter, notebook)
            opened.new_browser = lambda: playwright.chromium.launch(executable_path=chromium(), args=_QUIET)
            yield opened
        finally:
            context.close()


def write_notebook(path: Path, *cells: str) -> None:
    """Write a notebook of code cells."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)


def violations(page: Any, *selectors: str) -> list[str]:
    """Return axe-core's violations in the selected elements, or in the whole page."""
    response: Any = Axe().run(page, context={"include": [[each] for each in selectors]} if selectors else None).response
    return [
        f"{each['id']} ({each['impact']}): {[node['html'][:120] for node in each['nodes']]}"
        for each in response["violations"]
    ]


class Notebook:
    """A notebook open in JupyterLab, and one of the labs in it: the first, unless ``lab`` chooses another."""

    number = 0
    """Index of the lab."""

    new_browser: Callable[[], Any]
    """Starts another Chromium, for pages with a clock of their own."""

    cells: tuple[str | dict[str, Any], ...] = ()
    """The cells that ``show`` has put into the page."""

    def __init__(self, page: Any, jupyter: Jupyter, name: str) -> None:
        self.page, self.jupyter, self.name = page, jupyter, name
        self._errors: list[str] = []
        page.on("pageerror", lambda error: self._errors.append(f"page: {error.stack}"))
        page.on("console", self._console)
        # A new workspace, so that no tabs of earlier notebooks are restored.
        page.goto(f"{jupyter.url}/lab/workspaces/{name.removesuffix('.ipynb')}/tree/{name}")
        self.wait_for_kernel()

    def wait_for_kernel(self) -> None:
        """Wait until the notebook is open with an idle kernel, and start recording errors and requests."""
        self.cells = ()
        self.page.wait_for_function(_READY)
        self.page.evaluate(_LISTEN)

    def _console(self, message: Any) -> None:
        # The server without news and extensions answers some requests with 404; these are JupyterLab's.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self._errors.append(f"console: {message.text}")

    # The notebook -----------------------------------------------------------------------------------------------------

    def show(self, *cells: str | dict[str, Any], width: int = 1366, height: int = 768) -> None:
        """Replace all cells by these, run them in the same kernel, and wait until a Lab is painted.

        A text is the source of a code cell; a dictionary has fields of a cell in the notebook format.
        """
        self.page.set_viewport_size({"width": width, "height": height})
        if width < _NARROW_PX:
            self.side_bar(False)
        self.cells = cells
        evaluate_async(self.page, _RUN, list(cells))
        self.page.wait_for_selector(".gradlab canvas")
        into_view = "() => document.querySelector('.gradlab').scrollIntoView()"
        self.page.evaluate(into_view)  # the notebook may have scrolled to later cells; labs out of sight wait
        self.wait_until_painted()
        self.page.evaluate(into_view)

    def ask(self, expression: str) -> Any:
        """Evaluate an expression in the kernel; its ``repr`` must be a Python literal."""
        reply = evaluate_async(self.page, _ASK, expression)
        assert reply["status"] == "ok", reply
        return ast.literal_eval(reply["data"]["text/plain"])

    def lend_kernel(self, name: str) -> None:
        """Give the same kernel to a notebook that is not open yet."""
        evaluate_async(self.page, _LEND, name)

    def problems(self) -> list[str]:
        """Return the errors in the page or in the kernel since the last call."""
        # JupyterLab's widget manager requests a comm before ipywidgets is imported: the kernel reports it on stderr.
        complaints = self.page.evaluate("() => window.complaints.splice(0)")
        errors = self._errors + [text for text in complaints if not text.startswith("No such comm")]
        self._errors = []
        return errors

    def theme(self, name: str) -> None:
        """Choose the "Light" or the "Dark" theme."""
        evaluate_async(
            self.page,
            "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})",
            f"JupyterLab {name}",
        )
        self.page.wait_for_function(f"() => document.body.dataset.jpThemeLight === '{json.dumps(name == 'Light')}'")
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")

    def side_bar(self, is_open: bool) -> None:
        """Open or close the list of files at the left."""
        self.page.evaluate("open => jupyterapp.shell[open ? 'expandLeft' : 'collapseLeft']()", is_open)

    # The Lab ----------------------------------------------------------------------------------------------------------

    def lab(self, number: int) -> Notebook:
        """Return the same notebook with another of its labs."""
        other = copy.copy(self)
        other.number = number
        return other

    @property
    def root(self) -> Any:
        """The lab as a locator."""
        return self.page.locator(".gradlab").nth(self.number)

    def evaluate(self, script: str, argument: Any = None) -> Any:
        """Call a JavaScript function of the lab's element and an argument in the page."""
        wrapped = f"([number, argument]) => ({script})(document.querySelectorAll('.gradlab')[number], argument)"
        return self.page.evaluate(wrapped, [self.number, argument])

    def button(self, label: str) -> Any:
        """Return the Lab's button with this label, also from behind "more"."""
        return button_of(self.root, label)

    def control(self, label: str) -> Any:
        """Return the Lab's control with this label."""
        if label == "speed":
            return self.root.locator(".gl-speed select")
        return self.root.locator(f":is(.gl-controls, .gl-rest) [name={_BY_NAME.get(label, label)}]")

    def turn(self, label: str, value: Any) -> None:
        """Set a control as a learner would: click, choose or type."""
        control = self.control(label)
        if isinstance(value, bool):
            control.set_checked(value)
        elif label in ("lr", "accumulate", "window", "batch"):
            control.fill(str(value))
            control.press("Enter")
        else:
            control.select_option(label=str(value))

    def code(self) -> str:
        """Return the text in the code pane, exactly as it would be run."""
        lines = self.evaluate("lab => [...lab.querySelectorAll('pre.gl .line .text')].map(line => line.textContent)")
        return "".join(f"{line}\n" for line in lines)

    def lines(self, mark: str) -> list[int]:
        """Return the numbers of the lines with a mark: "lit", "changed" or "wrong"."""
        script = "(lab, mark) => [...lab.querySelectorAll('pre.gl .line')].map(line => line.classList.contains(mark))"
        return [number for number, on in enumerate(self.evaluate(script, mark), 1) if on]

    def text(self) -> str:
        """Return the text under the Lab's pictures."""
        return str(self.evaluate(_TEXT))

    def updates(self) -> int:
        """Return the number of updates in the text."""
        match = re.search(r"update ([\d,]+)", self.text())
        assert match, self.text()
        return int(match[1].replace(",", ""))

    def pictures(self) -> list[str]:
        """Return the painted panels as data URLs of PNGs."""
        return [
            str(each) for each in self.evaluate("lab => [...lab.querySelectorAll('canvas')].map(c => c.toDataURL())")
        ]

    def panel(self, name: str) -> Any:
        """Return the canvas of a panel."""
        return self.root.locator(f"[data-panel={name!r}] canvas")

    def position(self, panel: str, x: float, y: float) -> tuple[float, float]:
        """Return the screen coordinates of a point given as shares of a panel's width and height."""
        box = self.panel(panel).bounding_box()
        assert box is not None
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    def points(self, panel: str, mark: str) -> list[tuple[float, float]]:
        """Return the points of a mark in a panel of ``lab``, a Lab or an instrument, as shares of the panel."""
        panels = "lab._now().panels if hasattr(lab, '_now') else dict(zip(lab.model.panels(), lab.model.drawings()))"
        numbers = self.ask(f"[float(each) for each in ({panels})[{panel!r}].find({mark!r}).points]")
        scales = "({plots: [{x, y}], size}) => [x, y, size]"
        laid_out = f"({{parentElement}}) => ({scales})(parentElement.gradlabPanel._panel)"
        x, y, (wide, tall) = self.panel(panel).evaluate(laid_out)

        def share(scale: dict[str, Any], value: float) -> float:
            return float(((math.log10(value) if scale["log"] else value) - scale["start"]) / scale["per_pixel"])

        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        return [(share(x, across) / wide, share(y, up) / tall) for across, up in pairs]

    def wait_until_painted(self) -> None:
        """Wait until every panel has been painted and, where the lab does not play, nothing is on its way."""
        self.page.wait_for_function(_PAINTED, arg=self.number)
        if not self.plays():
            self.wait_until_still()

    def wait_for_text(self, pattern: str) -> None:
        """Wait until the text matches a regular expression."""
        self.wait_for(f"(lab, pattern) => new RegExp(pattern).test(({_TEXT})(lab))", pattern)

    def wait_for_updates(self, at_least: int) -> None:
        """Wait until this number of updates has been made."""
        self.wait_for(
            "(lab, least) => Number(/update ([0-9,]+)/.exec(lab.querySelector('.gl-state').innerText)[1]"
            ".replaceAll(',', '')) >= least",
            at_least,
        )

    def wait_for_code(self, source: str) -> None:
        """Wait until the code pane shows exactly this text."""
        lines = "lab => [...lab.querySelectorAll('pre.gl .line .text')].map(line => `${line.textContent}\\n`).join('')"
        self.wait_for(f"(lab, source) => ({lines})(lab) === source", source)

    def plays(self) -> bool:
        """Return whether the lab plays."""
        return bool(self.evaluate(_PLAYS))

    def wait_until_still(self) -> None:
        """Wait until every request has been answered and shown, and nothing moves."""
        self.evaluate("lab => { lab.quietFrames = 0; }")
        self.wait_for(_SETTLED, polling="raf")

    def wait_for(self, script: str, argument: Any = None, polling: Any = 30) -> None:
        """Wait until a function of the lab's element, and of an argument, is true in the page."""
        wrapped = f"([number, argument]) => ({script})(document.querySelectorAll('.gradlab')[number], argument)"
        try:
            self.page.wait_for_function(wrapped, arg=[self.number, argument], polling=polling)
        except Exception as error:
            raise AssertionError(f"not seen: {argument or script!r}; the text is: {self.text()!r}") from error
