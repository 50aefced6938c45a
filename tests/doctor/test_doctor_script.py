"""``python -m gradlab doctor``: any script, any end, a clear word, and never a stack of the doctor's own."""

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


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Write a script of some text and return its path."""
    monkeypatch.chdir(tmp_path)
    state = [*sys.argv], [*sys.path]

    def write(text: str, name: str = "train.py") -> str:
        Path(name).write_text(text)
        return name

    yield write
    assert ([*sys.argv], [*sys.path]) == state


OURS = str(Path(gradlab.__file__).parent) + os.sep  # a checkout may well lie in a folder of that name, .venv and all


def doctor(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["doctor", *arguments])
    out, err = capfd.readouterr()
    assert not [line for line in err.splitlines() if "File" in line and OURS in line], err
    assert "runpy" not in err
    return code, out, err


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the doctor in a process of its own."""
    asked = [sys.executable, "-m", "gradlab", "doctor", *arguments]
    return subprocess.run(asked, capture_output=True, text=True, timeout=300, check=False)


def test_a_clean_script(script, capfd):
    assert doctor(capfd, script(HEALTHY)) == (CLEAN, f"\n{FINE}\n", "")


def test_a_script_with_a_mistake(script, capfd):
    code, out, err = doctor(capfd, script(FORGETFUL))
    assert (code, err) == (FINDINGS, "")
    assert WRONG + "train.py:8" in out


def test_json_is_alone_on_standard_output(script, capfd):
    code, out, err = doctor(capfd, "--json", script("print('hello')" + FORGETFUL + "print('bye')"))
    (finding,) = json.loads(out)["findings"]
    assert code == FINDINGS
    assert finding["code"] == "missing-zero-grad"
    assert finding["severity"] == "error"
    assert finding["line"] == 8
    assert Path(finding["file"]).name == "train.py"
    known = {"code", "severity", "message", "evidence", "file", "line", "fix", "lesson", "cause", "excerpt"}
    assert set(finding) == known
    assert err.splitlines() == ["hello", "bye"]


def test_json_is_json_also_for_a_script_that_fails_or_does_nothing(script, capfd):
    for text, expected in (("1 / 0", NOT_RUN), ("", NOT_RUN), ("raise SystemExit(3)", NOT_RUN), ("x = (", NOT_RUN)):
        code, out, _ = doctor(capfd, "--json", script(text))
        assert code == expected
        assert json.loads(out)["findings"] == []


def test_a_script_gets_its_arguments_and_its_name_and_the_modules_beside_it(script, capfd):
    script("value = 7", "beside.py")
    text = "import sys, beside\nprint(sys.argv, __name__, beside.value, __file__, sys.path[0])"
    code, out, _ = doctor(capfd, script(text), "--lr", "0.1", "--json", "-h")
    sys.modules.pop("beside")
    assert code == NOT_RUN  # nothing was trained
    assert f"['train.py', '--lr', '0.1', '--json', '-h'] __main__ 7 {Path('train.py').absolute()} {Path.cwd()}" in out


@pytest.mark.parametrize(("path", "said"), [("none.py", "no such file"), (".", "a folder")])
def test_a_script_that_is_not_there(path, said, script, capfd):
    code, out, err = doctor(capfd, path)
    assert (code, out) == (NOT_RUN, "")
    assert len(err.splitlines()) == 1
    assert path in err
    assert said in err


def test_no_script_at_all(capfd):
    with pytest.raises(SystemExit) as ended:
        main(["doctor"])
    assert ended.value.code == NOT_RUN
    assert "script" in capfd.readouterr().err


def test_a_script_that_raises_shows_its_own_stack_alone(script, capfd):
    text = "import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return x / 0\nM()(1)\n"
    code, out, err = doctor(capfd, script(text))
    assert code == NOT_RUN
    assert "ZeroDivisionError" in err
    assert 'train.py", line 5' in err
    assert 'train.py", line 4' in err
    assert "Nothing was trained" in out


def test_a_script_that_raises_after_a_mistake_is_still_judged(script, capfd):
    code, out, err = doctor(capfd, script(FORGETFUL + "raise ValueError('late')"))
    assert code == FINDINGS
    assert "late" in err
    assert WRONG in out


def test_an_error_of_pytorch_is_explained(script, capfd):
    code, out, err = doctor(capfd, script(HEALTHY + "torch.ones(2).sum().backward()"))
    assert code == FINDINGS
    assert "error: graph-broken  at train.py:10" in out
    assert "does not require grad" in err


def test_a_script_that_is_no_python(script, capfd):
    code, _, err = doctor(capfd, script("for x in\n    pass"))
    assert code == NOT_RUN
    assert "SyntaxError" in err
    assert 'train.py", line 1' in err
    Path("train.py").write_bytes(b"\x00\xff\xfe")
    assert doctor(capfd, "train.py")[0] == NOT_RUN
    assert doctor(capfd, script("", "empty.py"))[0] == NOT_RUN


@pytest.mark.parametrize(("text", "expected"), [("", CLEAN), ("0", CLEAN), ("3", NOT_RUN), ("'stop'", NOT_RUN)])
def test_a_script_that_exits(text, expected, script, capfd):
    code, out, err = doctor(capfd, script(HEALTHY + f"import sys\nsys.exit({text})"))
    assert code == expected
    assert FINE in out
    assert err == ("stop\n" if "stop" in text else "")


def test_a_chain_of_errors_shows_no_frame_of_ours(script, capfd):
    text = """
import torch
class M(torch.nn.Module):
    def forward(self, x):
        return x / 0
try:
    M()(1)
except ZeroDivisionError as error:
    raise ValueError("second") from error
"""
    code, _, err = doctor(capfd, script(text))
    assert code == NOT_RUN
    assert "second" in err
    assert "ZeroDivisionError" in err


@pytest.mark.parametrize(
    ("number", "said"), [(signal.SIGINT, "was interrupted"), (signal.SIGTERM, "was ended by SIGTERM")]
)
def test_a_signal_ends_the_script_and_not_the_report(number, said, script, capfd):
    code, out, err = doctor(
        capfd, script(FORGETFUL + f"import os, time\nos.kill(os.getpid(), {int(number)})\ntime.sleep(60)")
    )
    assert code == FINDINGS
    assert WRONG in out
    assert err == f"gradlab doctor: the script {said}\n"


def test_a_script_that_starts_processes_of_its_own_and_saves_at_exit(script):
    text = """
import atexit, multiprocessing, pickle

def square(x):
    return x * x

class Kept:
    def __init__(self):
        self.value = 3

if __name__ == "__main__":
    assert pickle.loads(pickle.dumps(Kept())).value == 3
    atexit.register(lambda: print(pickle.dumps(Kept())))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(sum(pool.map(square, range(4))))
"""
    done = command(script(text))
    assert done.stdout.startswith("14\n"), done.stderr
    assert "__main__" in done.stdout.splitlines()[-1]
    assert (done.returncode, done.stderr) == (NOT_RUN, "")  # nothing was trained
