"""Deno, which runs, checks and tests the front end without a browser."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FRONT = ROOT / "gradlab" / "front"
TESTS = ROOT / "tests" / "front"


def deno(*arguments: Any, text: str | None = None) -> str:
    """Run deno with the settings of the front end; fail with its output."""
    binary = Path(sys.prefix) / "bin" / "deno"
    command = [str(binary) if binary.exists() else shutil.which("deno") or "deno"]
    command += [str(argument) for argument in arguments]
    result = subprocess.run(
        [*command[:2], f"--config={FRONT / 'deno.json'}", *command[2:]],
        input=text,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-6000:]
    return result.stdout
