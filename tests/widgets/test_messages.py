"""What a real kernel sends a browser: no binary buffers, and nothing between two requests.

Colab's widget manager takes no more than that: it loses buffers, and what a thread sends after its cell has ended.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pytest
from jupyter_client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

Message = dict[str, Any]
SILENCE = 0.3  # seconds without a message after which nothing more is on its way
CARRIES_DATA = ("comm_open", "comm_msg", "display_data", "update_display_data", "execute_result")


class Browser:
    """Asks a kernel; ``sent`` is all that came from it, each message with the request that was being answered."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self.client = client
        self.sent: list[tuple[Message, str | None]] = []
        self._at: str | None = None
        """The request or cell that the kernel is at work on, None between two."""

    def cell(self, code: str) -> list[Message]:
        """Run a cell."""
        return self._answers(self.client.execute(code))

    def ask(self, comm_id: str, data: dict[str, Any]) -> list[Message]:
        """Send a widget a message."""
        message = self.client.session.msg("comm_msg", {"comm_id": comm_id, "data": data})
        self.client.shell_channel.send(message)
        return self._answers(message["header"]["msg_id"])

    def hear(self, seconds: float) -> list[Message]:
        """Take what comes until nothing has come for this long."""
        heard = []
        while True:
            try:
                heard.append(self._take(seconds))
            except queue.Empty:
                return heard

    def faults(self) -> list[str]:
        """Say which messages Colab's browser would not get."""
        told = []
        for message, at in self.sent:
            if message["msg_type"] in CARRIES_DATA:
                if message.get("buffers"):
                    told.append(f"{message['msg_type']} with buffers")
                if at is None or message["parent_header"].get("msg_id") != at:
                    told.append(f"{message['msg_type']} outside a request")
        return told

    def _answers(self, request: str) -> list[Message]:
        answers = []
        while True:
            message = self._take(60)
            answers.append(message)
            if message["msg_type"] == "error":
                raise AssertionError("\n".join(message["content"]["traceback"]))
            if _is_status(message, "idle") and message["parent_header"]["msg_id"] == request:
                return answers

    def _take(self, seconds: float) -> Message:
        message: Message = self.client.get_iopub_msg(timeout=seconds)
        if _is_status(message, "busy"):
            self._at = message["parent_header"]["msg_id"]
        elif _is_status(message, "idle"):
            self._at = None
        self.sent.append((message, self._at))
        return message


def _is_status(message: Message, state: str) -> bool:
    return message["msg_type"] == "status" and message["content"]["execution_state"] == state


def opened(messages: list[Message], has: str) -> str:
    """Return the name of the first widget among the messages with this trait."""
    opens = [message["content"] for message in messages if message["msg_type"] == "comm_open"]
    return next(content["comm_id"] for content in opens if has in content["data"].get("state", {}))


def custom(messages: list[Message]) -> list[dict[str, Any]]:
    """Return the contents of the messages of widgets' own among these."""
    data = [message["content"]["data"] for message in messages if message["msg_type"] == "comm_msg"]
    return [each["content"] for each in data if each.get("method") == "custom"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    manager, client = start_new_kernel(kernel_name="python3")
    yield Browser(client)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def requests_of(browser: Browser, comm_id: str, requests: list[dict[str, Any]]) -> None:
    """Make the requests, and see that each is answered by one message; how far it is may be told before."""
    for number, request in enumerate([{"do": "code"}, {"do": "hello"}, *requests], 1):
        content = {"n": number, "client": "page", **request}
        told = custom(browser.ask(comm_id, {"method": "custom", "content": content}))
        answers = [answer for answer in told if "progress" not in answer]
        assert len(answers) == 1, request
        assert request["do"] == "code" or answers[0]["n"] == number


def test_a_lab(browser: Browser) -> None:
    lab = opened(browser.cell("from gradlab import Lab\nlab = Lab('digits')\nlab.run(updates=3)"), "lab_id")
    playing = [{"do": "frames", "count": 3, "every": 20, "updates": 1, "play": 1}] * 2
    switches = [{"do": "turn", "name": "zero_grad", "value": False}, {"do": "turn", "name": "lr", "value": "much"}]
    rest = [{"do": "size", "width": 800, "height": 300}, {"do": "statement"}, {"do": "pause"}, {"do": "reset"}]
    requests_of(browser, lab, [*switches, *playing, *rest])
    assert custom(browser.cell("lab.run(updates=2)")), "a cell that drives the lab shows it"
    assert browser.hear(SILENCE) == []
    assert browser.faults() == []


def test_an_instrument(browser: Browser) -> None:
    instrument = opened(browser.cell("from gradlab.course import swing\nshown = swing()\nshown"), "lab_id")
    requests_of(browser, instrument, [{"do": "drag", "name": "lr", "x": 0.7, "y": 0.0}])
    assert browser.hear(SILENCE) == []
    assert browser.faults() == []
