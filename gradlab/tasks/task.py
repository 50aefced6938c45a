"""Task: a small model with the data, the loss and the settings that a training loop needs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from .._checks import LARGEST_SEED, brief, number, one_of, pair, whole_number, without_values
from .._process import RandomStream, learner_threads

DEVICES = ("auto", "cpu", "cuda")


def checked_device(name: str, value: object) -> str:
    """Return ``value`` if it is "cpu" or "cuda"; for "auto", return "cuda" if PyTorch finds a CUDA GPU, else "cpu".

    Raises TypeError if ``value`` is not a string, and ValueError for an unknown name and for "cuda" without a GPU.
    """
    device, gpu = one_of(name, value, DEVICES), torch.cuda.is_available()
    if device == "cuda" and not gpu:
        raise ValueError(f"{name} must be 'auto' or 'cpu', got 'cuda': PyTorch sees no CUDA GPU here")
    return ("cuda" if gpu else "cpu") if device == "auto" else device


@dataclass(frozen=True)
class TwoWeights:
    """A picture of the path of two weights on the contours of the loss around ``minimum``."""

    minimum: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "minimum", pair("TwoWeights: minimum", self.minimum, -1e12, 1e12))


@dataclass(frozen=True, eq=False)
class HeldOutImages:
    """A picture of held-out images, which no batch contains, with the model's predictions.

    ``x`` (n, ...) is the model's input, ``y`` (n,) contains the classes, and ``shape`` is an image's (height, width).
    """

    x: Tensor = field(repr=False)
    y: Tensor = field(repr=False)
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        for name in ("x", "y"):
            value = getattr(self, name)
            if not isinstance(value, Tensor) or value.numel() == 0:
                error = ValueError if isinstance(value, Tensor) else TypeError
                raise error(f"HeldOutImages: {name} must be a tensor with elements, got {brief(value)}")
        if not isinstance(self.shape, tuple) or len(self.shape) != 2:
            raise ValueError(f"HeldOutImages: shape must be a tuple (height, width), got {brief(self.shape)}")
        if len(self.x) != len(self.y) or self.x[0].numel() != self.shape[0] * self.shape[1]:
            got = f"x of {tuple(self.x.shape)} and y of {tuple(self.y.shape)}"
            allowed = f"n images of {self.shape[0]} x {self.shape[1]} and n labels"
            raise ValueError(f"HeldOutImages: x and y must be {allowed}, got {got}")


Picture = TwoWeights | HeldOutImages


@dataclass(frozen=True, eq=False)  # tasks are compared by identity, since == of tensors returns a tensor
class Task:
    """A model, its data and its loss, all seeded, ready for a training loop.

    The batches stay on the CPU; the loop moves each batch with `x.to(task.device)`, as a real loop does.

    name: a short name, in one word.
    builder: a function seed -> model. `build` seeds torch's global random generator first, and later restores it.
    batches: a list of micro-batches in a fixed order, all of one kind. Of a pair of tensors (x, y), the model gets x.
        Any other batch is passed to the model and to the loss as a whole: the model gets a dict of tensors as
        model(**batch), a tuple or list of another length as model(*batch), and a single tensor as model(batch).
    loss_fn: a function (output, y) -> tensor with one value or, for batches other than pairs, (output, batch) -> tensor
        with one value. A module as loss_fn must have no parameters that require grad.
    device: the device on which models are built, "cpu" or "cuda".
    title: a description of the task in one line.
    picture: TwoWeights (on contours of the loss), HeldOutImages (images with the model's predictions) or None.
    lr: a learning rate at which plain SGD learns well with one update per batch.

    Raises TypeError or ValueError with the name of the field, the value and the allowed values.
    """

    name: str
    builder: Callable[[int], nn.Module] = field(repr=False)
    batches: list[Any] = field(repr=False)
    loss_fn: Callable[[Any, Any], Tensor] = field(repr=False)
    device: str = "cpu"
    title: str = ""
    picture: Picture | None = None
    lr: float = 0.1

    def __post_init__(self) -> None:
        for name in ("name", "title"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"Task: {name} must be a string, got {without_values(getattr(self, name))}")
        if not self.name.strip():
            raise ValueError(f"Task: name must be a string that is not blank, got {self.name!r}")
        _require_function("builder", self.builder, "seed -> nn.Module", 1)
        _require_function("loss_fn", self.loss_fn, "(output, y) -> loss", 2)
        _require_no_parameters(self.loss_fn)
        # The dataclass is frozen, so object.__setattr__ stores the batches, as a checked copy.
        object.__setattr__(self, "batches", _checked_batches(self.batches))
        checked_device("Task: device", one_of("Task: device", self.device, DEVICES[1:]))
        picture: object = self.picture
        if not isinstance(picture, Picture | None):
            kinds = "TwoWeights(...) or HeldOutImages(...) of gradlab.tasks"
            raise TypeError(f"Task: picture must be None or {kinds}, got {without_values(picture)}")
        object.__setattr__(self, "lr", number("Task: lr", self.lr, 1e-12, 1e12))

    @property
    def held_out(self) -> tuple[Tensor, Tensor] | None:
        """The held-out examples as (x, y), or None if the task has none."""
        return (self.picture.x, self.picture.y) if isinstance(self.picture, HeldOutImages) else None

    def build(self, seed: int = 0) -> nn.Module:
        """Return a new model on `self.device`, with the same weights for the same seed.

        The state of torch's global random generator does not change. Raises TypeError if the builder does not return an
        `nn.Module`, and ValueError if the model has tensors on the meta device.
        """
        seed = whole_number("Task.build: seed", seed, 0, LARGEST_SEED)
        # Once CUDA is initialized, a builder may use CUDA's generators, but other threads prevent their isolation.
        cuda = self.device == "cuda" or (torch.cuda.is_initialized() and not learner_threads())
        with RandomStream(seed, cuda=cuda):
            model = self.builder(seed)
        if not isinstance(model, nn.Module):
            raise TypeError(f"Task: builder must return a torch.nn.Module, got {without_values(model)}")
        devices = {t.device.type for t in (*model.parameters(), *model.buffers())}
        if "meta" in devices:
            raise ValueError("Task: builder must return a model with values, got one with weights on the meta device")
        # `.to` is called only if a tensor must move: for a model of fake tensors, it fails even with nothing to move.
        return model if devices <= {self.device} else model.to(self.device)

    def loss_of(self, model: Callable[..., Any], batch: Any) -> Tensor:
        """Move ``batch`` to `self.device`, and return the loss of ``model`` as the loop of a Recipe computes it."""
        if isinstance(batch, Tensor):
            return self.loss_fn(model(moved := batch.to(self.device)), moved)
        if isinstance(batch, dict):
            by_name = {name: value.to(self.device) for name, value in batch.items()}
            return self.loss_fn(model(**by_name), by_name)
        parts = tuple(value.to(self.device) for value in batch)
        return self.loss_fn(model(parts[0]), parts[1]) if len(parts) == 2 else self.loss_fn(model(*parts), parts)


def split(x: Tensor, y: Tensor, size: int) -> list[tuple[Tensor, Tensor]]:
    """Return a list of batches (x, y), copies of `size` rows of ``x`` and ``y``; the last batch may be smaller.

    Without copies, all batches would share a storage, and the bytes of the whole data set would count for each batch.
    """
    return [(a.clone(), b.clone()) for a, b in zip(x.split(size), y.split(size), strict=True)]


def _require_no_parameters(loss_fn: object) -> None:
    owner = getattr(loss_fn, "__self__", loss_fn)
    parameters = owner.named_parameters() if isinstance(owner, nn.Module) else ()
    if name := next((name for name, parameter in parameters if parameter.requires_grad), None):
        raise ValueError(
            f"Task: loss_fn must be a function without parameters to train, got {type(owner).__name__} with {name!r}: "
            "the loop's optimizer gets only the model's parameters, so make it a part of the model"
        )


def _require_function(name: str, value: object, form: str, arguments: int) -> None:
    wrong = ""
    if not callable(value) or (isinstance(value, nn.Module) and name == "builder"):
        wrong = brief(value)
    elif isinstance(value, type) and issubclass(value, nn.Module) and name == "loss_fn":
        wrong = f"the class {value.__name__}; give an instance: {value.__name__}()"
    else:
        with suppress(ValueError):  # some functions written in C have no signature
            signature = inspect.signature(value)
            try:
                signature.bind(*range(arguments))
            except TypeError:
                wrong = f"{brief(value)}{signature}"
    if wrong:
        raise TypeError(f"Task: {name} must be a function {form}, got {wrong}")


def _checked_batches(batches: object) -> list[Any]:
    allowed = (
        "Task: batches must be a non-empty list, such as list(loader), of (x, y) pairs of tensors, of dicts or tuples "
        "of tensors, or of single tensors"
    )
    if not isinstance(batches, list | tuple):
        raise TypeError(f"{allowed}; got {without_values(batches)}")
    if not batches:
        raise ValueError(f"{allowed}; got {batches!r}")
    if isinstance(batches, tuple) and isinstance(batches[0], Tensor):
        raise TypeError(f"{allowed}; got a tuple of tensors; if it is one batch, write [batch]")
    checked: list[Any] = []
    for i, item in enumerate(batches):
        batch = tuple(item) if isinstance(item, list | tuple) else item
        batch = dict(item) if isinstance(item, Mapping) else batch
        parts: list[tuple[Any, Any]] = [("batch", batch)]
        if isinstance(batch, dict):
            parts = list(batch.items())
        elif isinstance(batch, tuple):
            parts = list(zip("xy" if len(batch) == 2 else [f"item {n}" for n in range(len(batch))], batch, strict=True))
        if not parts or (checked and _kind(batch) != _kind(checked[0])):
            other = f"; all must be like batches[0], {without_values(checked[0])}" if checked else ""
            raise TypeError(f"{allowed}; got {without_values(item)} as batches[{i}]{other}")
        for part, value in parts:
            if not isinstance(part, str):
                raise TypeError(f"{allowed}; got a dict with the key {brief(part)}, not a string, as batches[{i}]")
            if not isinstance(value, Tensor):
                raise TypeError(f"{allowed}; got {part} = {without_values(value)} in batches[{i}]")
            if value.numel() == 0:
                got = f"{part} = {without_values(value)} in batches[{i}]"
                raise ValueError(f"Task: batches must contain no empty tensors, got {got}")
        checked.append(batch)
    return checked


def _kind(batch: object) -> tuple[type, bool]:
    return type(batch), isinstance(batch, tuple) and len(batch) == 2
