"""The owner of a file, and the line of the user's code that messages name."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import FrameType

import pytest
import torch

import gradlab
from gradlab._frames import Owner, calling_and_innermost_frame, code_owner, user_frame

OURS, LIBRARY, USER = Owner.OURS, Owner.LIBRARY, Owner.USER


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        (torch.__file__, OURS),
        (gradlab.__file__, OURS),
        ("<frozen importlib._bootstrap>", OURS),
        (json.__file__, LIBRARY),
        (pytest.__file__, LIBRARY),
        (__file__, USER),
        (gradlab.__file__.replace("gradlab/__init__", "gradlab_loops/train"), USER),
        ("/anywhere/ipykernel_7/1234.py", USER),
        ("<ipython-input-1>", USER),
        ("<loop 3>", USER),
    ],
)
def test_a_file_has_one_owner(file: str, owner: Owner) -> None:
    assert code_owner(file) is owner


def called(files: tuple[str, ...], inspect: Callable[[FrameType], object]) -> object:
    """Return ``inspect(frame)`` in the innermost of functions in these files, each of which calls the next."""
    inner = lambda: inspect(sys._getframe(1))  # noqa: E731
    for file in reversed(files):
        names = {"inner": inner}
        exec(compile("def outer():\n    return inner()", file, "exec"), names)
        inner = names["outer"]
    return inner()


READER, OTHER, PYTORCH = "/a/train.py", "/x/site-packages/fast/loop.py", torch.__file__


@pytest.mark.parametrize(
    ("files", "innermost", "caller"),
    [
        ((READER, PYTORCH), READER, READER),
        ((READER, OTHER, PYTORCH), READER, READER),
        (("/a/main.py", PYTORCH, READER, PYTORCH), READER, "/a/main.py"),  # a hook, or a forward
        (("/a/main.py", READER), READER, READER),
    ],
)
def test_the_readers_line_is_the_innermost_one(files: tuple[str, ...], innermost: str, caller: str) -> None:
    here = sys._getframe()
    assert called(files, lambda frame: user_frame(frame).f_code.co_filename) == innermost
    assert called(files, lambda frame: calling_and_innermost_frame(frame, here)[0].f_code.co_filename) == caller
    on_autograds_thread = called(files, lambda frame: calling_and_innermost_frame(frame, None))
    assert on_autograds_thread == (None, None)
