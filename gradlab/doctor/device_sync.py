"""The norms and losses in a batch of events come from their device in one go, long after they were asked for."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from .. import _torch
from .events import Added, Backward, GradEdited, Step


def fetch_norms(events: list[Any]) -> None:
    """Put plain numbers in the place of the norms and losses in events; one transfer a device and a type."""
    waiting: defaultdict[Any, list[tuple[Any, Tensor]]] = defaultdict(list)
    losses: defaultdict[Any, list[Backward]] = defaultdict(list)
    for event in events:
        kind = type(event)
        norms: Tensor | None = None
        if kind is Backward:
            norms = event.values[1] if event.values else None
            if isinstance(event.loss, Tensor):
                losses[event.loss.device, event.loss.dtype].append(event)
        elif kind is Added or kind is GradEdited or kind is Step:
            norms = event.norms
        if norms is not None:
            waiting[norms.device, norms.dtype].append((event, norms))
    for backwards in losses.values():
        with torch.no_grad(), _torch.disable_current_modes():
            numbers = torch.stack([one.loss for one in backwards]).tolist()
        for backward, number in zip(backwards, numbers, strict=True):
            backward.loss = number
    for group in waiting.values():
        with torch.no_grad(), _torch.disable_current_modes():  # the learner's own modes are not to see this
            values = torch.cat([norms for _, norms in group]).tolist()
        for event, norms in group:
            own, values = values[: len(norms)], values[len(norms) :]
            if type(event) is Backward:
                event.values = event.values[0], own
            else:
                event.norms = own
