"""What our rules keep for backward against what PyTorch's own CUDA build keeps, for whole models, to the byte.

A build without CUDA cannot train on fake CUDA tensors, so its answers are in ``cuda_saved.json``; ``cuda_models.py``
made them. Where the PyTorch that runs was built with CUDA, it is asked here as well.
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
ATTENTION = ("bert", "gpt_sdpa", "vit", "llama")
"""The models that leave attention to PyTorch, which asks the card what kernels it has."""


def by_our_rules(name: str, amp: str) -> dict[str, Any]:
    with cuda_rules():
        return saved_for_backward(name, amp, FakeTensors(cuda=True), "cpu")


def release(version: str) -> list[str]:
    return version.split(".")[:2]


def has_a_card() -> bool:
    return torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0)


@pytest.mark.slow
@pytest.mark.parametrize("amp", AMP)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_keeps_for_backward_what_pytorch_keeps_of_it_on_cuda(name: str, amp: str) -> None:
    same = release(FILE["torch"]) == release(torch.__version__)
    other = "" if same else f"the file is from PyTorch {FILE['torch']}, and this is PyTorch {torch.__version__}"
    assert by_our_rules(name, amp) == FILE["models"][name][amp], other


@pytest.mark.skipif(
    torch.version.cuda is None, reason="this PyTorch was built without CUDA, and the file stands for it"
)
@pytest.mark.parametrize("amp", AMP)
@pytest.mark.parametrize("name", MODELS)
def test_the_running_pytorch_says_the_same_as_our_rules(name: str, amp: str) -> None:
    if name in ATTENTION and not has_a_card():
        pytest.skip("attention asks for a card of compute capability 8.0 or later, and there is none")
    assert by_our_rules(name, amp) == on_cuda(name, amp)
