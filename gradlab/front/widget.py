"""The widget that sends gradlab's JavaScript modules to the browser and connects the browser to the kernel."""

from __future__ import annotations

import asyncio
import hashlib
import signal
import sys
import threading
import time
import uuid
from _thread import interrupt_main
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import anywidget
import traitlets

from .._process import SERVED_LATELY, main_thread
from .joined import joined_module, style_sheet

CELL_RUNS = "A cell is running. The lab continues when the cell has finished."
_PAUSE_SECONDS = 1.0  # seconds from a request to pause until the current work is interrupted
GOES_ON = "This is how the lab looked here. It continues in the next cell that shows it."
Message = Mapping[str, Any]


class FrontEnd(anywidget.AnyWidget):
    """A widget that replies to each request from the browser with one message, which the main thread computes.

    ``answer`` returns the reply to a request. While a cell runs, JupyterLab delivers requests on another thread, which
    notifies the browser that a request has to wait. If this request is a "hello", the notice contains the frame that
    ``newest`` returns, if any. Of waiting requests with equal keys (see ``_kind``), only the newest gets a reply. The
    traits hold no state of the lab, so a reloaded page requests all of it. A page recreates the widgets of all labs in
    the kernel, so only the first of them requests the modules and the style.
    """

    _esm = traitlets.Unicode("").tag(sync=True)
    code_id = traitlets.Unicode("").tag(sync=True)  # hash of modules and style, the browser's key for both
    kind = traitlets.Unicode("").tag(sync=True)  # "lab" or "instrument", the kind of screen to show
    lab_id = traitlets.Unicode("").tag(sync=True)
    """A unique id, by which the browser recognizes other views of the same lab, and the lab's still picture."""

    def __init__(
        self, kind: str, answer: Callable[[Message], dict[str, Any]], newest: Callable[[], dict[str, Any] | None]
    ) -> None:
        """Create a widget of ``kind`` "lab" or "instrument" from the start module, which may request the others."""
        self._code = {"code": joined_module("lab"), "style": style_sheet()}
        code_id = hashlib.sha256("".join(self._code.values()).encode()).hexdigest()
        super().__init__(_esm=joined_module("start"), code_id=code_id, kind=kind, lab_id=uuid.uuid4().hex)
        self._answer, self._newest = answer, newest
        self._is_new = True
        self._began = 0.0  # ``perf_counter()`` when the current request's work began, or 0 without a request
        self._waiting: dict[object, Message] = {}
        self._waiting_lock = threading.Lock()
        self._kernel = _kernel()
        if self._kernel is not None:
            _follow_cells(self._kernel)
        self._let_requests_choose_their_thread()
        self.on_msg(self._receive)

    def push(self, message: dict[str, Any]) -> None:
        """Send the browser a message that it did not request, for example after a cell has run the lab."""
        self.send(message)
        self._let_requests_choose_their_thread()

    def freeze(self, frame: dict[str, Any] | None) -> None:
        """Show only the frame ``frame`` from now on, or nothing if it is None, because another view shows the lab."""
        frames = [{**frame, "frozen": True, "note": GOES_ON, "then": ""}] if frame else []
        self._answer = lambda message: {"n": message.get("n"), "client": message.get("client"), "frames": frames}
        self._newest = lambda: frames[0] if frames else None
        self._is_new = False
        self.push({"frames": frames})

    def _let_requests_choose_their_thread(self) -> None:
        """Delete the id of the last message's subshell, to which ipykernel 7.4 would send the next request, too."""
        getattr(self.comm, "__dict__", {}).pop("_reply_subshell_id", None)

    def _receive(self, _: object, content: Any, buffers: object) -> None:
        if not isinstance(content, Mapping):
            return
        if content.get("do") == "code":
            self.send(self._code)
        elif self._kernel is None or threading.current_thread() is threading.main_thread():
            main_thread.do(partial(self._reply, content))
        else:
            with self._waiting_lock:
                self._waiting.pop(key := _kind(content), None)
                self._waiting[key] = content
            self._notify_busy(content)
            if main_thread.runs_cell and not main_thread.is_busy:  # the cell serves requests, but may stop soon
                with suppress(RuntimeError):  # raised if no event loop runs in this thread
                    asyncio.get_running_loop().call_later(SERVED_LATELY, self._notify_busy, content)
            main_thread.hand_over(self._reply_to_oldest, self._kernel.io_loop.add_callback)
            if content.get("do") == "pause" and self._began:
                threading.Timer(_PAUSE_SECONDS, self._interrupt, [self._began]).start()

    def _notify_busy(self, content: Message) -> None:
        """Notify the browser if the request ``content`` waits for a cell to end; for "hello", add the newest frame."""
        if main_thread.is_busy and any(content is each for each in list(self._waiting.values())):
            newest = self._newest() if content.get("do") == "hello" else None
            notice = {"n": content.get("n"), "client": content.get("client"), "busy": CELL_RUNS}
            self.send({**notice, "frames": [newest] if newest else []})

    def _interrupt(self, began: float) -> None:
        """Interrupt the main thread if the work that began at ``began`` is not finished; a statement may never end."""
        if self._began == began:
            interrupt_main()

    def _reply_to_oldest(self) -> None:
        with self._waiting_lock:
            content = self._waiting.pop(next(iter(self._waiting)), None) if self._waiting else None
        if content is not None:
            self._reply(content)

    def _reply(self, content: Message) -> None:
        self._began = time.perf_counter()
        try:
            answer = self._answer(content)
        finally:
            self._began = 0.0
        if self._is_new and content.get("do") == "hello":  # a reloaded page says hello again
            self._is_new, answer["new"] = False, True
        self.send(answer)


def _kind(content: Message) -> object:
    """Return a key. A request replaces waiting requests with an equal key; a "frames" request never replaces one."""
    if content.get("do") == "frames":
        return object()
    return repr([content.get(name) for name in ("client", "do", "name")])


_on_interrupt: set[Callable[[], bool]] = set()
"""The callbacks that ``on_interrupt`` has registered, shared by all widgets, because a signal has one handler."""


def on_interrupt(act: Callable[[], bool], *, enabled: bool) -> None:
    """Call ``act`` at every interrupt of the kernel between two cells or, if ``enabled`` is False, no longer call it.

    ``act`` must return whether the main thread is working for the widget of ``act`` and will finish very soon.
    """
    _on_interrupt.add(act) if enabled else _on_interrupt.discard(act)


def _interrupted(number: int, frame: object) -> None:
    """Handle SIGINT: call the registered callbacks; raise KeyboardInterrupt if a widget's work will not end soon."""
    ends_soon = [act() for act in list(_on_interrupt)]
    if main_thread.is_working and not any(ends_soon):
        raise KeyboardInterrupt


def _keep_interrupts() -> None:
    """Make Python repeat a KeyboardInterrupt that it would drop, for example in the callback of a weak reference."""
    report = sys.unraisablehook

    def hook(dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_type is KeyboardInterrupt:
            threading.Timer(0.05, interrupt_main).start()  # an immediate interrupt would be dropped, too
        else:
            report(dropped)

    sys.unraisablehook = hook


def _shell() -> Any:
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def cell_number() -> int | None:
    """Return the number of the running cell or, between cells, of the next cell, or None outside IPython."""
    return getattr(_shell(), "execution_count", None)


def _kernel() -> Any:
    kernel = getattr(_shell(), "kernel", None)
    return kernel if hasattr(kernel, "io_loop") else None


def _follow_cells(kernel: Any) -> None:
    """Report to ``main_thread`` when cells begin and end, and handle interrupts. A repeated call does nothing."""
    if getattr(kernel, "saved_sigint_handler", None) is _interrupted:
        return
    with suppress(ValueError):  # raised outside the main thread, which alone may set a handler
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # ipykernel ignores SIGINT between messages
            signal.signal(signal.SIGINT, _interrupted)
        kernel.saved_sigint_handler = _interrupted  # the handler that ipykernel sets after each message
    if threading.current_thread() is threading.main_thread():  # a running cell is creating the widget
        main_thread.begin_cell()
    _keep_interrupts()
    kernel.shell.events.register("pre_execute", main_thread.begin_cell)
    kernel.shell.events.register("post_execute", main_thread.end_cell)
