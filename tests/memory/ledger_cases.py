"""Models, loops and oracles that the tests of the Ledger share; nothing here uses the Ledger."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from gradlab import Recipe
from gradlab.tasks.text import CharTransformer

NEAR = 4096
"""Bytes by which the Ledger may differ from the allocator."""


class Blocks(nn.Module):
    """Blocks one after the other, each computed again in backward when ``again`` is set."""

    def __init__(self, *blocks: nn.Module, again: bool = False) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.again = again

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.again else block(x)
        return x


def mlp(again: bool = False) -> tuple[nn.Module, Tensor, Tensor]:
    hidden = [nn.Sequential(nn.Linear(128, 256), nn.ReLU()), nn.Sequential(nn.Linear(256, 256), nn.GELU())]
    return nn.Sequential(Blocks(*hidden, again=again), nn.Linear(256, 10)), torch.randn(96, 128), classes(96)


def conv(again: bool = False) -> tuple[nn.Module, Tensor, Tensor]:
    first = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
    second = nn.Sequential(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU())
    rest = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    return nn.Sequential(Blocks(first, second, again=again), *rest), torch.randn(8, 3, 24, 24), classes(8)


def transformer(again: bool = False) -> tuple[nn.Module, Tensor, Tensor]:
    model = CharTransformer(40, 32, width=64, heads=4, layers=2)
    model.blocks = Blocks(*model.blocks, again=again)
    return model, torch.randint(0, 40, (8, 32)), torch.randint(0, 40, (8, 32))


MODELS = {"mlp": mlp, "conv": conv, "transformer": transformer}


def classes(n: int) -> Tensor:
    return torch.randint(0, 10, (n,))


def loss_fn(output: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy, over classes or over characters."""
    return nn.functional.cross_entropy(output.flatten(0, -2), y.flatten())


@dataclass(frozen=True)
class Case:
    """A recipe on a model, run for two updates by ``exec`` of the recipe's own text."""

    name: str
    recipe: Recipe
    again: bool = False

    def __str__(self) -> str:
        r = self.recipe
        clearing = "none" if r.set_to_none else "zeros"
        return f"{self.name}-{r.accumulate}-{clearing}-{r.amp}-{r.optimizer}{'-checkpoint' * self.again}"

    def ready(self, sample: Callable[[], None] | None = None) -> Loop:
        torch.manual_seed(0)
        return Loop(*MODELS[self.name](self.again), self.recipe, sample)


def case(name: str, again: bool = False, **switches: Any) -> Case:
    """Return the case of a row of ``covering``."""
    return Case(name, Recipe(**switches, lr=0.01), again)


class Loop:
    """The loop of a recipe, ready to run; ``sample()`` is called after every statement of its text."""

    def __init__(
        self, model: nn.Module, x: Tensor, y: Tensor, recipe: Recipe, sample: Callable[[], None] | None
    ) -> None:
        self.model, self.x, self.y = model, x, y
        tree = ast.parse(recipe.source())
        if sample is not None:
            tree = ast.fix_missing_locations(_Sampled().visit(tree))
        self.code = compile(tree, "<recipe>", "exec")
        self.names: dict[str, Any] = {
            "torch": torch,
            "model": model,
            "loss_fn": loss_fn,
            "batches": [(x, y)] * (2 * recipe.accumulate),
            "device": "cpu",
            "epochs": 1,
            "sample": sample,
        }

    def run(self) -> None:
        exec(self.code, self.names)


class _Sampled(ast.NodeTransformer):
    """Puts ``sample()`` after every statement, also in nested blocks."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for line in body for part in (line, *ast.parse("sample()").body)]  # type: ignore[attr-defined]
        return node


@dataclass
class Events:
    """The events of the CPU's allocator while something ran, in bytes above those allocated before."""

    peak: int
    end: int
    marks: list[int]
    """Bytes at every ``mark()``."""


def mark() -> None:
    """Note this moment among the allocator's events."""
    with torch.profiler.record_function("mark"):
        pass


def events(make: Callable[[], Callable[[], object]]) -> Events:
    """Run the function that ``make()`` returns, and evaluate the allocator's own events in their order.

    ``make()`` runs inside the profile, too: the allocator reports the end only of those whose beginning it reported.
    """
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        run = make()
        mark()
        result = run()
        mark()
    del run, result
    now, peak, marks = 0, 0, []
    for event in sorted(prof.profiler.kineto_results.events(), key=lambda e: e.start_ns()):
        if event.name() == "[memory]":
            now += event.nbytes()
            peak = max(peak, now)
        elif event.name() == "mark":
            if not marks:
                peak = now
            marks.append(now)
    start, *marks, end = marks
    return Events(peak - start, end - start, [mark - start for mark in marks])


class _Marking(TorchDispatchMode):
    """Marks the moments between two operations."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        mark()
        result = func(*args, **(kwargs or {}))
        mark()
        return result


def peak_between_operations(make: Callable[[], Callable[[], object]]) -> int:
    """Return the most bytes at a moment between two operations: what kernels take for themselves is given back."""

    def make_marked() -> Callable[[], object]:
        run = make()

        def run_marked() -> object:
            with _Marking():
                return run()

        return run_marked

    return max(events(make_marked).marks)


def storages(tensors: Iterator[Tensor] | list[Tensor]) -> dict[int, int]:
    """Address to bytes of the storages behind tensors, each once."""
    return {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors if t.numel()}
