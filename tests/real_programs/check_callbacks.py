"""The callbacks in the trainers that they are for; the nightly workflow runs this file, which needs the real packages.

``python -m pytest tests/real_programs/check_callbacks.py``; the ordinary tests do not collect it.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from gradlab.doctor import integrations

FORGETS = "missing-zero-grad"


class TestLightningDoctor:
    @pytest.fixture
    def fit(self) -> Any:
        lightning = pytest.importorskip("lightning", reason="needs lightning")
        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

        class Module(lightning.LightningModule):
            def __init__(self, mistake: str) -> None:
                super().__init__()
                self.mistake, self.net = mistake, torch.nn.Linear(4, 1)

            def training_step(self, batch: Any, index: int) -> torch.Tensor:
                if self.mistake == "raises" and index == 3:
                    raise ValueError("mine")
                return self.net(batch[0]).pow(2).mean()

            def optimizer_zero_grad(self, epoch: int, batch_idx: int, optimizer: Any) -> None:
                if self.mistake != "forgets":
                    optimizer.zero_grad()

            def configure_optimizers(self) -> torch.optim.Optimizer:
                return torch.optim.SGD(self.parameters(), lr=0.01)

        def fit(mistake: str, *callbacks: Any) -> Module:
            lightning.seed_everything(0, verbose=False)
            module = Module(mistake)
            off = dict.fromkeys(
                ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
            )
            trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", callbacks=list(callbacks), **off)
            trainer.fit(module, DataLoader(TensorDataset(torch.ones(64, 4)), 8))
            return module

        return fit

    def test_a_healthy_training_has_the_same_weights_and_no_finding(self, fit: Any, capsys: Any) -> None:
        doctor = integrations.LightningDoctor()
        weights = [fit("", *callbacks).net.weight for callbacks in ((), (doctor,))]
        assert torch.equal(*weights)
        assert "No findings. Watched 16 backward passes, 16 updates of SGD." in capsys.readouterr().out
        assert not doctor.report

    def test_a_mistake_is_found(self, fit: Any, capsys: Any) -> None:
        doctor = integrations.LightningDoctor()
        fit("forgets", doctor)
        assert FORGETS in doctor.report.codes
        assert FORGETS in capsys.readouterr().out

    def test_an_error_ends_the_watch(self, fit: Any, capsys: Any) -> None:
        doctor = integrations.LightningDoctor()
        with pytest.raises(ValueError, match="mine"):
            fit("raises", doctor)
        assert "Watched 3 backward passes" in capsys.readouterr().out
        backward = torch.autograd.graph._engine_run_backward
        assert "gradlab" not in backward.__module__


class TestTrainerDoctor:
    @pytest.fixture
    def train(self, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
        transformers = pytest.importorskip("transformers", reason="needs transformers")
        pytest.importorskip("accelerate", reason="needs accelerate")
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")

        class Net(torch.nn.Module):
            def __init__(self, frozen: bool) -> None:
                super().__init__()
                self.net, self.head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
                self.frozen = frozen

            def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
                loss = (self.head(self.net(x).relu()) - labels).pow(2).mean()
                if self.frozen:  # a loss made anew: nothing is learned
                    loss = torch.tensor(loss.item(), requires_grad=True)
                return {"loss": loss}

        def train(frozen: bool, *callbacks: Any) -> Net:
            transformers.set_seed(0)
            model = Net(frozen)
            rows = [{"x": torch.ones(4) * row, "labels": torch.ones(1)} for row in range(32)]
            asked = {"max_steps": 8, "report_to": [], "use_cpu": True, "disable_tqdm": True, "save_strategy": "no"}
            arguments = transformers.TrainingArguments(str(tmp_path), gradient_accumulation_steps=2, **asked)
            transformers.Trainer(model, arguments, train_dataset=rows, callbacks=list(callbacks)).train()
            return model

        return train

    def test_a_healthy_training_has_the_same_weights_and_no_finding(self, train: Any, capsys: Any) -> None:
        doctor = integrations.TrainerDoctor()
        weights = [train(False, *callbacks).head.weight for callbacks in ((), (doctor,))]
        assert torch.equal(*weights)
        assert not doctor.report.wrong
        assert "No findings. Watched " in capsys.readouterr().out

    def test_a_mistake_is_found(self, train: Any) -> None:
        doctor = integrations.TrainerDoctor()
        train(True, doctor)
        assert doctor.report.wrong
        assert "graph-broken" in doctor.report.codes
