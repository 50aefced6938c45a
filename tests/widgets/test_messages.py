"""Messages of a real kernel to a browser: no binary buffers, and none between two requests.

Colab's widget manager supports no more: it loses buffers, and messages of a thread after its cell has ended.
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
    """Asks a kernel, and keeps what Colab's browser would not get of its answers."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self.client = client
        self.faults: list[str] = []
        self._parent_id: str | None = None
        """The request or cell that the kernel is at work on, None between two."""

    def answers(self, request: str) -> list[Message]:
        """Take all messages up to the end of a request."""
        answers = []
        while True:
            message = self.take(60)
            answers.append(message)
            assert message["msg_type"] != "error", "\n".join(message["content"]["traceback"])
            if message["content"].get("execution_state") == "idle" and message["parent_header"]["msg_id"] == request:
                return answers

    def ask(self, comm_id: str, content: dict[str, Any]) -> list[Message]:
        """Send a widget a message; return the contents of its own messages."""
        data = {"method": "custom", "content": {"client": "page", **content}}
        message = self.client.session.msg("comm_msg", {"comm_id": comm_id, "data": data})
        self.client.shell_channel.send(message)
        return custom(self.answers(message["header"]["msg_id"]))

    def take(self, seconds: float) -> Message:
        """Take a message, and look at how it came."""
        message: Message = self.client.get_iopub_msg(timeout=seconds)
        if message["msg_type"] == "status":
            is_busy = message["content"]["execution_state"] == "busy"
            self._parent_id = message["parent_header"]["msg_id"] if is_busy else None
        elif message["msg_type"] in CARRIES_DATA:
            if message.get("buffers"):
                self.faults.append(f"{message['msg_type']} with buffers")
            if self._parent_id is None or message["parent_header"].get("msg_id") != self._parent_id:
                self.faults.append(f"{message['msg_type']} outside a request")
        return message


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


LAB: list[dict[str, Any]] = [
    {"do": "turn", "name": "zero_grad", "value": False},
    {"do": "turn", "name": "lr", "value": "much"},
    *[{"do": "frames", "count": 3, "every": 20, "updates": 1, "play": 1}] * 2,
    *({"do": do} for do in ("statement", "pause", "reset")),
]
SHOWN = {
    "from gradlab import Lab\nlab = Lab('digits')\nlab.run(updates=3)": LAB,
    "from gradlab.course import swing\nshown = swing()\nshown": [{"do": "turn", "name": "lr", "value": 0.7}],
}


@pytest.mark.slow
@pytest.mark.parametrize("cell", SHOWN, ids=["lab", "instrument"])
def test_each_request_has_one_answer_that_colab_carries(browser: Browser, cell: str) -> None:
    messages = browser.answers(browser.client.execute(cell))
    opened = [message["content"] for message in messages if message["msg_type"] == "comm_open"]
    widget = next(content["comm_id"] for content in opens_with("lab_id", opened))
    for number, request in enumerate([{"do": "code"}, {"do": "hello"}, *SHOWN[cell]], 1):
        answers = [answer for answer in browser.ask(widget, {"n": number, **request}) if "working" not in answer]
        assert len(answers) == 1, request
        assert request["do"] == "code" or answers[0]["n"] == number
    if "Lab" in cell:
        driven = browser.answers(browser.client.execute("lab.run(updates=2)"))
        assert custom(driven), "a cell that drives the lab shows it"
    with pytest.raises(queue.Empty):
        browser.take(SILENCE)
    assert browser.faults == []


def opens_with(trait: str, opened: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those of the widgets that have this trait."""
    return [content for content in opened if trait in content["data"].get("state", {})]
