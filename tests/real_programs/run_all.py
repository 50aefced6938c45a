"""Training programs of public packages under the doctor: no false alarm, and the mistakes put into them are found.

``python tests/real_programs/run_all.py`` runs each program of this folder with and without the doctor, and then each
mistake of mistakes.toml, which is one edit of one of these programs. It prints a table of each. The exit code is 1 if
a program got a finding above a hint, lost its exit code 0 or changed its weights, or if more mistakes went unnoticed
than ``--missed`` allows.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAMS = {
    path.stem: path
    for path in sorted(HERE.glob("*.py"))
    if "digest:" in path.read_text(encoding="utf-8") and path != Path(__file__).resolve()
}
SECONDS = 300
"""For one run of one program."""


@dataclass(frozen=True)
class Mistake:
    """One kind of mistake: an edit of a program, and the codes that are right for it."""

    name: str
    program: str
    codes: tuple[str, ...]
    edits: tuple[tuple[str, str], ...]

    def source(self) -> str:
        """Return the program with the mistake; raises ValueError where the text to replace is not there once."""
        text = PROGRAMS[self.program].read_text(encoding="utf-8")
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(f"{self.name}: {old!r} stands {text.count(old)} times in {self.program}.py, not once")
            text = text.replace(old, new)
        return text


@dataclass(frozen=True)
class Outcome:
    """How a program ended under the doctor."""

    code: int
    digest: str
    findings: tuple[dict[str, object], ...]
    words: str
    """The end of what it wrote to standard error."""

    @property
    def grave(self) -> list[str]:
        """The findings above a hint, in a few words each."""
        return [f"{one['code']}:{one['line']}" for one in self.findings if one["severity"] != "hint"]


def mistakes() -> list[Mistake]:
    """Return the mistakes of mistakes.toml."""
    rows = tomllib.loads((HERE / "mistakes.toml").read_text(encoding="utf-8"))["mistake"]
    return [
        Mistake(row["name"], row["program"], tuple(row["codes"]), tuple((old, new) for old, new in row["edits"]))
        for row in rows
    ]


def can_run(program: str) -> bool:
    """Are the packages that a program imports there?"""
    text = PROGRAMS[program].read_text(encoding="utf-8")
    names = {name.split(".")[0] for name in re.findall(r"^(?:import|from) ([\w.]+)", text, re.MULTILINE)}
    return all(importlib.util.find_spec(name) for name in names)


def bare(path: Path) -> str:
    """Run a program as it is and return its digest."""
    return _digest(_python(str(path)).stdout)


def watched(path: Path) -> Outcome:
    """Run a program under the doctor."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        done = _python("-m", "gradlab", "doctor", "--json", "--output", str(report), str(path))
        findings = json.loads(report.read_text(encoding="utf-8"))["findings"] if report.exists() else []
    return Outcome(done.returncode, _digest(done.stdout), tuple(findings), done.stderr[-600:])


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-W", "ignore", *arguments]
    try:
        return subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -1, "", f"not done in {SECONDS} s")


def _digest(printed: str) -> str:
    return next((line for line in printed.splitlines() if line.startswith("digest:")), "")


def judge_program(name: str) -> tuple[bool, str]:
    """Run a program with and without the doctor; return whether all is well, and a line of the table."""
    alone, outcome = bare(PROGRAMS[name]), watched(PROGRAMS[name])
    wrong = [f"false alarm {one}" for one in outcome.grave]
    if not alone or alone != outcome.digest:
        wrong.append("other weights" if alone and outcome.digest else f"no digest: {outcome.words.strip()[-200:]}")
    if outcome.code != 0:
        wrong.append(f"exit code {outcome.code}")
    hints = [f"{one['code']}:{one['line']}" for one in outcome.findings if one["severity"] == "hint"]
    return not wrong, f"{name:32} {'; '.join(wrong) or 'right'}{'  hints: ' + ', '.join(hints) if hints else ''}"


def judge_mistake(mistake: Mistake) -> tuple[bool, str]:
    """Run a program with a mistake; return whether one of its codes was found, and a line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, PROGRAMS[mistake.program].name)
        path.write_text(mistake.source(), encoding="utf-8")
        outcome = watched(path)
    every = [f"{one['code']}:{one['line']}" for one in outcome.findings]
    found = any(one["code"] in mistake.codes for one in outcome.findings)
    seen = ", ".join(every) or f"nothing, exit code {outcome.code}"
    return found, f"{mistake.name:44} {mistake.program:26} {'found' if found else 'NOT FOUND'}  {seen}"


def main() -> int:
    """Run what is asked for and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="programs or mistakes by name; all of them by default")
    parser.add_argument("--missed", type=int, default=2, help="mistakes that may go unnoticed; 2 by default")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time; 2 by default")
    parser.add_argument("--allow-missing", action="store_true", help="leave out programs whose packages are not there")
    options = parser.parse_args()
    programs = [name for name in PROGRAMS if not options.names or name in options.names]
    wrong = [one for one in mistakes() if not options.names or one.name in options.names]
    if options.allow_missing:
        programs, wrong = [name for name in programs if can_run(name)], [one for one in wrong if can_run(one.program)]
    with ThreadPoolExecutor(options.jobs) as pool:
        right = _table("Programs", pool.map(judge_program, programs))
        found = _table("Mistakes", pool.map(judge_mistake, wrong))
    print(f"\n{right} of {len(programs)} programs right, {found} of {len(wrong)} mistakes found")
    return 0 if right == len(programs) and len(wrong) - found <= options.missed else 1


def _table(head: str, rows: object) -> int:
    print(f"\n{head}")
    good = 0
    for well, line in rows:  # type: ignore[attr-defined]  # what map returns
        good += well
        print(line, flush=True)
    return good


if __name__ == "__main__":
    raise SystemExit(main())
