"""Tensors saved for backward by our rules against those of PyTorch's own CUDA build, for whole models, to the byte.

A build without CUDA cannot train on fake CUDA tensors, so the reference is in ``cuda_saved.json``; ``cuda_models.py``
wrote it. Where there is a card, PyTorch itself is the reference.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from cuda_models import AMP, MODELS, SAVED, on_cuda, saved_for_backward

from gradlab.forecasting.cuda_rules import cuda_rules
from gradlab.forecasting.fake_mode import FakeTensors

FILE = json.loads(SAVED.read_text(encoding="utf-8"))


def kept_on_cuda(name: str, amp: str) -> dict[str, Any]:
    if torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0):  # attention asks the card
        return on_cuda(name, amp)
    return FILE["models"][name][amp]


@pytest.mark.slow
@pytest.mark.parametrize("amp", AMP)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_keeps_for_backward_what_it_keeps_on_cuda(name: str, amp: str) -> None:
    with cuda_rules():
        ours = saved_for_backward(name, amp, FakeTensors(cuda=True), "cpu")
    assert ours == kept_on_cuda(name, amp), f"the file is from {FILE['torch']}, and this is {torch.__version__}"
