"""The files that belong to the project, in a clone and in an unpacked archive."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GENERATED = {
    ".git",
    "PKG-INFO",
    ".venv",
    "__pycache__",
    "build",
    "dist",
    "node_modules",
    "shared",
    "test-results",
    ".hypothesis",
}


def tree() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every text file that belongs to the project."""
    git = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = git.stdout.split("\0") if git.returncode == 0 else []
    # Outside a clone (in an unpacked archive) all files are the project's except generated ones.
    for path in [ROOT / name for name in names if name] or sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        generated = any(part in GENERATED or part.endswith(("_cache", ".egg-info", "_checkpoints")) for part in parts)
        if generated or not path.is_file():
            continue
        try:
            yield "/".join(parts), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
