"""A task: something small to train, with everything a training loop needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from .._process import preserving_rng, seed_torch
from . import checks

PICTURES = ("plane", "boundary", "samples")


@dataclass(frozen=True, eq=False)  # eq=False: two tasks are the same only if they are one; tensors have no plain ==
class Task:
    """A model, its data and its loss, all seeded, ready for a loop over `for x, y in task.batches`.

    The batches stay on the CPU; the loop moves each one with `x.to(task.device)`, as a real loop does.

    name: short, one word.
    builder: seed -> model. It may use torch's global random numbers: `build` seeds them before and restores them after.
    batches: list of (x, y) tensors in a fixed order, one pair a micro-batch.
    loss_fn: (model(x), y) -> a tensor with one value.
    device: "cpu" or "cuda", where the model is built.
    title: one line in plain words.
    picture: "plane" (two weights, drawn on contours), "boundary" (a classifier of points in the plane),
        "samples" (images with predictions) or None.
    lr: a learning rate at which plain SGD, one update a batch, learns well.
    extra: what the picture needs, by name.

    Raises TypeError or ValueError that names the field, the value and what is allowed.
    """

    name: str
    builder: Callable[[int], nn.Module] = field(repr=False)
    batches: list[tuple[Tensor, Tensor]] = field(repr=False)
    loss_fn: Callable[[Any, Any], Tensor] = field(repr=False)
    device: str = "cpu"
    title: str = ""
    picture: str | None = None
    lr: float = 0.1
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for name in ("name", "title"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a text, got {getattr(self, name)!r}")
        if not self.name.strip():
            raise ValueError(f"name must be a text that is not empty, got {self.name!r}")
        for name, calls in (("builder", "seed -> nn.Module"), ("loss_fn", "(output, y) -> loss")):
            if not callable(getattr(self, name)):
                raise TypeError(f"{name} must be a function {calls}, got {getattr(self, name)!r}")
        # A frozen dataclass is written through object: what is kept is checked and is a copy of ours.
        object.__setattr__(self, "batches", _pairs(self.batches))
        if not isinstance(self.device, str):
            raise TypeError(f"device must be 'cpu' or 'cuda', as text, got {self.device!r}")
        if self.device == "auto":
            raise ValueError("device must be 'cpu' or 'cuda' (a Task names the device it is on), got 'auto'")
        checks.device(self.device)
        if self.picture is not None and self.picture not in PICTURES:
            raise ValueError(f"picture must be None or one of {', '.join(map(repr, PICTURES))}, got {self.picture!r}")
        object.__setattr__(self, "lr", checks.number("lr", self.lr, 1e-12, 1e12))
        if not isinstance(self.extra, Mapping):
            raise TypeError(f"extra must be a mapping from names to what a picture needs, got {self.extra!r}")
        object.__setattr__(self, "extra", dict(self.extra))

    def build(self, seed: int = 0) -> nn.Module:
        """Return a fresh model on `self.device`: the same seed gives the same weights.

        torch's global random numbers are left as they were. Raises TypeError if the builder returns no `nn.Module`.
        """
        checks.seed(seed)
        # With a GPU in use a builder may draw from its generators too, and torch.manual_seed sets those as well.
        cuda = self.device == "cuda" or torch.cuda.is_initialized()
        with preserving_rng(cuda=cuda):
            seed_torch(seed, cuda=cuda)
            model = self.builder(seed)
        if not isinstance(model, nn.Module):
            raise TypeError(f"builder must return a torch.nn.Module, got {model!r}")
        # Asked for only where something moves: on a model of fake tensors `.to` fails even if there is nothing to do.
        there = all(t.device.type == self.device for t in (*model.parameters(), *model.buffers()))
        return model if there else model.to(self.device)


def split(x: Tensor, y: Tensor, size: int) -> list[tuple[Tensor, Tensor]]:
    """Return (x, y) in batches of `size` rows, the last with what is left, each with memory of its own.

    Without the copies all batches would be views of one storage, and whoever counts bytes by storage would find the
    whole data set in every batch.
    """
    return [(a.clone(), b.clone()) for a, b in zip(x.split(size), y.split(size), strict=True)]


def _pairs(batches: object) -> list[tuple[Tensor, Tensor]]:
    """Return a list of (x, y) tensors, or raise for what is none."""
    allowed = "a list of (x, y) pairs of tensors; list(loader) makes one from a DataLoader"
    if not isinstance(batches, list | tuple):
        raise TypeError(f"batches must be {allowed}, got {batches!r}")
    if not batches:
        raise ValueError(f"batches must be {allowed}, got {batches!r}, which is empty")
    for i, batch in enumerate(batches):
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise TypeError(f"batches must be {allowed}, got {batch!r} as batches[{i}]")
        for part, value in zip("xy", batch, strict=True):
            if not isinstance(value, Tensor):
                raise TypeError(f"batches must be {allowed}, got {part} = {value!r} in batches[{i}]")
            if value.numel() == 0:
                raise ValueError(f"batches must be {allowed}, got {part} without elements, {value!r}, in batches[{i}]")
    return [(x, y) for x, y in batches]
