"""Random numbers of a stream do not depend on other threads, for each way to draw them."""

from __future__ import annotations

import gc
import importlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Beta, Binomial, Categorical, Dirichlet, Gamma, MultivariateNormal, Normal, StudentT
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from gradlab._process import RandomStream, learner_threads, others_may_draw

ONES = torch.ones(4, 6)
IN_PLACE = [
    ("uniform_",), ("normal_",), ("exponential_",), ("cauchy_",), ("log_normal_",), ("geometric_", 0.3), ("random_",),
    ("random_", 5), ("random_", 2, 9), ("bernoulli_",), ("bernoulli_", ONES / 3),
]  # fmt: skip


def checkpointed(reentrant: bool) -> Tensor:
    model, x = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), torch.ones(3, 4, requires_grad=True)
    checkpoint(model, x, use_reentrant=reentrant).sum().backward()
    return x.grad


def state_put_back() -> list[Tensor]:
    state, first = torch.get_rng_state(), torch.rand(2)
    torch.set_rng_state(state)
    return [first, torch.rand(2)]


def forked() -> list[Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(-5)
        drawn = torch.rand(2)
    return [drawn, torch.rand(2)]


def seeded() -> list[Tensor]:
    seeds = [torch.initial_seed(), torch.manual_seed(seed=9).initial_seed(), torch.initial_seed()]
    return [torch.tensor(seeds), torch.rand(2)]


def generators() -> list[Tensor]:
    ours = torch.rand(2, generator=torch.Generator().manual_seed(3))
    return [ours, torch.rand(2, generator=torch.default_generator), torch.rand(2)]


def under_autocast() -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5))(ONES)


def vmapped() -> list[Tensor]:
    different = torch.func.vmap(lambda row: row + torch.rand(6), randomness="different")(ONES)
    return [different, torch.func.vmap(F.dropout, randomness="same")(ONES)]


WAYS: dict[str, Callable[[], Any]] = {
    "factories": lambda: [f(20) for f in (torch.rand, torch.randn, torch.randperm)],
    "randint": lambda: [torch.randint(9, (5,)), torch.randint(3, 9, (5,))],
    "randint_like": lambda: [torch.randint_like(ONES, 7), torch.randint_like(ONES, 2, 7)],
    "in place": lambda: [getattr(torch.empty(4, 6), name)(*args) for name, *args in IN_PLACE],
    "normal": lambda: [torch.normal(0.0, 1.0, (4,)), torch.normal(ONES, 1.0), torch.normal(ONES, ONES)],
    "counts": lambda: [torch.bernoulli(ONES / 3), torch.poisson(ONES), torch.binomial(9 * ONES, ONES / 3)],
    "dropout": lambda: [f(ONES, 0.5, True) for f in (F.dropout, F.alpha_dropout, F.feature_alpha_dropout)],
    "native_dropout": lambda: [torch.native_dropout(ONES, p, train) for p in (0.3, 1.0) for train in (True, False)],
    "attention": lambda: F.scaled_dot_product_attention(*3 * [torch.rand(2, 4, 8)], dropout_p=0.3),
    "LSTM": lambda: nn.LSTM(6, 5, 3, dropout=0.5, bidirectional=True)(ONES[None]),
    "MultiheadAttention": lambda: nn.MultiheadAttention(6, 2, dropout=0.3)(ONES, ONES, ONES),
    "layers": lambda: [p for layer in (nn.Linear(3, 4), nn.Conv2d(2, 3, 3), nn.Embedding(4, 5), nn.Bilinear(2, 3, 4),
                                       nn.ConvTranspose1d(2, 3, 3), nn.LSTMCell(3, 4)) for p in layer.parameters()],
    "init": lambda: [getattr(nn.init, f"{name}_")(torch.empty(6, 6)) for name in (
        "trunc_normal", "xavier_uniform", "xavier_normal", "kaiming_normal", "orthogonal")],
    "distributions": lambda: [d.sample((3,)) for d in (
        Normal(0.0, 1.0), Gamma(1.0, 2.0), Dirichlet(torch.ones(3)), Beta(1.0, 2.0), Categorical(torch.ones(4)),
        StudentT(3.0), MultivariateNormal(torch.zeros(2), torch.eye(2)), Binomial(5, torch.ones(2) / 3))],
    "checkpoint": lambda: [checkpointed(True), checkpointed(False)],
    "get_rng_state": state_put_back,
    "fork_rng": forked,
    "manual_seed": seeded,
    "generators": generators,
    "DataLoader": lambda: [b for b, in DataLoader(TensorDataset(torch.arange(8.0)), shuffle=True)],
    "autocast": under_autocast,
    "vmap": vmapped,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _everything_is_put_back() -> Iterator[None]:
    importlib.import_module("torch._dynamo")  # its first import replaces torch.manual_seed
    names = [(owner, name) for owner in (torch, torch.random) for name in ("manual_seed", "seed", "get_rng_state")]
    names.append((torch.random, "default_generator"))
    before = [getattr(owner, name) for owner, name in names]
    yield
    assert [getattr(owner, name) for owner, name in names] == before


def on_a_thread(function: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def flat(value: Any) -> list[Tensor]:
    return [value.detach()] if isinstance(value, Tensor) else [tensor for part in value for tensor in flat(part)]


@pytest.mark.filterwarnings("ignore:.*(jit.script|nested_tensor)")
@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_draw_is_as_alone(way: str) -> None:
    torch.manual_seed(11)
    alone, after = flat(WAYS[way]()), torch.get_rng_state()
    torch.manual_seed(12)
    shared, stream = torch.get_rng_state(), RandomStream(11)

    def draw() -> list[Tensor]:
        with stream:
            return flat(WAYS[way]())

    assert all(map(torch.equal, on_a_thread(draw), alone))
    assert torch.equal(stream.state()[0], after)
    assert torch.equal(torch.get_rng_state(), shared)


def test_seeds_on_other_threads_are_theirs_meanwhile() -> None:
    entered, seeded = threading.Barrier(2), threading.Barrier(2)

    def draw() -> list[float]:
        with RandomStream(5):
            entered.wait()
            seeded.wait()
            return torch.rand(3).tolist()

    with ThreadPoolExecutor(1) as pool:
        drawing = pool.submit(draw)
        entered.wait()
        torch.manual_seed(7)
        seeds, main_numbers = [torch.initial_seed(), torch.random.default_generator.initial_seed()], torch.rand(3)
        seeded.wait()
        thread_numbers = drawing.result()
    assert seeds == [7, 7]
    assert thread_numbers == torch.rand(3, generator=torch.Generator().manual_seed(5)).tolist()
    assert torch.equal(main_numbers, torch.rand(3, generator=torch.Generator().manual_seed(7)))


def test_a_stream_that_ends_leaves_those_of_other_threads() -> None:
    entered, ended = threading.Barrier(2), threading.Barrier(2)

    def draw() -> list[float]:
        with RandomStream(5):
            entered.wait()
            ended.wait()
            torch.manual_seed(6)
            return torch.rand(3).tolist()

    torch.manual_seed(7)
    with ThreadPoolExecutor(1) as pool:
        drawing = pool.submit(draw)
        entered.wait()
        with RandomStream(8):
            torch.rand(1)
        ended.wait()
        drawn = drawing.result()
    assert torch.initial_seed() == 7
    assert drawn == torch.rand(3, generator=torch.Generator().manual_seed(6)).tolist()


def test_no_gpu_is_seeded_beside_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)

    def seed() -> None:
        with RandomStream(5):
            torch.manual_seed(1)

    on_a_thread(seed)
    assert seeds == []
    seed()
    assert seeds == [1]


def test_a_stream_goes_on_as_threads_come_and_go() -> None:
    stream, drawn = RandomStream(4), []

    def draw() -> None:
        with stream, stream:
            drawn.append(torch.randn(3))

    def draw_nested() -> None:
        with RandomStream(8), stream:
            drawn.append(torch.randn(3))

    for turn in (draw, lambda: on_a_thread(draw), draw_nested, lambda: on_a_thread(draw_nested)):
        turn()
        stream.set_state(stream.state())
    generator = torch.Generator().manual_seed(4)
    assert all(torch.equal(numbers, torch.randn(3, generator=generator)) for numbers in drawn)


def test_a_stream_without_a_seed_goes_on_from_the_outer_one() -> None:
    def draw() -> list[Tensor]:
        with RandomStream(4):
            with RandomStream():
                inner = torch.rand(3)
            outer = torch.rand(3)
            torch.manual_seed(4)
            return [inner, outer, torch.rand(3)]

    torch.manual_seed(6)
    expected = torch.rand(3, generator=torch.Generator().manual_seed(4))
    assert all(torch.equal(numbers, expected) for numbers in (*draw(), *on_a_thread(draw)))
    assert torch.initial_seed() == 6


def test_an_operation_without_a_generator_is_refused() -> None:
    library = torch.library.Library("gradlab_tests", "FRAGMENT")
    library.define("noise(Tensor x) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
    library.impl("noise", lambda x: x + torch.rand(6), "CPU")
    library.impl("noise", lambda x: x, "Meta")

    def draw() -> list[float]:
        with RandomStream(5):
            with pytest.raises(RuntimeError, match=r"gradlab_tests.noise.default draws from PyTorch's global random"):
                torch.ops.gradlab_tests.noise(ONES)
            assert torch.ops.gradlab_tests.noise(ONES.to("meta")).is_meta  # other devices have their own generators
            return torch.rand(3).tolist()

    assert on_a_thread(draw) == torch.rand(3, generator=torch.Generator().manual_seed(5)).tolist()
    with RandomStream(5):
        assert torch.ops.gradlab_tests.noise(ONES).shape == ONES.shape


@pytest.mark.parametrize(
    ("kind", "message"), [("cuda", "A GPU draws .*'mine'.* 'cpu'"), ("compiled", "Compiled code draws .*'mine'")]
)
def test_what_takes_no_generator_is_refused_beside_threads(
    kind: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu, begun, over = torch.Generator().manual_seed(1), threading.Event(), threading.Event()
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "default_generators", (gpu,))
    torch.manual_seed(2)
    stream = RandomStream(5, **{kind: True})

    def train() -> None:
        begun.set()
        over.wait()

    thread = threading.Thread(target=train, name="mine")
    thread.start()
    begun.wait()
    try:
        with pytest.raises(RuntimeError, match=f"^{message}"), stream:
            pass
        assert (gpu.initial_seed(), torch.initial_seed()) == (1, 2)
    finally:
        over.set()
        thread.join()
    with stream:
        assert (gpu.initial_seed(), torch.initial_seed()) == (5 if kind == "cuda" else 1, 5)
    assert (gpu.initial_seed(), torch.initial_seed()) == (1, 2)


@pytest.mark.parametrize(("target", "counts"), [(on_a_thread, True), (json.dumps, False)])
def test_a_thread_that_has_just_begun_counts(target: Callable[..., Any], counts: bool) -> None:
    thread, lock = threading.Thread(target=target, name="new"), threading.Lock()
    thread.run = lock.acquire  # type: ignore[method-assign] - only Python's frames are on its stack, as before run()
    with lock:
        thread.start()
        assert learner_threads() == (["new"] if counts else [])
        assert others_may_draw()
    thread.join()
    assert (learner_threads(), others_may_draw()) == ([], False)


def test_beside_the_main_thread_a_cell_may_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradlab._process.threads._learner_threads", lambda: iter(()))
    assert on_a_thread(others_may_draw)
    assert not others_may_draw()


def test_threads_that_may_be_handed_code_may_draw() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        assert (learner_threads(), others_may_draw()) == ([], True)
        assert pool.submit(others_may_draw).result()
    timer = threading.Timer(600, test_threads_that_may_be_handed_code_may_draw)
    timer.start()
    assert (learner_threads(), others_may_draw()) == ([], True)
    timer.cancel()
    timer.join()
    assert not others_may_draw()


@pytest.mark.parametrize("collects", [True, False])
def test_no_garbage_is_collected_while_frames_are_listed(collects: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    enabled: list[bool] = []
    frames = sys._current_frames
    monkeypatch.setattr(sys, "_current_frames", lambda: enabled.append(gc.isenabled()) or frames())
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        learner_threads()
        assert enabled
        assert not any(enabled)
        assert gc.isenabled() == collects
    finally:
        (gc.enable if before else gc.disable)()
