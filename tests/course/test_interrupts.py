"""The kernel's Interrupt ends a learner's endless loop in a cell that checks an answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernels import LIMIT_S, Kernel, started_kernel

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with started_kernel() as kernel:
        kernel.cell("import torch\nfrom pathlib import Path\nfrom gradlab.course import exercise")
        yield kernel


def interrupt_once_there(kernel: Kernel, started: Path) -> None:
    end = time.monotonic() + LIMIT_S
    while not started.exists():
        assert time.monotonic() < end, "the endless loop has not begun"
        time.sleep(0.01)
    kernel.manager.interrupt_kernel()


def test_an_endless_answer_is_ended(kernel: Kernel, tmp_path: Path) -> None:
    started = tmp_path / "started"
    kernel.cell(
        "def endless(*args):\n    torch.set_grad_enabled(False)\n    torch.manual_seed(1)\n"
        f"    Path({str(started)!r}).touch()\n    while True:\n        pass\n"
        "torch.manual_seed(7)"
    )
    cell = kernel.begin("exercise('windows_of_four').check(endless)")
    interrupt_once_there(kernel, started)
    assert kernel.wait(cell)["ename"] == "KeyboardInterrupt"
    state = "(torch.is_grad_enabled(), torch.equal(torch.rand(3), torch.manual_seed(7) and torch.rand(3)))"
    assert kernel.value(state) == "(True, True)"
    assert kernel.value("exercise('windows_of_four').check(None).state") == "'not attempted'"
