"""The whole site, built once for each content of the repository and kept in pytest's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch
from filelock import FileLock
from gradlab_site.documents import DOCUMENTS

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE = 120.0
"""Seconds without a step until a build counts as stuck: on a busy machine the whole of it may take very long."""


def built_site(cache: Path) -> Path:
    """Return the site of this content, written by the command of the README, which finds nothing wrong with it."""
    out = cache / _content_hash()
    with FileLock(cache / "lock"):
        if not out.exists():
            for former in cache.glob("*/"):
                shutil.rmtree(former)
            command = [sys.executable, "-m", "gradlab", "site", str(out), "--address", "https://github.com/YOU/NAME"]
            code, log = run_while_it_steps(command, cache / "log", _PATIENCE)
            assert code == 0, log[-3000:]
    return out


def run_while_it_steps(command: Sequence[str], log: Path, patience: float) -> tuple[int, str]:
    """Run a command in a session of its own; return its exit code and what it wrote.

    It and all of its group are killed at the end, and when it has written nothing for ``patience`` seconds.
    """
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=log.parent, env=environment, stdout=file, stderr=file, start_new_session=True
        )
        try:
            size, until = 0, time.monotonic() + patience
            while process.poll() is None and time.monotonic() < until:
                time.sleep(0.2)
                if size != (size := log.stat().st_size):
                    until = time.monotonic() + patience
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.wait(), log.read_text(encoding="utf-8", errors="replace")


def _content_hash() -> str:
    files = [*ROOT.glob("*"), *(ROOT / document.file for document in DOCUMENTS)]
    files += [path for folder in ("gradlab", "site", "notebooks") for path in (ROOT / folder).rglob("*")]
    digest = hashlib.sha256(f"{sys.version} {torch.__version__}".encode())
    for path in sorted({path for path in files if path.is_file() and path.suffix != ".pyc"}):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]
