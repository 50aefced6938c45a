"""The processes that a program starts: those of multiprocessing can be watched, too; other Pythons are noted."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from .monkeypatch import Below, MonkeyPatches

_MOST_NOTED = 100
_HELPERS = ("torch.utils.data.", "multiprocessing.managers", "multiprocessing.resource_")
"""Modules whose processes train nothing."""


class ChildProcesses:
    """Listens to what starts processes, for as long as the watch lasts."""

    def __init__(self, follow: Callable[[BaseProcess], Callable[[], None]] | None = None) -> None:
        """``follow(process)`` returns what is to run in a process in the place of its ``run``; None: only note it."""
        self._follow = follow
        self.follows = follow is not None
        """Are they watched, too?"""
        self._process = os.getpid()
        self._patches = MonkeyPatches()
        self.names: list[str] = []
        """Names of the processes of multiprocessing."""
        self.commands: list[str] = []
        """Python programs that were started as commands, each as the command that puts it under the doctor."""

    def start(self) -> None:
        """Begin to listen."""
        self._patches.replace(BaseProcess, "start", self._start)
        self._patches.replace(subprocess.Popen, "__init__", self._popen)

    def stop(self) -> None:
        """Put everything back."""
        self._patches.undo()

    def _start(self, below: Below) -> Any:
        def start(process: BaseProcess) -> None:
            if os.getpid() != self._process or _is_helper(process):
                return below.call(process)
            if len(self.names) < _MOST_NOTED:
                self.names.append(process.name)
            if self._follow is None or "run" in vars(process):
                return below.call(process)
            try:
                run = self._follow(process)
            except OSError:  # no place for a report: the program goes on without
                return below.call(process)
            process.run = run  # type: ignore[method-assign]  # travels with it to a new interpreter
            try:
                return below.call(process)
            finally:
                del process.run

        return start

    def _popen(self, below: Below) -> Any:
        def init(popen: Any, args: Any, *rest: Any, **kwargs: Any) -> None:
            self._note(args)
            below.call(popen, args, *rest, **kwargs)

        return init

    def _note(self, args: Any) -> None:
        try:
            words = shlex.split(args) if isinstance(args, str) else [os.fsdecode(one) for one in args]
            command = command_for_doctor(words)
        except (TypeError, ValueError):  # nothing that we can read; it may still be what the program wants
            return
        if command and command not in self.commands and len(self.commands) < _MOST_NOTED:
            self.commands.append(command)


def command_for_doctor(command: Sequence[str]) -> str:
    """Return the command that runs a Python program under the doctor, "" if ``command`` runs none that it could."""
    program, *arguments = command
    name = Path(program).name
    if name == "torchrun":
        return shlex.join(["gradlab", "doctor", "torchrun", *arguments])
    if program == sys.executable or name.startswith("python"):
        for at, word in enumerate(arguments):  # options of Python's come first
            if word == "-c" or arguments[at : at + 2] in (["-m", "gradlab"], ["-m", "pip"]):
                break
            if word == "-m" or word.endswith(".py"):
                return shlex.join(["gradlab", "doctor", *arguments[at:]])
    return ""


def _is_helper(process: BaseProcess) -> bool:
    target = getattr(process, "_target", None)
    return str(getattr(target, "__module__", "")).startswith(_HELPERS)
