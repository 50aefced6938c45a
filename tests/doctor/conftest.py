"""The modules beside these tests can be imported however pytest imports the tests; and a folder for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gradlab import _torch

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run programs in; __main__ is put back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    return tmp_path


@pytest.fixture(autouse=True)
def nothing_is_compiled() -> None:
    """Forget what other tests compiled: after torch.compile, the doctor does not trace losses."""
    if _torch.compiled_anything():
        sys.modules["torch._dynamo"].reset()


@pytest.fixture(autouse=True)
def no_mode_is_left() -> Iterator[None]:
    """Fail a test after which a mode of the watch is still on PyTorch's stack: it would see other tests' calls."""
    before = torch._C._len_torch_function_stack()
    yield
    assert torch._C._len_torch_function_stack() == before
