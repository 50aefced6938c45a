"""One-line helpers of notebooks, each against PyTorch or the shell."""

from __future__ import annotations

import pytest
import torch

from gradlab.course import attempt, doctor_command


def test_an_attempt_tells_the_first_sentence_of_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls: list[int] = []
    attempt(torch.zeros(2, requires_grad=True).backward)
    attempt(torch.optim.SGD, [torch.zeros(1, requires_grad=True) * 2])
    attempt(calls.append, 3)
    assert capsys.readouterr().out.splitlines() == [
        "RuntimeError: grad can be implicitly created only for scalar outputs",
        "ValueError: can't optimize a non-leaf Tensor",
        "no error",
    ]
    assert calls == [3]
    with pytest.raises(TypeError):
        attempt(len, 3)


SCRIPT = """import torch
w = torch.nn.Parameter(torch.zeros(2))
optimizer = torch.optim.SGD([w], lr=0.1)
for _ in range(10):
    (w - 1).square().sum().backward()
    optimizer.step()
"""


def test_the_doctors_command_does_what_the_shell_would() -> None:
    done = doctor_command(SCRIPT)
    assert done.code == 1
    assert "missing-zero-grad  at train.py:6" in done.printed
    assert doctor_command(SCRIPT.replace("range(10):", "range(10):\n    optimizer.zero_grad()")).code == 0
    stopped = doctor_command("import torch\n1 / 0\n")
    assert (stopped.code, "ZeroDivisionError" in repr(stopped)) == (2, True)
