"""What a task has to show besides its loss: where its weights are, or what its model has learned."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from . import checks


@dataclass(frozen=True)
class TwoWeights:
    """The path of two weights on the contours of the loss, drawn around ``minimum``."""

    minimum: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "minimum", checks.pair("minimum", self.minimum, -1e12, 1e12))


@dataclass(frozen=True, eq=False)
class ClassRegions:
    """Which class a classifier gives each point of the plane: ``points`` is (n, 2), ``labels`` (n,) with the class."""

    points: Tensor = field(repr=False)
    labels: Tensor = field(repr=False)

    def __post_init__(self) -> None:
        checks.tensors(points=self.points, labels=self.labels)
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
        checks.tensors(x=self.x, y=self.y)
        if not isinstance(self.shape, tuple) or len(self.shape) != 2:
            raise ValueError(f"shape must be the height and width of an image, got {self.shape!r}")
        if len(self.x) != len(self.y) or self.x[0].numel() != self.shape[0] * self.shape[1]:
            got = f"x of {tuple(self.x.shape)} and y of {tuple(self.y.shape)}"
            raise ValueError(f"x and y must be n images of {self.shape[0]} x {self.shape[1]} and n labels, got {got}")


Picture = TwoWeights | ClassRegions | HeldOutImages
