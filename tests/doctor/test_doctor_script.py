"""``python -m gradlab doctor``: any script, any end, a clear message, and no traceback of the doctor's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import gradlab
from gradlab.__main__ import main

CLEAN, FINDINGS, NOT_RUN = 0, 1, 2
HEALTHY = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""
FORGETFUL = HEALTHY.replace("    optimizer.zero_grad()\n", "")
FORGETS = "missing-zero-grad"
FINE, WRONG = "No findings. Watched 6 backward passes, 6 updates of optimizer (SGD).", "error: missing-zero-grad  at "
BROKEN = "import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return x / 0\n"
ENDS = "import os, time\nos.kill(os.getpid(), {})\ntime.sleep(60)"
STARTS_AND_SAVES = """
import atexit, multiprocessing, pickle

def square(x):
    return x * x

class Pickled:
    def __init__(self):
        self.value = 3

if __name__ == "__main__":
    assert pickle.loads(pickle.dumps(Pickled())).value == 3
    atexit.register(lambda: print(pickle.dumps(Pickled())))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(sum(pool.map(square, range(4))))
"""
OURS = str(Path(gradlab.__file__).parent) + os.sep  # a checkout may be in a folder of that name, with its .venv


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Write a script and return its path."""
    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have jobs in the background ignore it
    state = [*sys.argv], [*sys.path]

    def write(text: str, name: str = "train.py") -> str:
        Path(name).write_text(text)
        return name

    yield write
    signal.signal(signal.SIGINT, before)
    assert ([*sys.argv], [*sys.path]) == state


def doctor(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["doctor", *arguments])
    out, err = capfd.readouterr()
    assert not [line for line in err.splitlines() if "File" in line and OURS in line], err
    assert "runpy" not in err
    return code, out, err


@pytest.mark.parametrize(
    ("text", "expected", "printed", "errors"),
    [
        pytest.param(HEALTHY, CLEAN, [FINE], [], id="clean"),
        pytest.param(FORGETFUL, FINDINGS, [f"{WRONG}train.py:8"], [], id="a mistake"),
        pytest.param("import torch", NOT_RUN, ["Nothing was trained"], [], id="no training"),
        pytest.param(
            f"{BROKEN}M()(1)\n",
            NOT_RUN,
            ["The block ended with ZeroDivisionError in line 4 (division by zero); until then: no backward pass"],
            ["ZeroDivisionError", 'train.py", line 4', 'train.py", line 5'],
            id="an error",
        ),
        pytest.param(f"{FORGETFUL}raise ValueError('late')", FINDINGS, [WRONG], ["late"], id="an error at the end"),
        pytest.param(
            f"{HEALTHY}torch.ones(2).sum().backward()",
            FINDINGS,
            ["error: graph-broken  at train.py:10"],
            ["does not require grad"],
            id="an error of PyTorch",
        ),
        pytest.param("for x in\n    pass", NOT_RUN, [], ["SyntaxError", 'train.py", line 1'], id="no Python"),
        pytest.param(f"{HEALTHY}raise SystemExit(0)", CLEAN, [FINE], [], id="exit 0"),
        pytest.param(f"{HEALTHY}raise SystemExit(7)", NOT_RUN, [FINE, "exit code 7"], [], id="exit 7"),
        pytest.param(f"{HEALTHY}raise SystemExit('stop')", NOT_RUN, [FINE], ["stop"], id="exit with a word"),
        pytest.param(
            FORGETFUL + ENDS.format(int(signal.SIGINT)),
            FINDINGS,
            [WRONG],
            ["gradlab doctor: the script was interrupted"],
            id="Ctrl-C",
        ),
        pytest.param(
            FORGETFUL + ENDS.format(int(signal.SIGTERM)),
            FINDINGS,
            [WRONG],
            ["gradlab doctor: the script was ended by SIGTERM"],
            id="SIGTERM",
        ),
    ],
)
def test_any_end_of_a_script_is_told(text, expected, printed, errors, script, capfd):
    code, out, err = doctor(capfd, script(text))
    assert code == expected
    assert all(part in out for part in printed), out
    assert all(part in err for part in errors), err
    assert bool(err) == bool(errors)
    code, out, _ = doctor(capfd, "--json", script(text))
    assert code == expected
    assert bool(json.loads(out)["findings"]) == (expected == FINDINGS)


def test_json_is_alone_on_standard_output(script, capfd):
    code, out, err = doctor(capfd, "--json", script("print('hello')" + FORGETFUL + "print('bye')"))
    (finding,) = json.loads(out)["findings"]
    assert code == FINDINGS
    assert (finding["code"], finding["severity"], finding["line"]) == (FORGETS, "error", 8)
    assert Path(finding["file"]).name == "train.py"
    keys = {"code", "severity", "message", "evidence", "file", "line", "fix", "fix_is_line", "lesson", "cause"}
    assert set(finding) == keys | {"excerpt"}
    assert err.splitlines() == ["hello", "bye"]


def test_a_script_gets_its_arguments_and_modules_beside_it(script, capfd):
    script("value = 7", "beside.py")
    text = "import sys, beside\nprint(sys.argv, __name__, beside.value, __file__, sys.path[0])"
    code, out, _ = doctor(capfd, script(text), "--lr", "0.1", "--json", "-h")
    sys.modules.pop("beside")
    assert code == NOT_RUN  # nothing was trained
    assert f"['train.py', '--lr', '0.1', '--json', '-h'] __main__ 7 {Path('train.py').absolute()} {Path.cwd()}" in out


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (["none.py"], ["none.py", "no such file"]),
        (["."], [".", "a folder"]),
        (["-m", "nothing.like.this"], ["nothing"]),
        (["-m", "sys"], ["sys"]),
        (["-m", "json.nothing"], ["json"]),
        (["ls"], ["ls", "-m gradlab doctor train.py"]),
        (["--updates=0", "train.py"], ["--updates"]),
        (["--seconds=-1.0", "train.py"], ["--seconds"]),
    ],
    ids=" ".join,
)
def test_what_cannot_be_run_is_told_in_one_line(arguments, texts, script, capfd):
    script(HEALTHY)
    code, out, err = doctor(capfd, *arguments)
    assert (code, out) == (NOT_RUN, "")
    assert len(err.splitlines()) == 1
    assert all(text in err for text in texts), err


@pytest.mark.slow
def test_a_script_may_start_processes_and_save_at_exit(script):
    command = [sys.executable, "-m", "gradlab", "doctor", script(STARTS_AND_SAVES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.startswith("14\n"), done.stderr
    assert "__main__" in done.stdout.splitlines()[-1]
    assert (done.returncode, done.stderr) == (NOT_RUN, "")  # nothing was trained
