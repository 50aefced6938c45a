"""Updates in another form: a closure, or a GradScaler. An error there gets the line that leads to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from test_doctor_words import X, Y, line_of, net
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from gradlab.doctor import watch

# Closures


def lbfgs() -> tuple[nn.Module, torch.optim.Optimizer]:
    model, _ = net()
    return model, torch.optim.LBFGS(model.parameters())


def detached() -> None:
    model, optimizer = lbfgs()
    out = model(X).detach()  # made

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = mse_loss(out, Y)
        loss.backward()
        return loss

    optimizer.step(closure)


def without_grad() -> None:
    model, optimizer = lbfgs()
    with torch.no_grad():
        out = model(X)  # made
    out = out.clone()

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = (out - Y).square().mean()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)


def undetached() -> None:
    model, optimizer = lbfgs()
    out = model(X)  # made

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = mse_loss(out, Y)
        loss.backward()
        return loss

    optimizer.step(closure)


class Fitter:
    """Keeps its loss, and computes it before the step."""

    def fit(self) -> None:
        self.model, self.optimizer = lbfgs()
        self.loss = mse_loss(self.model(X), Y)  # made
        self.optimizer.step(self.closure)

    def closure(self) -> Tensor:
        self.optimizer.zero_grad()
        self.loss.backward()
        return self.loss


@pytest.mark.parametrize(
    ("loop", "source", "code"),
    [
        (detached, detached, "graph-broken"),
        (without_grad, without_grad, "graph-broken"),
        (undetached, undetached, "backward-twice"),
        (lambda: Fitter().fit(), Fitter, "backward-twice"),
    ],
)
def test_a_forward_pass_outside_the_closure_is_to_be_moved_in(
    loop: Callable[[], None], source: Callable[..., object], code: str
) -> None:
    with pytest.raises(RuntimeError, match=r"does not require grad|a second time"), watch() as report:
        loop()
    (finding,) = report
    assert finding.code == code
    assert "The forward pass is outside the closure" in finding.message
    assert "into the closure" in finding.fix
    assert finding.cause is not None
    assert finding.cause.line == line_of(source, "# made")


def test_a_cut_inside_a_closure_is_told_as_before() -> None:
    model, optimizer = lbfgs()

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = mse_loss(model(X).detach(), Y)
        loss.backward()
        return loss

    with pytest.raises(RuntimeError, match="does not require grad"), watch() as report:
        optimizer.step(closure)
    (finding,) = report
    assert (finding.code, "closure" in finding.message) == ("graph-broken", False)


# The scaler


def jumped_over(scaler: torch.amp.GradScaler) -> None:
    model, optimizer = net()
    for factor in (float("inf"), 1.0, 1.0):
        optimizer.zero_grad()
        scaler.scale(model(X).mean() * factor).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if not norm.isfinite():
            continue  # missing
        scaler.step(optimizer)
        scaler.update()


def inside_an_if(scaler: torch.amp.GradScaler) -> None:
    model, optimizer = net()
    for factor in (1.0, float("nan"), 1.0):
        scaler.scale(model(X).mean() * factor).backward()
        scaler.unscale_(optimizer)
        if nn.utils.clip_grad_norm_(model.parameters(), 1.0).isfinite():  # missing
            scaler.step(optimizer)
            scaler.update()
        optimizer.zero_grad()


@pytest.mark.parametrize("loop", [jumped_over, inside_an_if])
def test_an_update_left_out_is_not_told_as_unscaled_twice(loop: Callable[..., None]) -> None:
    message = r"unscale_\(\) has already been called on this optimizer since the last update\(\)"
    with pytest.raises(RuntimeError, match=message), watch() as report:
        loop(torch.amp.GradScaler("cpu"))
    (finding,) = report
    assert finding.code == "scaler-step-without-update", report.text
    assert finding.cause is not None
    assert finding.cause.line == line_of(loop, "# missing")


def never_updated(scaler: torch.amp.GradScaler) -> None:
    model, optimizer = net()
    for factor in (float("inf"), 1.0):
        optimizer.zero_grad()
        scaler.scale(model(X).mean() * factor).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)


def test_a_skipped_step_without_update_is_told_with_its_line() -> None:
    with pytest.raises(RuntimeError, match=r"unscale_\(\) is being called after step\(\)"), watch() as report:
        never_updated(torch.amp.GradScaler("cpu"))
    (finding,) = report
    assert (finding.code, finding.fix) == ("scaler-step-without-update", "scaler.update()")


def unscaled_in_each_part(scaler: torch.amp.GradScaler) -> None:
    model, optimizer = net()
    for _ in range(2):
        scaler.scale(model(X).mean()).backward()
        scaler.unscale_(optimizer)


def test_windows_that_unscale_each_part_are_told_as_before() -> None:
    with pytest.raises(RuntimeError, match="unscale_"), watch() as report:
        unscaled_in_each_part(torch.amp.GradScaler("cpu"))
    (finding,) = report
    assert (finding.code, "twice" in finding.message) == ("raised-by-pytorch", True)
