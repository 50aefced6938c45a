"""What belongs to the whole process: one lock, torch's random numbers, and Python's parser.

PyTorch's random generators, the hooks on all modules and the functions that a Ledger or a doctor replaces exist once,
however many Runs and widgets there are. Whoever changes them holds the lock, so that a Lab that plays on one thread and
a cell that trains on another do not draw each other's random numbers.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator
from contextlib import contextmanager

lock = threading.RLock()
"""Held by whoever trains, draws, or reads what is drawn; it may be taken again by the thread that has it."""


@contextmanager
def preserving_rng(*, cuda: bool = False) -> Iterator[None]:
    """Put torch's random numbers back at the end as they were; with ``cuda`` those of all GPUs, too."""
    import torch

    with lock, torch.random.fork_rng(devices=range(torch.cuda.device_count()) if cuda else ()):
        yield


def parse_python(text: str, filename: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a text; SyntaxError and ValueError as from ast.parse.

    Python 3.11 counts for all threads together how deep its parser is, and takes a change of threads for an error
    (python/cpython issue 106905). The lock keeps our own threads apart; IPython parses cells without it.
    """
    with lock:
        for _ in range(9):
            try:
                return ast.parse(text, filename)
            except SystemError:
                continue
        return ast.parse(text, filename)


def seed_torch(seed: int, *, cuda: bool = False) -> None:
    """Seed torch's generator on the CPU, and with ``cuda`` those of all GPUs."""
    import torch

    # Not torch.manual_seed for the CPU alone: it also seeds the GPUs, now or when CUDA starts.
    torch.manual_seed(seed) if cuda else torch.default_generator.manual_seed(seed)
