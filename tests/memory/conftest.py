"""Common set-up of the tests of bytes: one thread, and few objects for a Ledger to search."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    """One thread, and no time lost on looking through all that torch's import has left."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
    torch.set_num_threads(threads)
