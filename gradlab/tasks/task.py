"""A task: something small to train, with everything a training loop needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from .. import _checks
from .._process import learner_threads
from .._random import RandomStream

DEVICES = ("auto", "cpu", "cuda")


def checked_device(value: object) -> str:
    """Return "cpu" or "cuda" for "auto", "cpu" or "cuda"; "auto" takes the GPU where PyTorch sees one.

    Raises TypeError for what is no text, ValueError for another name and for "cuda" where there is no GPU.
    """
    name, gpu = _checks.one_of("device", value, DEVICES), torch.cuda.is_available()
    if name == "cuda" and not gpu:
        raise ValueError("device must be 'auto' or 'cpu', got 'cuda': PyTorch sees no CUDA GPU here")
    return ("cuda" if gpu else "cpu") if name == "auto" else name


def _require_tensors(**values: object) -> None:
    """Raise TypeError for the first that is no tensor, ValueError for one without elements."""
    for name, value in values.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a tensor, got {value!r}")
        if value.numel() == 0:
            raise ValueError(f"{name} must be a tensor with elements, got {value!r}")


@dataclass(frozen=True)
class TwoWeights:
    """The path of two weights on the contours of the loss, drawn around ``minimum``."""

    minimum: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "minimum", _checks.pair("minimum", self.minimum, -1e12, 1e12))


@dataclass(frozen=True, eq=False)
class ClassRegions:
    """Which class a classifier gives each point of the plane: ``points`` is (n, 2), ``labels`` (n,) with the class."""

    points: Tensor = field(repr=False)
    labels: Tensor = field(repr=False)

    def __post_init__(self) -> None:
        _require_tensors(points=self.points, labels=self.labels)
        if self.points.ndim != 2 or self.points.shape[1] != 2 or self.labels.shape != self.points.shape[:1]:
            shapes = f"points of {tuple(self.points.shape)} and labels of {tuple(self.labels.shape)}"
            raise ValueError(f"points and labels must have the shapes (n, 2) and (n,), got {shapes}")


@dataclass(frozen=True, eq=False)
class HeldOutImages:
    """Images that no batch contains, with the model's answers: ``x`` is what the model reads, ``y`` (n,) the class.

    ``shape`` is the height and width of one image.
    """

    x: Tensor = field(repr=False)
    y: Tensor = field(repr=False)
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        _require_tensors(x=self.x, y=self.y)
        if not isinstance(self.shape, tuple) or len(self.shape) != 2:
            raise ValueError(f"shape must be the height and width of an image, got {self.shape!r}")
        if len(self.x) != len(self.y) or self.x[0].numel() != self.shape[0] * self.shape[1]:
            got = f"x of {tuple(self.x.shape)} and y of {tuple(self.y.shape)}"
            raise ValueError(f"x and y must be n images of {self.shape[0]} x {self.shape[1]} and n labels, got {got}")


Picture = TwoWeights | ClassRegions | HeldOutImages


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
    picture: TwoWeights (on contours of the loss), ClassRegions (a classifier of points in the plane), HeldOutImages
        (images with the model's answers) or None.
    lr: a learning rate at which plain SGD, one update a batch, learns well.

    Raises TypeError or ValueError that names the field, the value and what is allowed.
    """

    name: str
    builder: Callable[[int], nn.Module] = field(repr=False)
    batches: list[tuple[Tensor, Tensor]] = field(repr=False)
    loss_fn: Callable[[Any, Any], Tensor] = field(repr=False)
    device: str = "cpu"
    title: str = ""
    picture: Picture | None = None
    lr: float = 0.1

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
        checked_device(self.device)
        given: object = self.picture
        if not isinstance(given, Picture | None):
            kinds = "TwoWeights(...), ClassRegions(...) or HeldOutImages(...) of gradlab.tasks"
            raise TypeError(f"picture must be None or {kinds}, got {given!r}")
        object.__setattr__(self, "lr", _checks.number("lr", self.lr, 1e-12, 1e12))

    @property
    def held_out(self) -> tuple[Tensor, Tensor] | None:
        """What no batch contains, as (x, y), where the task has such data."""
        return (self.picture.x, self.picture.y) if isinstance(self.picture, HeldOutImages) else None

    def build(self, seed: int = 0) -> nn.Module:
        """Return a fresh model on `self.device`: the same seed gives the same weights.

        torch's global random numbers are left as they were. Raises TypeError if the builder returns no `nn.Module`.
        """
        _checks.whole_number("seed", seed, 0, _checks.LARGEST_SEED)
        # With a GPU in use a builder may draw from its generators too; but they are not taken from other threads.
        cuda = self.device == "cuda" or (torch.cuda.is_initialized() and not learner_threads())
        with RandomStream(seed, cuda=cuda):
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
