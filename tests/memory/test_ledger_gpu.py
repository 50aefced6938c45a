"""The Ledger against the CUDA allocator's own peak, for every switch, on models of more than 200 MB.

Run with ``pytest -m gpu -s tests/test_ledger_gpu.py`` on a machine with a GPU: it prints the table that notebook 09
cites, with the card's name. Everywhere else the tests are skipped.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from ledger_cases import Blocks, Loop, classes
from torch import nn

from gradlab import Ledger, Recipe
from gradlab.tasks.text import CharTransformer

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU, and PyTorch sees none"),
]
NEAR = 0.02  # of the allocator's peak: it rounds every block up to 512 bytes
RECIPES = [
    Recipe(accumulate=window, set_to_none=none, amp=amp, optimizer=optimizer, clip=clip, lr=1e-4)
    for window, none, amp, optimizer, clip in itertools.chain(
        itertools.product((1, 4), (True, False), ("off", "bf16", "fp16"), ("sgd", "adamw"), (None,)),
        [(1, True, "off", "momentum", 1.0), (1, True, "fp16", "adam", 1.0), (2, False, "bf16", "adam", 1.0)],
    )
]
RECIPES.append(replace(RECIPES[0], zero_grad=False))


def mlp(again: bool) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    blocks = [nn.Sequential(nn.Linear(4096, 4096), nn.GELU()) for _ in range(4)]  # 67 million weights, 268 MB
    return nn.Sequential(Blocks(*blocks, again=again), nn.Linear(4096, 10)), torch.randn(2048, 4096), classes(2048)


def transformer(again: bool) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    model = CharTransformer(256, 256, width=1024, heads=16, layers=6)  # 76 million weights, 304 MB
    model.blocks = Blocks(*model.blocks, again=again)
    return model, torch.randint(0, 256, (16, 256)), torch.randint(0, 256, (16, 256))


MODELS = {"mlp": mlp, "transformer": transformer}


@pytest.fixture(scope="module")
def table() -> Iterator[list[str]]:
    """Rows, printed together at the end under the card's name."""
    rows: list[str] = []
    yield rows
    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}, MB at the peak")
    print(f"{'model and recipe':58}{'Ledger':>9}{'outside':>9}{'allocator':>10}{'difference':>12}")
    print("\n".join(rows))


@pytest.mark.parametrize("again", [False, True], ids=["plain", "checkpoint"])
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: "-".join(map(str, vars(r).values())))
@pytest.mark.parametrize("name", MODELS)
def test_the_peak_is_the_cuda_allocators(name: str, recipe: Recipe, again: bool, table: list[str]) -> None:
    gc.collect()
    torch.cuda.empty_cache()
    torch.manual_seed(0)
    model, x, y = MODELS[name](again)
    loop = Loop(model.cuda(), x.cuda(), y.cuda(), recipe, None)
    loop.names["device"] = "cuda"
    loop.run()  # two updates: cuBLAS takes its workspaces, and PyTorch compiles its kernels
    for left in ("optimizer", "scaler", "output", "loss"):
        loop.names.pop(left, None)
    model.zero_grad()
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    ledger = Ledger(model, (), (loop.x, loop.y))
    with ledger:
        outside = torch.cuda.memory_allocated() - ledger.current  # workspaces and rounding
        loop.run()
        torch.cuda.synchronize()
        truth = torch.cuda.max_memory_allocated()
        assert ledger.device == "cuda"
    difference = ledger.peak + outside - truth
    what = f"{name} {'checkpoint ' * again}{recipe.accumulate} x {recipe.amp} {recipe.optimizer}"
    what += f" {'to None' if recipe.set_to_none else 'to zeros'}{'' if recipe.zero_grad else ', never cleared'}"
    millions = [number / 1e6 for number in (ledger.peak, outside, truth)]
    row = "{:58}{:9.1f}{:9.1f}{:10.1f}{:11.2f}%".format(what, *millions, 100 * difference / truth)
    table.append(row)
    assert truth > 200e6
    assert outside >= 0
    assert abs(difference) <= NEAR * truth, row
    assert sum(ledger.at_peak.values()) == ledger.peak
