"""FrontEnd: the widget that carries the browser's modules, and the messages between them and the kernel."""

from __future__ import annotations

import hashlib
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import anywidget
import traitlets

from .joined import joined_module, style_sheet


class FrontEnd(anywidget.AnyWidget):
    """A view in the browser whose requests are answered by ``answer``, each with one message.

    ``entry`` is the module that paints it: "lab" or "instrument". Messages are text; nothing is held in traits, so a
    page that is reloaded asks for all that it shows. Its first lab asks for the modules and the style, for all: a
    kernel may hold many labs, and each of their widgets is made anew with the page.
    """

    _esm = traitlets.Unicode("").tag(sync=True)
    code_id = traitlets.Unicode("").tag(sync=True)
    """Of the modules and the style: by it the browser knows whether it has them already."""
    lab_id = traitlets.Unicode("").tag(sync=True)
    """One of a kind: by it the browser knows two views of the same lab, and the still picture that it replaces."""

    def __init__(self, entry: str, answer: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
        """Carry what asks for the entry with all that it imports."""
        self._code = {"code": joined_module(entry), "style": style_sheet()}
        code_id = hashlib.sha256("".join(self._code.values()).encode()).hexdigest()
        super().__init__(_esm=joined_module("start"), code_id=code_id, lab_id=uuid.uuid4().hex)
        self._answer = answer
        self._is_new = True
        self.on_msg(self._asked)

    def push(self, frame: dict[str, Any]) -> None:
        """Tell the browser of something that it has not asked for, as after a cell has driven the lab."""
        self.send({"frames": [frame]})

    def _asked(self, _: object, content: Any, buffers: object) -> None:
        if not isinstance(content, Mapping):
            return
        if content.get("do") == "code":
            self.send(self._code)
        else:
            answer = self._answer(content)
            if self._is_new and content.get("do") == "hello":  # a page that is loaded again shows it where it was
                self._is_new, answer["new"] = False, True
            self.send(answer)


_heeding: set[Callable[[], None]] = set()
"""What an interrupt ends: here and not in each widget, because a process has one handler of a signal."""


def on_interrupt(act: Callable[[], None], *, heed: bool) -> None:
    """Have the kernel call ``act`` when it is interrupted between two messages, or with ``heed`` off no longer.

    A lab that plays is at work for a few ms at a time, and most interrupts would miss it: the kernel ignores them then.
    ipykernel sets its own handler while it handles a message and afterwards the one that it has kept.
    """
    _heeding.add(act) if heed else _heeding.discard(act)
    kernel: Any = getattr(getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)(), "kernel", None)
    if not hasattr(kernel, "saved_sigint_handler"):
        return
    handler: Any = _interrupted if _heeding else signal.SIG_IGN

    def keep() -> None:
        kernel.saved_sigint_handler = handler
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # no message is being handled
            signal.signal(signal.SIGINT, handler)

    if threading.current_thread() is threading.main_thread():
        kernel.saved_sigint_handler = handler
    else:  # JupyterLab has widgets answered on a thread of their own, and only the main one may set a handler
        kernel.io_loop.add_callback(keep)


def _interrupted(number: int, frame: object) -> None:
    for act in list(_heeding):
        act()
