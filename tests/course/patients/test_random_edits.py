"""Whatever a learner makes of a loop ends in words: 200 random edits, and the worst that one can write."""

from __future__ import annotations

import random
import re
import time

import pytest
import torch

from gradlab.course.patients.case import patient_case, patient_names
from gradlab.course.patients.run_loop import Limits, loop_of, run_loop

LIMITS = Limits(updates=12, seconds=3.0)
PIECES = [
    "(", ")", ":", "\n", "    ", "0", "1e9", "None", "loss", "model", "optimizer", "for x in y:", "while True:",
    "while True: pass", "try:", "except BaseException: pass", "return", "yield", "lambda:", "del model", "loss = 3",
    "optimizer.zero_grad()", "optimizer.step()", "loss.backward()", "model.eval()", "x = x.double()", "y = y[:1]",
    "torch.set_grad_enabled(False)", "print(loss)", "exit()", "import os", "[]", "@", "\t", "'", "#", "\0", "async",
    "1/0", "assert False", "with torch.no_grad():", "model = None", "batches.clear()", "optimizer.param_groups.clear()",
    "raise KeyError", "input()", "torch.manual_seed(3)", "raise SystemExit", "torch.set_default_dtype(torch.float64)",
]  # fmt: skip


def random_edit(rng: random.Random, text: str) -> str:
    """Change a text in one to three places, by letters, words or lines."""
    for _ in range(rng.randint(1, 3)):
        lines = text.split("\n")
        at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        place = rng.randrange(len(text) + 1)
        indent = re.match(" *", lines[at])[0]
        way = rng.randrange(6)
        if way == 0:
            text = text[:place] + text[place + rng.randint(1, 12) :]
        elif way == 1:
            text = text[:place] + rng.choice(PIECES) + text[place:]
        elif way == 2:
            lines[at], lines[other] = lines[other], lines[at]
            text = "\n".join(lines)
        elif way == 3:
            del lines[at]
            text = "\n".join(lines) or "pass"
        elif way == 4:
            lines.insert(at, indent + rng.choice(PIECES))
            text = "\n".join(lines)
        else:
            words = re.findall(r"\w+", text)
            one, two = rng.choice(words), rng.choice(words)
            text = re.sub(rf"\b{re.escape(one)}\b", two, text, count=1)
    return text


def state() -> tuple[object, ...]:
    return (
        torch.is_grad_enabled(),
        torch.get_default_dtype(),
        torch.autograd.backward,
        torch.optim.Optimizer.__init__,
        torch.nn.utils.clip_grad_norm_,
        torch.amp.GradScaler.scale,
        len(torch.nn.modules.module._global_forward_pre_hooks),
        tuple(torch.get_rng_state().tolist()[:9]),
    )


@pytest.mark.parametrize("block", range(20))
def test_two_hundred_random_edits_end_in_words(block: int) -> None:
    torch.set_num_threads(1)
    rng = random.Random(block)
    before = state()
    for _ in range(10):
        case = patient_case(rng.choice(patient_names()))
        text = random_edit(rng, case.sick)
        began = time.monotonic()
        outcome = run_loop(case.loop(text), LIMITS)
        assert time.monotonic() - began < 20
        assert "Traceback" not in outcome.trouble
        assert 0 <= outcome.line <= max(1, len(text.splitlines()))
        assert state() == before, text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("for x in y", "Line 1 is not valid Python"),
        ("while True: pass", "stopped after 1 seconds"),
        ("while True:\n    try:\n        1 / 0\n    except BaseException:\n        pass", "stopped after 1 seconds"),
        ("try:\n    while True: pass\nexcept BaseException:\n    pass", "stopped after 1 seconds"),
        ("[x for x in iter(int, 1)]", "stopped after 1 seconds"),
        ("sum(x for x in iter(int, 1))", "stopped after 1 seconds"),
        ("def f():\n    return f()\nf()", "RecursionError"),
        ("import time\ntime.sleep(60)", "stopped after 1 seconds"),
        ("foo()", "line 1 with NameError: name 'foo' is not defined"),
        ("x = 1\n1 / 0", "line 2 with ZeroDivisionError"),
        ("exit(3)", "exit"),
        ("import sys\nsys.exit()", "exit"),
        ("input()", "cannot ask for input"),
        ("(" * 300 + ")" * 300, "not valid Python"),
        ("torch.zeros(10**15)", "RuntimeError"),
        ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "line 3 with E"),
        ("raise KeyboardInterrupt", None),
    ],
)
def test_the_worst_ends_in_words(text: str, words: str | None) -> None:
    loop = loop_of("pass\n", {})
    if words is None:  # Ctrl-C stays what it is
        with pytest.raises(KeyboardInterrupt):
            run_loop(loop, Limits(seconds=1.0), text)
        return
    assert words in run_loop(loop, Limits(seconds=1.0), text).trouble


def test_prints_are_kept_and_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run_loop(loop_of("pass\n", {}), Limits(seconds=1.0), "for i in range(10**5): print(i)")
    assert outcome.printed.startswith("0\n1\n2\n")
    assert len(outcome.printed) <= 4_000
    assert capsys.readouterr().out == ""
