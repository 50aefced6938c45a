"""The exercises of notebook 00."""

from __future__ import annotations

from .batches_in_grad import BatchesInGrad
from .train_one_epoch import TrainOneEpoch

EXERCISES = (BatchesInGrad, TrainOneEpoch)
