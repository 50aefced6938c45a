"""A real ipykernel with a subshell, as JupyterLab uses it: cells on the main thread, a widget's requests on another."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_client.manager import KernelManager, start_new_kernel

Message = dict[str, Any]
LIMIT_S = 60.0  # only a hang takes longer


class Kernel:
    """A kernel, its cells and the widgets in it."""

    def __init__(self, manager: KernelManager, client: Any) -> None:
        self.manager, self._client = manager, client
        client.control_channel.send(client.session.msg("create_subshell_request"))
        self._subshell = client.get_control_msg(timeout=LIMIT_S)["content"]["subshell_id"]
        self._count = 0
        self._opened: list[str] = []
        self._displayed = False
        self.errors: list[str] = []
        """Errors of cells."""
        self.answers: dict[int, Message] = {}
        """By the number of a request."""
        self.notices: dict[int, Message] = {}
        """That a request waits."""

    @property
    def is_alive(self) -> bool:
        return bool(self.manager.is_alive())

    def begin(self, code: str) -> str:
        """Start a cell; return its id for ``wait``."""
        return str(self._client.execute(code))

    def wait(self, cell: str, seconds: float = LIMIT_S) -> Message:
        """Return the reply to a cell once it has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.hear(0.0)
            try:
                message = self._client.get_shell_msg(timeout=0.05)
            except queue.Empty:
                assert self.is_alive, f"the kernel died: {self.manager.provisioner.process.poll()}"
                continue
            if message["parent_header"].get("msg_id") == cell:
                self.hear(0.0)
                return dict(message["content"])
        raise AssertionError("the cell did not end")

    def cell(self, code: str, seconds: float = LIMIT_S) -> None:
        """Run a cell to its end."""
        reply = self.wait(self.begin(code), seconds)
        assert reply["status"] == "ok", reply

    def value(self, expression: str) -> str:
        """Return the repr of an expression in the kernel."""
        reply: Message = {"status": "aborted"}  # as requests right after a failed cell may be
        while reply["status"] == "aborted":
            reply = self.wait(self._client.execute("", user_expressions={"value": expression}))
        value = reply["user_expressions"]["value"]
        assert value["status"] == "ok", value
        return str(value["data"]["text/plain"])

    def widget(self, code: str) -> str:
        """Run a cell that shows a lab or an instrument; return the name of its comm."""
        self._opened.clear()
        self.cell(code)
        self.hear(0.3)
        return self._opened[-1]

    def opened(self) -> str:
        """Return the name of the next widget shown by a running cell, once a browser would make its view."""
        self._opened.clear()
        self._displayed = False
        self._wait_for(lambda: bool(self._opened) and self._displayed, "no widget was shown")
        return self._opened[-1]

    def send(self, widget: str, do: str, **fields: Any) -> int:
        """Send a request as JupyterLab does while a cell runs; return its number."""
        self._count += 1
        content = {"do": do, "n": self._count, "client": "page", **fields}
        data = {"method": "custom", "content": content}
        message = self._client.session.msg("comm_msg", {"comm_id": widget, "data": data})
        message["header"]["subshell_id"] = self._subshell
        self._client.shell_channel.send(message)
        return self._count

    def answer(self, number: int, seconds: float = LIMIT_S) -> Message:
        """Return the answer to a request, once it is there."""
        self._wait_for(lambda: number in self.answers, f"request {number} was not answered", seconds)
        return self.answers[number]

    def answer_or_hello(self, widget: str, number: int) -> Message:
        """Return the answer to a request, or after 6 seconds the one to "hello", with which a page tries again.

        An interrupt loses a request that ipykernel has begun to read.
        """
        try:
            return self.answer(number, seconds=6)
        except AssertionError:
            return self.ask(widget, "hello")

    def notice(self, number: int) -> Message:
        """Return the notice that a request waits, once it is there."""
        self._wait_for(lambda: number in self.notices, f"no notice that request {number} waits")
        return self.notices[number]

    def _wait_for(self, is_there: Callable[[], bool], missing: str, seconds: float = LIMIT_S) -> None:
        end = time.monotonic() + seconds
        while not is_there():
            assert self.is_alive, f"the kernel died: {self.manager.provisioner.process.poll()}"
            assert time.monotonic() < end, f"{missing}; errors: {self.errors}"
            self._take(0.05)

    def ask(self, widget: str, do: str, **fields: Any) -> Message:
        """Send a request and return its answer."""
        return self.answer(self.send(widget, do, **fields))

    def play(self, widget: str, seconds: float, *, frames: int = 3) -> int:
        """Play a lab, with a request after each answer or notice; return the number of answers."""
        end, answered, number = time.monotonic() + seconds, 0, 0
        while time.monotonic() < end and self.is_alive:
            if number in self.answers or not number:
                answered += bool(number)
                number = self.send(widget, "frames", count=frames, every=16.7, updates=1, play=1)
            self._take(0.05)
        return answered

    def hear(self, seconds: float) -> None:
        """Take the kernel's messages until none has come for this long."""
        while self._take(seconds):
            pass

    def _take(self, seconds: float) -> bool:
        """Take one message; return whether one came within these seconds."""
        try:
            message = self._client.get_iopub_msg(timeout=seconds)
        except queue.Empty:
            return False
        content = message["content"]
        if message["msg_type"] == "error":
            self.errors.append(f"{content['ename']}: {content['evalue']}")
        elif message["msg_type"] == "comm_open" and "code_id" in content["data"].get("state", {}):
            self._opened.append(content["comm_id"])
        elif message["msg_type"] == "display_data":
            self._displayed = True
        elif message["msg_type"] == "comm_msg" and content["data"].get("method") == "custom":
            reply = content["data"]["content"]
            (self.notices if "busy" in reply else self.answers)[reply.get("n")] = reply
        return True


@contextmanager
def started_kernel() -> Iterator[Kernel]:
    """Run a kernel."""
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
