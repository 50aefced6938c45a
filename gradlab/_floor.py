"""The oldest PyTorch that gradlab works with, and the sentence that people read on an older one.

The version is that of the installed package, so that nothing here imports torch. pip cannot see to it alone: Colab's
set-up cell installs gradlab with ``--no-deps``, to keep the PyTorch that is there.
"""

from __future__ import annotations

import re
import sys

FLOOR = (2, 9)
"""The oldest version on which the tests pass: major and minor. The same is in pyproject.toml."""


class UnsupportedTorchError(ImportError):
    """PyTorch is missing or too old."""


def complaint() -> str | None:
    """Return what is wrong with the installed PyTorch, in a sentence; None if gradlab works with it."""
    oldest = ".".join(map(str, FLOOR))
    version = _installed()
    if version is None:
        return (
            f"gradlab needs PyTorch {oldest} or newer, and none is installed. https://pytorch.org says how to get it."
        )
    numbers = re.match(r"(\d+)\.(\d+)", version)  # a development version such as 2.11.0a0+git counts as 2.11
    if numbers is None or (int(numbers[1]), int(numbers[2])) >= FLOOR:
        return None
    return (
        f"gradlab needs PyTorch {oldest} or newer, and this is PyTorch {version}. "
        f'Install a newer one with: {sys.executable or "python"} -m pip install --upgrade "torch>={oldest}". '
        "Then restart Python (in a notebook, the kernel)."
    )


def require_torch() -> None:
    """Raise ImportError, with one sentence, if PyTorch is missing or too old."""
    wrong = complaint()
    if wrong is not None:
        raise UnsupportedTorchError(wrong)


def check_torch() -> None:
    """Print one sentence if PyTorch is missing or too old for gradlab; print nothing otherwise."""
    wrong = complaint()
    if wrong is not None:
        print(wrong)


def _installed() -> str | None:
    """Return PyTorch's version, of what runs if it is imported already; None if there is no PyTorch."""
    running = getattr(sys.modules.get("torch"), "__version__", None)
    if running is not None:
        return str(running)
    from importlib import metadata, util

    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:  # a build of somebody's own may come without the package's description
        return "unknown" if util.find_spec("torch") is not None else None
