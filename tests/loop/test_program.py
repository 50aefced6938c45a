"""A program runs statement by statement, and leaves the names that plain ``exec`` of the same text leaves."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch

from gradlab import Recipe
from gradlab.loop.program import LoopError, Program, Statement

PROGRAMS = {
    "nothing": "",
    "nested loops": """
out = []
for i in range(4):
    for j in range(4):
        if j > i:
            break
        if (i + j) % 2:
            continue
        out.append((i, j))
    else:
        out.append('full')
else:
    out.append('end')
last = (i, j)
""",
    "if elif else": """
seen = []
for k in range(4):
    if k == 0:
        seen.append('zero')
    elif k == 1:
        seen.append('one')
    elif k == 2:
        pass
    else:
        seen.append('more')
""",
    "functions": """
scale = 2
def times(v, *, by=None):
    inner = by or scale
    def deeper(q: int = 1):
        nonlocal inner
        inner += q
        return inner
    return v * deeper()
for i in range(3):
    scale += times(i)
def count():
    global total
    total = scale
count()
square = lambda v: v * scale
value = square(2)
""",
    "annotated": "a: int = 1\nb: float\nfor i in range(2):\n    c: int = i\nclass P: pass\np = P()\np.q: int = 4\n",
    "annotated in blocks": """
import contextlib
with contextlib.nullcontext(4) as held:
    inside: int = held + 1
    def f(z: int = 3) -> int:
        kept: int = z
        return kept
    class K:
        field: int = 6
try:
    tried: str = 'yes'
finally:
    done: bool = True
result = (f(), K.field, K.__annotations__ == {'field': int} or K.__annotations__ == {'field': 'int'})
""",
    "try": """
log = []
for i in range(3):
    try:
        log.append(6 // i)
    except ZeroDivisionError as problem:
        log.append(str(problem))
        continue
    else:
        log.append('fine')
    finally:
        log.append('last')
""",
    "with": """
import contextlib
log = []
@contextlib.contextmanager
def c():
    log.append('in')
    yield 5
    log.append('out')
for i in range(2):
    with c() as v, c() as w:
        total = v + w + i
""",
}


def plain(value: Any) -> Any:
    """A value as something that can be compared between two runs: functions and classes by name and content."""
    if isinstance(value, types.ModuleType):
        return ("module", value.__name__)
    if isinstance(value, type):
        return ("class", value.__name__, sorted(k for k in vars(value) if not k.startswith("__")))
    if callable(value):
        return ("function", getattr(value, "__name__", ""))
    return ("object", vars(value)) if hasattr(value, "__dict__") else value


def names_of(namespace: dict[str, Any]) -> dict[str, Any]:
    return {k: plain(v) for k, v in namespace.items() if not (k.startswith("__") and k.endswith("__"))}


def run(text: str, namespace: dict[str, Any] | None = None) -> tuple[list[Statement], dict[str, Any]]:
    """Run a text to its end; return each stop and the namespace."""
    program = Program(text)
    names = {} if namespace is None else namespace
    stops = [program.statements[i] for i in program.setup(names)]
    stops += [program.statements[i] for i in program.loop(names)]
    return stops, names


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_names_as_exec(name: str) -> None:
    expected: dict[str, Any] = {}
    exec(PROGRAMS[name], expected)
    _, got = run(PROGRAMS[name])
    assert names_of(got) == names_of(expected)
    assert list(names_of(got)) == list(names_of(expected))  # bound in the same order


def test_each_statement_stops_once_after_it_ran() -> None:
    text = "a = 1\nfor i in range(2):\n    a += i\n    if a > 1:\n        b = a\n    else:\n        b = 0\nprint\n"
    program = Program(text)
    names: dict[str, Any] = {}
    assert [program.statements[i].line for i in program.setup(names)] == [1]
    stops = [(program.statements[i].line, names["a"], names.get("b")) for i in program.loop(names)]
    assert stops == [
        *[(2, 1, None), (3, 1, None), (4, 1, None), (7, 1, 0)],
        *[(2, 1, 0), (3, 2, 0), (4, 2, 0), (5, 2, 2)],
        (8, 2, 2),
    ]


def test_a_with_block_is_one_statement_over_all_its_lines() -> None:
    head = "for i in range(2):\n    with torch.autocast('cpu', dtype=torch.bfloat16):\n"
    text = head + "        a = i\n        b = a\n    c = 1\n"
    stops, _ = run(text, {"torch": torch})
    assert [(s.line, s.last_line, s.label) for s in stops] == [(1, 1, "for"), (2, 4, "autocast"), (5, 5, "c")] * 2


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
def test_autocast_and_grad_mode_are_as_outside_at_every_pause(amp: str) -> None:
    model = torch.nn.Linear(2, 1)
    inside = []

    def loss_fn(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        inside.append(torch.is_autocast_enabled("cpu"))
        return torch.nn.functional.mse_loss(output, y)

    batches = [(torch.ones(1, 2), torch.ones(1, 1))] * 3
    names = {"torch": torch, "model": model, "loss_fn": loss_fn, "batches": batches, "device": "cpu", "epochs": 1}
    text = Recipe(amp=amp).source() + "    with torch.no_grad():\n        model(x)\n"
    program = Program(text)
    for part in (program.setup(names), program.loop(names)):
        for _ in part:
            assert not torch.is_autocast_enabled("cpu")
            assert torch.is_grad_enabled()
    assert inside == [True] * 3  # it was on where it should be


# Mistakes

SYNTAX = {
    "no colon": ("a = 1\n\nfor i in range(2)\n    pass\n", 3),
    "return outside": ("for i in range(2):\n    return 1\n", 2),
    "break outside": ("a = 1\nbreak\n", 2),
    "import star": ("a = 1\nfrom math import *\n", 2),
    "tabs and spaces": ("for i in range(2):\n        a = 1\n\tb = 2\n", 3),
}


@pytest.mark.parametrize("name", SYNTAX)
def test_a_syntax_error_names_its_line(name: str) -> None:
    text, line = SYNTAX[name]
    with pytest.raises(LoopError, match=f"^line {line}: .") as caught:
        Program(text)
    assert caught.value.line == line
    assert text.splitlines()[line - 1].strip() in str(caught.value)


@pytest.mark.parametrize("text", ["a = 1\0", "a = '\ud800'", "(" * 500 + ")" * 500, "-" * 50_000 + "1"])
def test_a_text_that_no_parser_takes_is_a_loop_error(text: str) -> None:
    with pytest.raises(LoopError):
        Program(text)


FAILING = {
    "loop": ("for i in range(9):\n    a = 1\n    b = 1 / (3 - i)\n", 3, "ZeroDivisionError: division by zero"),
    "within a with": ("with memoryview(b'x'):\n    a = 1\n    {}['k']\n", 3, "KeyError: 'k'"),
    "called": ("def f():\n    return 1 / 0\nfor i in range(2):\n    f()\n", 4, "ZeroDivisionError"),
    "no words": ("a = 1\nassert a == 2\n", 2, "AssertionError"),
    "two lines": ("a = 1\nraise ValueError('one\\ntwo')\n", 2, "ValueError: one"),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_run_time_error_names_its_line(name: str) -> None:
    text, line, problem = FAILING[name]
    program = Program(text)
    names: dict[str, Any] = {}
    with pytest.raises(Exception, match=r"|.") as caught:
        [*program.setup(names), *program.loop(names)]
    error = program.explain(caught.value)
    assert error.line == line
    assert error.problem.startswith(problem)
    assert str(error).startswith(f"line {line}: {problem}")
    assert "\n" not in str(error)
    assert text.splitlines()[line - 1].strip() in str(error)
