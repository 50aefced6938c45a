"""The Ledger against the allocator's own events where memory is hard to follow: one short story each.

Each story builds what it needs, then returns a function; the total after every ``mark()`` in it, and the peak, must be
the allocator's.
"""

from __future__ import annotations

import copy
import gc
import io
import pickle
from collections.abc import Callable
from typing import Any

import ledger_cases
import pytest
import torch
from ledger_cases import events
from torch import Tensor, nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.nn.functional import dropout
from torch.utils.checkpoint import checkpoint

from gradlab import Ledger

STORIES: dict[str, Callable[[], Callable[[], Any]]] = {}
WORDS = 64  # bytes: numbers that PyTorch wraps as tensors of 8 bytes and hands around inside
where: dict[str, Callable[[], None]] = {"mark": ledger_cases.mark}


def mark() -> None:
    where["mark"]()


def story(make: Callable[[], Callable[[], Any]]) -> Callable[[], Callable[[], Any]]:
    STORIES[make.__name__] = make
    return make


def small() -> tuple[nn.Sequential, Tensor]:
    return nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 64)), torch.randn(32, 64)


def stepping(name: str, make: Callable[..., torch.optim.Optimizer], to_none: bool = True, **options: Any) -> None:
    def built():
        model, x = small()
        optimizer = make(model.parameters(), **options)

        def run():
            for _ in range(3):
                optimizer.zero_grad(set_to_none=to_none)
                mark()
                loss = model(x).pow(2).mean()
                mark()
                loss.backward()
                mark()
                optimizer.step()
                mark()

        return run

    STORIES[name] = built


stepping("sgd_foreach", torch.optim.SGD, lr=0.1, momentum=0.9, foreach=True)
stepping("sgd_foreach_zeros", torch.optim.SGD, to_none=False, lr=0.1, momentum=0.9, foreach=True)
stepping("adam_foreach", torch.optim.Adam, foreach=True)
stepping("adam_foreach_zeros", torch.optim.Adam, to_none=False, foreach=True)
stepping("adamw_fused", torch.optim.AdamW, fused=True)
stepping("amsgrad", torch.optim.AdamW, amsgrad=True)
stepping("adagrad_has_a_state_from_the_start", torch.optim.Adagrad)


@story
def lbfgs():
    model, x = small()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, history_size=3)

    def run():
        def closure():
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            mark()
            return loss

        for _ in range(2):
            optimizer.step(closure)
            mark()

    return run


@story
def gradients_handed_over_expanded_transposed_accumulated():
    a, b, given = nn.Parameter(torch.randn(300, 200)), nn.Parameter(torch.randn(200, 300)), torch.randn(300, 200)

    def run():
        for loss in (lambda: a.sum(), lambda: b.t().sum(), lambda: (b.t() * a).sum(), lambda: b.t().mul(2).sum()):
            loss().backward()
            mark()
        a.grad = b.grad = None
        mark()
        a.backward(given)
        mark()
        a.grad = None
        (a * 1).backward(given)
        mark()
        a.grad.zero_()
        (a * 2).sum().backward()
        mark()

    return run


@story
def a_reentrant_checkpoint():
    model, x = small()
    model.append(nn.Dropout(0.1))
    x.requires_grad_()

    def run():
        for _ in range(2):
            h = checkpoint(model, x, use_reentrant=True)
            mark()
            h = checkpoint(model, h, use_reentrant=True)
            mark()
            h.sum().backward()
            mark()
            del h
            mark()

    return run


@story
def an_optimizer_inside_backward():
    model, x = small()
    optimizers = {p: torch.optim.Adam([p]) for p in model.parameters()}

    def update(p: Tensor) -> None:
        mark()
        optimizers[p].step()
        optimizers[p].zero_grad()
        mark()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(update)

    def run():
        for _ in range(2):
            model(x).sum().backward()
            mark()

    return run


@story
def tensors_in_a_cycle_die_by_garbage_collection():
    def run():
        loop: list[Any] = [torch.randn(100, 100)]
        loop.append(loop)
        graph: list[Any] = [(nn.Parameter(torch.randn(100, 100)) * 2).tanh()]
        graph.append(graph)
        del loop, graph
        mark()
        gc.collect()
        mark()

    return run


@story
def resized_and_set_storages():
    def run():
        a = torch.empty(1000)
        a.resize_(50_000)
        mark()
        a.resize_(10)
        mark()
        b = torch.randn(5000)
        a.set_(b)
        mark()
        del b
        mark()
        a.data = torch.randn(7000)
        mark()
        a.untyped_storage().resize_(0)
        a.detach()  # the Ledger hears of it with the next operation
        mark()

    return run


@story
def complex_and_empty():
    w, nothing, layer = nn.Parameter(torch.randn(64, 64, dtype=torch.cfloat)), torch.empty(0, 5), nn.Linear(5, 3)

    def run():
        y = (w @ w).abs().sum() + torch.view_as_real(w).pow(2).sum() + w.conj().imag.sum()
        mark()
        y.backward()
        mark()
        layer(nothing).sum().backward()
        mark()

    return run


@story
def torch_func():
    model, x = small()
    weights = dict(model.named_parameters())

    def loss(weights, x):
        return torch.func.functional_call(model, weights, (x,)).pow(2).sum()

    def run():
        kept = [torch.func.grad(loss)(weights, x)]
        mark()
        kept.append(torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, x[:4]))
        mark()
        kept.append(torch.func.hessian(lambda x: x.pow(3).sum())(x[0]))
        mark()
        kept.append(torch.func.jvp(torch.sin, (x,), (x,)))
        mark()
        model(x).sum().backward()  # and saving is seen again afterwards
        mark()
        return kept

    return run


@story
def torch_nested():
    w = nn.Parameter(torch.randn(64, 64))

    def run():
        rows = [torch.randn(5, 64), torch.randn(9, 64)]
        n = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)
        mark()
        y = n @ w
        mark()
        y.sin().values().sum().backward()
        mark()

    return run


@story
def a_compiled_model():
    model, x = small()
    compiled = torch.compile(model, backend="eager")
    compiled(x).sum().backward()
    model.zero_grad()

    def run():
        for _ in range(2):
            compiled(x).sum().backward()
            mark()

    return run


@story
def graphs_kept_and_differentiated_again():
    model, x = small()
    x.requires_grad_()

    def run():
        y = model(x).pow(2).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        mark()
        g.pow(2).sum().backward()
        mark()
        del g, y
        mark()
        y = model(x).pow(2).sum()
        y.backward(retain_graph=True)
        mark()
        y.backward()
        mark()

    return run


@story
def hooks_of_the_users_own():
    model, x = small()

    def run():
        with save_on_cpu():
            y = model(x).pow(2).sum()
            mark()
        y.backward()
        mark()
        with saved_tensors_hooks(lambda t: t.to(torch.bfloat16), lambda t: t.float()):
            y = model(x).pow(2).sum()
            mark()
        y.backward()
        mark()

    return run


@story
def copies_and_pickles():
    model, x = small()

    def run():
        twin = copy.deepcopy(model)
        mark()
        twin(x).sum().backward()
        mark()
        again = pickle.loads(pickle.dumps(twin))
        mark()
        file = io.BytesIO()
        torch.save(twin.state_dict(), file)
        file.seek(0)
        state = torch.load(file)
        mark()
        return again, state

    return run


@story
def frozen_parts_and_no_grad():
    model, x = small()
    model[0].requires_grad_(False)

    def run():
        y = model(x).sum()
        mark()
        y.backward()
        mark()
        with torch.no_grad():
            y = model(x)
        mark()
        with torch.inference_mode():
            y = model(x)
        mark()
        model[0].requires_grad_(True)
        model(x).sum().backward()
        mark()
        return y

    return run


@story
def a_generator_left_suspended():
    model, x = small()

    def outputs():
        with torch.no_grad():
            yield model(x)

    def run():
        suspended = outputs()
        kept = next(suspended)
        mark()
        torch.set_grad_enabled(True)
        model(x).sum().backward()
        mark()
        del suspended, kept
        torch.set_grad_enabled(True)
        mark()

    return run


@story
def a_model_made_inside_and_moved():
    def run():
        model, x = small()
        optimizer = torch.optim.Adam(model.parameters())
        model(x).sum().backward()
        mark()
        optimizer.step()
        mark()
        model.double()
        mark()
        model.to("meta")
        mark()

    return run


@story
def scaled_and_clipped():
    model, x = small()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")

    def run():
        for _ in range(2):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = model(x).pow(2).mean()
            scaler.scale(loss).backward()
            mark()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            mark()
            scaler.step(optimizer)
            scaler.update()
            mark()

    return run


class Exp(torch.autograd.Function):
    """Saves its output, which PyTorch must not keep for ever, and a tensor behind autograd's back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.exp()
        ctx.save_for_backward(y)
        ctx.hidden = x * 2
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * ctx.saved_tensors[0]


@story
def functions_of_the_users_own_and_in_place_layers():
    w, (model, x) = nn.Parameter(torch.randn(100, 100)), small()

    def run():
        y = Exp.apply(Exp.apply(w))
        mark()
        y.sum().backward()
        mark()
        del y
        mark()
        h = dropout(model[0](x), 0.5, inplace=True).relu_()
        mark()
        model[2](h).sum().backward()
        mark()
        torch.mm(x.t(), x, out=(out := torch.empty(0)))
        mark()
        return out

    return run


class Numbers(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 16

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        return torch.full((64,), float(i)), i % 3


@pytest.mark.filterwarnings("ignore:Using `torch.compile")  # of any global module hook, such as the Ledger's
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=[pytest.mark.slow] if name == "a_compiled_model" else [])
        for name, make in STORIES.items()
    ],
)
def test_every_moment_is_the_allocators(make: Callable[[], Callable[[], Any]]) -> None:
    """A story runs twice: under the allocator's eyes, then under the Ledger's."""
    torch.manual_seed(0)
    where["mark"] = ledger_cases.mark
    truth = events(make)
    torch.manual_seed(0)
    run = make()
    gc.collect()
    ledger, totals = Ledger(kernels=True), []

    def look() -> None:
        totals.append(ledger.current - start)
        categories = ledger.by_category
        assert sum(categories.values()) == ledger.current
        assert min(categories.values()) >= 0

    where["mark"] = look
    with ledger:
        start = ledger.current
        result = run()
        peak, end = ledger.peak - start, ledger.current - start
    del result
    assert len(totals) == len(truth.marks)
    assert [abs(a - b) <= WORDS for a, b in zip(totals, truth.marks, strict=True)] == [True] * len(totals)
    assert abs(peak - truth.peak) <= WORDS
    assert abs(end - truth.end) <= WORDS
    assert sum(ledger.at_peak.values()) == ledger.peak
    assert min(ledger.at_peak.values()) >= 0
    assert max(point.top for point in ledger.timeline) == ledger.peak


def test_a_sparse_gradient_is_counted_with_its_indices() -> None:
    table, words = nn.Embedding(5000, 32, sparse=True), torch.randint(0, 5000, (64,))
    optimizer = torch.optim.SparseAdam(table.parameters())
    with Ledger(table, optimizer) as ledger:
        table(words).pow(2).sum().backward()
        assert ledger.by_category["gradients"] == 64 * (32 * 4 + 8)  # a row of floats and an int64 for each word
        optimizer.step()
        assert ledger.by_category["optimizer"] == 2 * 5000 * 32 * 4
        optimizer.zero_grad()
        assert ledger.by_category["gradients"] == 0


def test_loader_processes_and_other_threads_do_no_harm() -> None:
    model, _ = small()
    weights = sum(p.nbytes for p in model.parameters())
    with Ledger(model) as ledger:
        for x, _ in torch.utils.data.DataLoader(Numbers(), batch_size=8, num_workers=2):
            model(x).sum().backward()
        now = ledger.by_category
        assert now["gradients"] == weights
        assert now["inputs"] == x.nbytes  # one batch at a time: the earlier ones are gone
