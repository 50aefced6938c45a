"""A forecast never touches the reader's model, and counts it right: odd models, before and after, object by object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import spectral_norm

from gradlab import Recipe
from gradlab.forecasting import ForecastError, forecast
from gradlab.forecasting.simulate import simulate
from gradlab.forecasting.training import Training
from gradlab.forecasting.workload import as_workload
from tests.forecasting.test_forecast import run_under_ledger

RECIPE = Recipe(optimizer="adamw", lr=1e-3)


class Wrapped(nn.Module):
    """Layers, and a forward of whatever a test wants."""

    def __init__(self, forward: Callable[[Any, Tensor], Tensor] | None = None, **parts: Any) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 8)
        self.then = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(torch.relu(self.a(x))) if self.then is None else self.then(self, x)


class Block(nn.Module):
    """As minGPT's: the MLP is called through a lambda that holds a dictionary of modules."""

    def __init__(self) -> None:
        super().__init__()
        self.mlp = nn.ModuleDict({"fc": nn.Linear(8, 32), "proj": nn.Linear(32, 8), "act": nn.GELU()})
        m = self.mlp
        self.mlpf = lambda x: m["proj"](m["act"](m["fc"](x)))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mlpf(x)


def closure_over_a_parameter() -> nn.Module:
    model = Wrapped()
    weight = model.a.weight
    model.then = lambda self, x: self.b(x @ weight.t() + self.a.bias)
    return model


def old_gradients() -> nn.Module:
    model = Wrapped()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    return model


def hooks() -> nn.Module:
    model = Wrapped()
    model.a.bias.register_hook(lambda grad: grad * 2)
    model.a.register_forward_hook(lambda module, inputs, output: output * 2)
    model.b.register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))
    model.b.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    return model


def batch_norm_in_a_closure() -> nn.Module:
    model = Wrapped(norm=nn.BatchNorm1d(16))
    norm = model.norm
    model.then = lambda self, x: self.b(norm(self.a(x)))
    return model


def weight_of_a_global() -> nn.Module:
    return Wrapped(lambda self, x: self.b(self.a(x)) * TEMPERATURE)


TEMPERATURE = nn.Parameter(torch.ones(()))


ODD: dict[str, Callable[[], nn.Module]] = {
    "minGPT's Block": Block,
    "a closure over a parameter": closure_over_a_parameter,
    "old gradients": old_gradients,
    "a seed set in forward": lambda: Wrapped(lambda self, x: (torch.manual_seed(7), self.b(self.a(x)))[1]),
    "hooks": hooks,
    "BatchNorm in a closure": batch_norm_in_a_closure,
    "evaluating": lambda: Wrapped().eval(),
    "spectral norm": lambda: nn.Sequential(spectral_norm(nn.Linear(8, 8)), nn.ReLU(), nn.Linear(8, 8)),
    "a parameter outside": weight_of_a_global,
    "an LSTM": lambda: Wrapped(lambda self, x: self.b(self.a(x)) + self.rnn(x[None])[0][0], rnn=nn.LSTM(8, 8)),
    "a transformer's layer": lambda: Wrapped(
        lambda self, x: self.b(self.a(self.layer(x[None])[0])), layer=nn.TransformerEncoderLayer(8, 2, 16)
    ),
}
NOT_COUNTED_ALIKE = ("an LSTM",)  # oneDNN's on a real CPU keeps a workspace of its own


def state(model: nn.Module) -> dict[str, Any]:
    """All that a model is, object by object."""
    values: dict[str, Any] = {}
    for name, module in model.named_modules():
        for key, value in vars(module).items():
            values[f"{name}/{key}"] = value
            if isinstance(value, dict):
                values |= {f"{name}/{key}[{k!r}]": each for k, each in value.items()}
    for name, parameter in model.named_parameters():
        values[f"{name}.grad"] = parameter.grad
        values[f"{name} hooks"] = tuple((parameter._backward_hooks or {}).values())
        after = getattr(parameter, "_post_accumulate_grad_hooks", None)
        values[f"{name} hooks after"] = tuple((after or {}).values())
    return values


@contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    tensors = [*model.parameters(), *model.buffers()]
    values = [(t, t.detach().clone(), t._version) for t in tensors]
    grads = [(p, None if p.grad is None else p.grad.clone()) for p in model.parameters()]
    before, rng = state(model), torch.get_rng_state()
    yield
    after = state(model)
    assert after.keys() == before.keys()
    for key, value in before.items():
        assert after[key] is value or after[key] == value, key
        assert type(after[key]) is type(value), key
    for tensor, value, version in values:
        assert torch.equal(tensor, value)
        assert tensor._version == version
    for parameter, grad in grads:
        assert (parameter.grad is None) == (grad is None)
        assert grad is None or torch.equal(parameter.grad, grad)
    assert torch.equal(rng, torch.get_rng_state())


def sample() -> tuple[Tensor, Tensor]:
    return torch.ones(4, 8), torch.zeros(4, 8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_an_odd_model_is_what_it_was_and_counted_as_a_real_run(name: str) -> None:
    torch.manual_seed(0)
    model = ODD[name]()
    x, y = sample()
    with unchanged(model):
        update = simulate(as_workload(model, (x, y), None, None), Training(RECIPE))
        forecast(model, RECIPE.replace(amp="bf16"), batch=(x, y))
    assert TEMPERATURE.grad is None
    ledger = run_under_ledger(model, nn.functional.mse_loss, [(x, y)], 3, Training(RECIPE))
    if name not in NOT_COUNTED_ALIKE:
        assert update.peak_at.top == ledger.peak
        for category in ("weights", "optimizer"):
            assert update.peak_at.high[category] == ledger.at_peak[category]
    for parameter in (*model.parameters(), TEMPERATURE):
        assert parameter.grad is None or type(parameter.grad) is Tensor
    TEMPERATURE.grad = None


@pytest.mark.parametrize("dtype", [None, "bf16"])
def test_closures_and_hooks_lead_to_weights_of_the_dtype_given(dtype: str | None) -> None:
    def build(forward: Callable[[Any, Tensor], Tensor] | None = None) -> Wrapped:
        model = Wrapped(forward)
        model.b.weight.register_hook(lambda grad: dtypes.append(grad.dtype))
        return model

    dtypes: list[torch.dtype] = []
    model = build()
    layer = model.a
    model.then = lambda self, x: self.b(torch.relu(layer(x)))
    with unchanged(model):
        result = forecast(model, RECIPE, batch=sample(), dtype=dtype)
    assert result.at_peak == forecast(build(), RECIPE, batch=sample(), dtype=dtype).at_peak
    assert set(dtypes) == {torch.bfloat16 if dtype else torch.float32}


def test_parameters_without_a_shape_are_refused() -> None:
    model = nn.Sequential(nn.Linear(8, 4), nn.LazyLinear(8))
    with pytest.raises(ValueError, match=r"1\.weight of Sequential is a lazy parameter, .*: run model\(x\) once"):
        forecast(model, RECIPE, batch=sample())


def test_a_hook_that_may_step_an_optimizer_is_refused() -> None:
    """pytorch.org, "How to save memory by fusing the optimizer step into the backward pass"."""
    model = Wrapped()
    optimizer = torch.optim.Adam(model.parameters())
    model.a.weight.register_post_accumulate_grad_hook(lambda parameter: optimizer.step())
    with unchanged(model), pytest.raises(ValueError, match=r"of Wrapped has a hook .*without that hook"):
        forecast(model, RECIPE, batch=sample())
    assert not optimizer.state


def test_a_model_that_fails_midway_is_what_it_was() -> None:
    model = Wrapped()
    shapes = dict.fromkeys(model.parameters(), 1)
    model.b.weight.register_hook(lambda grad: shapes[grad])
    with unchanged(model), pytest.raises(ForecastError, match=r"KeyError.* in <lambda>"):
        forecast(model, RECIPE, batch=sample())
    assert type(torch.ones(2)) is Tensor


def test_what_equal_means() -> None:
    """The comparison itself can fail."""
    model = Wrapped()
    with pytest.raises(AssertionError), unchanged(model):
        model.a.weight.grad = torch.zeros_like(model.a.weight)
    with pytest.raises(AssertionError), unchanged(model):
        model.cache = 1
