"""The callbacks for trainers, as far as they can be tried without the trainers (tests/real_programs has the rest)."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn

from gradlab import watch


@pytest.fixture
def integrations(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as it is before a class was asked for."""
    monkeypatch.delitem(sys.modules, "gradlab.doctor.integrations", raising=False)
    return importlib.import_module("gradlab.doctor.integrations")


@pytest.mark.parametrize(
    ("name", "packages", "install"),
    [
        ("LightningDoctor", ["lightning", "lightning.pytorch", "pytorch_lightning"], "pip install lightning"),
        ("TrainerDoctor", ["transformers"], "pip install transformers"),
    ],
)
def test_a_missing_package_is_named(integrations, monkeypatch, name: str, packages: list[str], install: str) -> None:
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"{name} needs .*{install}"):
        getattr(integrations, name)


def train(forgets: bool, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for _ in range(12):
        if not forgets:
            optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_a_callback_subclasses_that_of_the_loaded_package(integrations, monkeypatch, capsys, package) -> None:
    class Callback:
        pass

    monkeypatch.setitem(sys.modules, package, SimpleNamespace(Callback=Callback))
    doctor = integrations.LightningDoctor()
    assert isinstance(doctor, Callback)
    model = nn.Linear(4, 1)
    trainer = SimpleNamespace(is_global_zero=True)
    doctor.on_fit_start(trainer, model)
    train(True, model, torch.optim.SGD(model.parameters(), lr=0.1))
    doctor.on_fit_end(trainer, model)
    assert doctor.report.codes == ["missing-zero-grad"]
    assert "missing-zero-grad" in capsys.readouterr().out


class Wrapper(torch.optim.Optimizer):
    """As accelerate's and Lightning's: an optimizer by its class, with nothing of its own."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    def __getattr__(self, name: str):
        return getattr(self.optimizer, name)

    def step(self) -> None:
        self.optimizer.step()


def test_a_trainers_wrapper_is_the_optimizer_that_it_wraps() -> None:
    model = nn.Linear(4, 1)
    wrapped = Wrapper(torch.optim.SGD(model.parameters(), lr=0.1))
    with watch() as report:
        train(False, model, wrapped)
    assert not report
    assert report.watched.count("updates of") == 1
    assert "12 updates of" in report.watched
