"""What a model has learned, for tasks that can show it: digits with predictions, or the border between classes."""

from __future__ import annotations

import torch
from torch import nn

from ..tasks import ClassRegions, HeldOutImages
from .evaluate import evaluating
from .kinds import Boundary, Samples

_SHOWN_DIGITS = 12
_POINTS = 48  # along each side of the plane


def sample_predictions(picture: HeldOutImages, model: nn.Module, device: str) -> Samples:
    """Return held-out images with what the model says of them; accuracy is over all that are held out."""
    x, y = picture.x, picture.y
    with evaluating(model):
        said = model(x.to(device)).argmax(1).cpu()
    images = x[:_SHOWN_DIGITS].reshape(-1, *picture.shape).tolist()
    right = float((said == y).float().mean())
    return Samples(images, said[:_SHOWN_DIGITS].tolist(), y[:_SHOWN_DIGITS].tolist(), right)


class DecisionGrid:
    """Points all over the plane of a task's data, to ask a classifier about; made once."""

    def __init__(self, picture: ClassRegions, device: str) -> None:
        """Cover the data with a little room around it."""
        self._device = device
        self._points, self._labels = picture.points, picture.labels
        reach = 1.1 * float(self._points.abs().max())
        side = torch.linspace(-reach, reach, _POINTS)
        self._side = side.tolist()
        self._grid = torch.cartesian_prod(side, side).flip(1)

    def boundary(self, model: nn.Module) -> Boundary:
        """Return the class that the model gives each point of the plane, and how sure it is."""
        with evaluating(model):
            shares = model(torch.cat([self._grid, self._points]).to(self._device)).softmax(1).cpu()
        plane, data = shares[: len(self._grid)], shares[len(self._grid) :]
        sure, label = (part.reshape(_POINTS, _POINTS).tolist() for part in plane.max(1))
        right = float((data.argmax(1) == self._labels).float().mean())
        return Boundary(self._side, self._side, label, sure, self._points.tolist(), self._labels.tolist(), right)
