"""The widget that sends gradlab's JavaScript modules to the browser, and carries messages between it and the kernel."""

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
    """A widget that answers each request of its view in the browser with one message, on the main thread.

    ``answer`` handles a request. While a cell runs, JupyterLab delivers requests on another thread, which notifies the
    browser that a request has to wait; a "hello" also gets the frame from ``newest``, unless that is None. Of waiting
    requests with the same ``_kind``, only the newest is answered. No state is in traits: a reloaded page requests
    everything. The first lab of a page requests the modules and the style for all labs, because a page recreates the
    widgets of all labs that the kernel has.
    """

    _esm = traitlets.Unicode("").tag(sync=True)
    code_id = traitlets.Unicode("").tag(sync=True)  # a hash of modules and style, by which the browser caches them
    kind = traitlets.Unicode("").tag(sync=True)  # kind of the screen: "lab" or "instrument"
    lab_id = traitlets.Unicode("").tag(sync=True)
    """A unique id by which the browser recognizes two views of the same lab, and the still picture to replace."""

    def __init__(
        self, kind: str, answer: Callable[[Message], dict[str, Any]], newest: Callable[[], dict[str, Any] | None]
    ) -> None:
        """Send only the start module, which requests the others if needed; ``kind`` is "lab" or "instrument"."""
        self._code = {"code": joined_module("lab"), "style": style_sheet()}
        code_id = hashlib.sha256("".join(self._code.values()).encode()).hexdigest()
        super().__init__(_esm=joined_module("start"), code_id=code_id, kind=kind, lab_id=uuid.uuid4().hex)
        self._answer, self._newest = answer, newest
        self._is_new = True
        self._began = 0.0  # start of the work on the current request, or 0 if there is none
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
        """Show only the whole frame ``frame`` from now on, nothing if it is None; the lab continues in another view."""
        frames = [{**frame, "frozen": True, "note": GOES_ON, "then": ""}] if frame else []
        self._answer = lambda message: {"n": message.get("n"), "client": message.get("client"), "frames": frames}
        self._newest = lambda: frames[0] if frames else None
        self._is_new = False
        self.push({"frames": frames})

    def _let_requests_choose_their_thread(self) -> None:
        """Delete the last message's subshell id: ipykernel 7.4 sends that subshell the next request, even if busy."""
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
            if main_thread.runs_cell and not main_thread.is_busy:  # a gradlab call in the cell serves requests
                with suppress(RuntimeError):  # no event loop runs in this thread
                    asyncio.get_running_loop().call_later(SERVED_LATELY, self._notify_busy, content)
            main_thread.hand_over(self._reply_to_oldest, self._kernel.io_loop.add_callback)
            if content.get("do") == "pause" and self._began:
                threading.Timer(_PAUSE_SECONDS, self._interrupt, [self._began]).start()

    def _notify_busy(self, content: Message) -> None:
        """Notify the browser if ``content`` waits for the end of a cell; a "hello" also gets the newest frame."""
        if main_thread.is_busy and any(content is each for each in list(self._waiting.values())):
            newest = self._newest() if content.get("do") == "hello" else None
            notice = {"n": content.get("n"), "client": content.get("client"), "busy": CELL_RUNS}
            self.send({**notice, "frames": [newest] if newest else []})

    def _interrupt(self, began: float) -> None:
        """Interrupt the work that began at ``began`` if it still runs: a statement of a loop may never end."""
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
        if self._is_new and content.get("do") == "hello":  # not on a reload, which keeps the state
            self._is_new, answer["new"] = False, True
        self.send(answer)


def _kind(content: Message) -> object:
    """Return the key that a request shares with the older requests that it replaces; unique for ``frames`` requests."""
    if content.get("do") == "frames":
        return object()
    return repr([content.get(name) for name in ("client", "do", "name")])


_on_interrupt: set[Callable[[], bool]] = set()
"""Callbacks for an interrupt, shared by all widgets, because a process has one handler for each signal."""


def on_interrupt(act: Callable[[], bool], *, enabled: bool) -> None:
    """Register ``act``, to be called when the kernel is interrupted between two cells, or remove it if not ``enabled``.

    ``act`` returns whether the current work belongs to its widget and will end by itself very soon.
    """
    _on_interrupt.add(act) if enabled else _on_interrupt.discard(act)


def _interrupted(number: int, frame: object) -> None:
    """Call the callbacks; raise KeyboardInterrupt if the main thread does a widget's work that will not end soon."""
    ends_soon = [act() for act in list(_on_interrupt)]
    if main_thread.is_working and not any(ends_soon):
        raise KeyboardInterrupt


def _keep_interrupts() -> None:
    """Install a hook that repeats an interrupt which Python would drop, for example in a weak reference's callback."""
    report = sys.unraisablehook

    def hook(dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_type is KeyboardInterrupt:
            threading.Timer(0.05, interrupt_main).start()  # not at once: this is still within the callback
        else:
            report(dropped)

    sys.unraisablehook = hook


def _shell() -> Any:
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def cell_number() -> int | None:
    """Return the number of the cell that is running or that will run next; None outside of IPython."""
    return getattr(_shell(), "execution_count", None)


def _kernel() -> Any:
    kernel = getattr(_shell(), "kernel", None)
    return kernel if hasattr(kernel, "io_loop") else None


def _follow_cells(kernel: Any) -> None:
    """Track when cells run, and handle interrupts between cells; further calls for the same kernel do nothing."""
    if getattr(kernel, "saved_sigint_handler", None) is _interrupted:
        return
    with suppress(ValueError):  # only the main thread may set a handler
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as ipykernel sets it between messages
            signal.signal(signal.SIGINT, _interrupted)
        kernel.saved_sigint_handler = _interrupted  # ipykernel restores it after each message
    if threading.current_thread() is threading.main_thread():  # a cell creates the widget
        main_thread.begin_cell()
    _keep_interrupts()
    kernel.shell.events.register("pre_execute", main_thread.begin_cell)
    kernel.shell.events.register("post_execute", main_thread.end_cell)
