"""A folder for the files that a notebook writes, which goes when its kernel ends."""

from __future__ import annotations

import atexit
import os
import tempfile
from pathlib import Path


def work_in_temporary_folder() -> None:
    """Make a folder and work in it until this Python ends, which removes it."""
    folder, before = tempfile.TemporaryDirectory(prefix="gradlab-", ignore_cleanup_errors=True), Path.cwd()

    def leave() -> None:
        os.chdir(before)  # Windows keeps a folder that somebody works in
        folder.cleanup()

    os.chdir(folder.name)
    atexit.register(leave)
