"""Whatever a learner makes of a loop ends in words: a hundred random edits, and the worst that one can write."""

from __future__ import annotations

import os
import random
import re

import pytest
import torch
from torch.optim.optimizer import _global_optimizer_post_hooks

from gradlab.course.patients.case import patient_case, patient_names
from gradlab.course.patients.run_loop import loop_of, run_loop

PIECES = [
    "(", ")", ":", "\n", "    ", "0", "1e9", "None", "loss", "model", "optimizer", "for x in y:", "try:",
    "except BaseException: pass", "return", "yield", "lambda:", "del model", "loss = 3", "import os", "[]", "@", "\t",
    "optimizer.zero_grad()", "optimizer.step()", "loss.backward()", "model.eval()", "x = x.double()", "y = y[:1]",
    "torch.set_grad_enabled(False)", "print(loss)", "exit()", "'", "#", "\0", "async",
    "1/0", "assert False", "with torch.no_grad():", "model = None", "batches.clear()", "optimizer.param_groups.clear()",
    "raise KeyError", "input()", "torch.manual_seed(3)", "raise SystemExit", "torch.set_default_dtype(torch.float64)",
]  # fmt: skip


def random_edit(rng: random.Random, text: str) -> str:
    """Change a text in one to three places, by letters, words or lines."""
    for _ in range(rng.randint(1, 3)):
        lines = text.split("\n")
        at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        place = rng.randrange(len(text) + 1)
        way = rng.randrange(6)
        if way == 0:
            text = text[:place] + text[place + rng.randint(1, 12) :]
        elif way == 1:
            text = text[:place] + rng.choice(PIECES) + text[place:]
        elif way == 2:
            one, two = rng.choices(re.findall(r"\w+", text), k=2)
            text = re.sub(rf"\b{re.escape(one)}\b", two, text, count=1)
        else:
            if way == 3:
                lines[at], lines[other] = lines[other], lines[at]
            elif way == 4:
                del lines[at]
            else:
                lines.insert(at, re.match(" *", lines[at])[0] + rng.choice(PIECES))
            text = "\n".join(lines) or "pass"
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
        len(_global_optimizer_post_hooks),
        tuple(torch.get_rng_state().tolist()[:9]),
    )


@pytest.mark.parametrize("block", range(10 if os.environ.get("GRADLAB_NIGHTLY") else 3))
def test_random_edits_end_in_words(block: int) -> None:
    torch.set_num_threads(1)
    rng = random.Random(block)
    before = state()
    for _ in range(10):
        case = patient_case(rng.choice(patient_names()))
        text = random_edit(rng, case.sick)
        outcome = run_loop(case.loop(text), max_updates=12)
        assert "Traceback" not in outcome.trouble
        assert "failed" not in outcome.watched
        assert 0 <= outcome.line <= max(1, len(text.splitlines()))
        assert state() == before, text


SETUP = "w = nn.Parameter(torch.ones(1))\noptimizer = torch.optim.SGD([w], 0.1)\n"
UPDATE = "w.sum().backward(); optimizer.step()"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{SETUP}while True: {UPDATE}", "It was stopped after 12 updates."),
        (f"{SETUP}try:\n    while True: {UPDATE}\nexcept BaseException: pass", "It was stopped after 12 updates."),
        ("for x in y", "Line 1 is not valid Python"),
        ("def f():\n    return f()\nf()", "RecursionError"),
        ("foo()", "line 1 with NameError: name 'foo' is not defined"),
        ("x = 1\n1 / 0", "line 2 with ZeroDivisionError"),
        ("exit(3)", "exit"),
        ("import sys\nsys.exit()", "exit"),
        ("input()", "cannot ask for input"),
        ("(" * 300 + ")" * 300, "not valid Python"),
        ("torch.zeros(10**15)", "RuntimeError"),
        ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "line 3 with E: no message"),
        ("class E(BaseException): pass\nraise E('own')", "line 2 with E: own"),
    ],
)
def test_the_worst_ends_in_words(text: str, words: str) -> None:
    assert words in run_loop(loop_of("pass\n", {}), text, max_updates=12).trouble


def test_ctrl_c_stays_what_it_is_and_prints_are_kept_and_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    loop = loop_of("for i in range(10**5): print(i)", {})
    outcome = run_loop(loop)
    assert outcome.printed.startswith("0\n1\n2\n")
    assert len(outcome.printed) <= 4_000
    with pytest.raises(KeyboardInterrupt):
        run_loop(loop, "raise KeyboardInterrupt")
    assert capsys.readouterr().out == ""
