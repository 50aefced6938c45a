"""A run's own random numbers, apart from everybody else's."""

from __future__ import annotations

import torch

from .._process import lock, preserving_rng, seed_torch


class RunRNG:
    """Keeps a run's random numbers apart from everybody else's: ``with`` it, torch's generators are the run's.

    It may be entered again inside; then nothing more happens. Only one thread of the process is inside any of them.
    """

    def __init__(self, seed: int, device: str) -> None:
        """Seed the run's generators without touching the global ones."""
        self._cuda = device.startswith("cuda")
        with preserving_rng(cuda=self._cuda):
            seed_torch(seed, cuda=self._cuda)
            self._own = self._read()
        self._depth = 0

    def __enter__(self) -> None:
        lock.acquire()
        self._depth += 1
        if self._depth == 1:
            self._global = self._read()
            self._write(self._own)

    def __exit__(self, *exception: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._own = self._read()
            self._write(self._global)
        lock.release()

    def state(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return where the run's random numbers are."""
        return self._read() if self._depth else self._own

    def set_state(self, state: tuple[torch.Tensor, torch.Tensor | None]) -> None:
        """Go on from a ``state()``."""
        self._own = state
        if self._depth:
            self._write(state)

    def _read(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        return torch.get_rng_state(), torch.cuda.get_rng_state() if self._cuda else None

    def _write(self, state: tuple[torch.Tensor, torch.Tensor | None]) -> None:
        torch.set_rng_state(state[0])
        if state[1] is not None:
            torch.cuda.set_rng_state(state[1])
