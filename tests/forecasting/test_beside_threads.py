"""A forecast changes nothing for other threads: their kernels, autocast, scalers, steps and random numbers."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import optimizer as torch_optimizer

from gradlab import Recipe
from gradlab.forecasting import ForecastError, forecast
from gradlab.forecasting.cuda_rules import cuda_rules
from gradlab.forecasting.fake_mode import FakeTensors

F = nn.functional


class Training:
    """A training with autocast, dropout and a scaler that skips each third step; its random numbers are its own."""

    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(0)
        self.model = nn.Sequential(nn.Linear(8, 8), nn.RMSNorm(8, elementwise_affine=False), nn.Linear(8, 8))
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=self.generator))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
        self.updates: list[Any] = []
        """Of each: the nodes of its graph, types, whether it was skipped, the scale, and what asks for CUDA."""

    def update(self) -> None:
        self.optimizer.zero_grad()
        x = torch.randn(4, 8, generator=self.generator)
        with torch.autocast("cpu", torch.bfloat16):
            hidden = self.model(x)
            scores = F.softmax(hidden, -1)
        used = hidden.float() + 0 * F.dropout(scores, 0.5)  # a mask has no effect but for its node
        loss = used.square().mean() * (float("inf") if len(self.updates) % 3 == 1 else 1.0)
        before = self.weights()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        skipped = all(map(torch.equal, before, self.weights()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            on_cuda = torch.autocast("cuda", torch.bfloat16, enabled=torch.cuda.is_available())
            scaler = torch.amp.GradScaler("cuda")
        state = on_cuda.device, scaler.is_enabled()
        self.updates.append((nodes(loss.grad_fn), hidden.dtype, scores.dtype, skipped, self.scaler.get_scale(), state))

    def weights(self) -> list[Tensor]:
        return [parameter.detach().clone() for parameter in self.model.parameters()]

    def assert_as_alone(self) -> None:
        alone = Training()
        for _ in self.updates:
            alone.update()
        assert self.updates == alone.updates
        assert all(map(torch.equal, self.weights(), alone.weights()))


def nodes(node: Any) -> list[str]:
    return [] if node is None else [node.name(), *(name for after, _ in node.next_functions for name in nodes(after))]


class Interrupted(nn.Module):
    """A layer before which something else happens."""

    def __init__(self, first: Callable[[], Any]) -> None:
        super().__init__()
        self.first, self.layer = first, nn.Sequential(nn.Linear(8, 8), nn.RMSNorm(8), nn.Dropout(0.1))

    def forward(self, x: Tensor) -> Tensor:
        self.first()
        return self.layer(x)


def pair() -> tuple[Tensor, Tensor]:
    return torch.zeros(4, 8), torch.zeros(4, 8)


@pytest.fixture
def elsewhere() -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Run a function on another thread, always the same one, and wait for it."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # from now on there is another thread
        yield lambda function: pool.submit(function).result()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_an_update_in_another_thread_is_what_it_is_alone(device: str, elsewhere: Any) -> None:
    training, moments = Training(), []

    def turn(moment: str = "forward") -> None:
        moments.append(moment)
        elsewhere(training.update)

    def loss_fn(output: Tensor, y: Tensor) -> Tensor:
        turn("autocast")
        return F.mse_loss(output, y)

    model = Interrupted(turn)
    model.layer[0].bias.register_hook(lambda grad: turn("backward"))
    forecast(model, Recipe(optimizer="adamw", amp="fp16"), batch=pair(), loss_fn=loss_fn, device=device)
    assert moments == ["forward", "autocast", "backward"] * 2
    training.assert_as_alone()


@pytest.mark.slow
def test_a_thread_that_trains_all_the_time_gets_no_error() -> None:
    training, begun, stop = Training(), threading.Event(), threading.Event()

    def train() -> None:
        while not stop.is_set():
            training.update()
            begun.set()

    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(10)])
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(train)
        begun.wait()
        try:
            for amp in ("off", "bf16", "fp16"):
                forecast(model, Recipe(amp=amp), batch=pair())
        finally:
            stop.set()
        done.result()
    training.assert_as_alone()


def test_two_forecasts_in_two_threads_end_in_any_order(elsewhere: Any) -> None:
    functions = torch.autocast.__init__, torch.clear_autocast_cache

    def forward() -> list[Any]:
        x, weight = torch.empty(4, 8), nn.Parameter(torch.empty(8, 8))
        with torch.autocast("cuda", torch.bfloat16):
            hidden = F.dropout(F.linear(x, weight), 0.5)
        return [nodes(hidden.grad_fn), hidden.dtype]

    rules = [cuda_rules(), cuda_rules()]
    modes = [FakeTensors(cuda=True), FakeTensors(cuda=True)]
    rules[0].__enter__()
    with modes[0]:
        alone = forward()
    elsewhere(rules[1].__enter__)
    with modes[0]:
        assert forward() == alone
    rules[0].__exit__(None, None, None)
    assert "NativeDropoutBackward0" not in nodes(F.dropout(torch.ones(2, requires_grad=True), 0.5).grad_fn)

    def other() -> list[Any]:
        with modes[1]:
            return forward()

    assert "NativeDropoutBackward0" in alone[0]
    assert elsewhere(other) == alone
    elsewhere(lambda: rules[1].__exit__(None, None, None))
    assert (torch.autocast.__init__, torch.clear_autocast_cache) == functions


def test_gradients_of_a_training_meanwhile_stay(elsewhere: Any) -> None:
    model = Interrupted(lambda: elsewhere(train))
    real, x = dict(model.named_parameters()), torch.ones(4, 8)

    def train() -> None:
        for parameter in real.values():
            parameter.grad = None
        F.linear(x, real["layer.0.weight"], real["layer.0.bias"]).sum().backward()

    forecast(model, batch=pair())
    assert torch.equal(real["layer.0.weight"].grad, torch.full((8, 8), 4.0))
    assert real["layer.1.weight"].grad is None


def test_nothing_is_left_behind() -> None:
    targets = (torch, "clear_autocast_cache"), (torch.autocast, "__init__")
    before = [getattr(*target) for target in targets]

    def fail() -> None:
        raise ZeroDivisionError

    for first in (lambda: None, fail):
        try:
            forecast(Interrupted(first), Recipe(amp="fp16"), batch=pair())
        except ForecastError:
            assert first is fail
        x = torch.ones(2, 8, requires_grad=True)
        assert nodes(F.dropout(x, 0.5).grad_fn) == ["MulBackward0", "torch::autograd::AccumulateGrad"]
        assert "FusedRmsNormBackward0" not in nodes(F.rms_norm(x, (8,)).grad_fn)
        assert [getattr(*target) for target in targets] == before
        assert not torch_optimizer._global_optimizer_pre_hooks
        assert not torch.nn.modules.module._global_forward_hooks


def test_no_random_number_is_drawn_twice(elsewhere: Any) -> None:
    numbers: list[float] = []

    def draw() -> None:
        if not numbers:
            torch.default_generator.manual_seed(3)
        numbers.append(torch.rand(1).item())

    blocks = nn.Sequential(*[Interrupted(lambda: (torch.manual_seed(0), elsewhere(draw))) for _ in range(3)])
    forecast(blocks, batch=pair(), checkpoint=True)
    assert numbers == torch.rand(len(numbers), generator=torch.Generator().manual_seed(3)).tolist()
    assert numbers
