"""The doctor reports PyTorch's warnings and errors at the learner's line, and counts those not shown."""

from __future__ import annotations

import inspect
import json
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from gradlab.doctor import watch
from gradlab.doctor.finding import Report
from gradlab.doctor.reports import format_report

X, Y = torch.ones(4, 3), torch.zeros(4, 1)


@pytest.fixture(autouse=True)
def always() -> Iterator[None]:
    """Show every warning, even if an earlier test has shown it."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda *args: None
        torch.set_warn_always(True)
        yield
        torch.set_warn_always(False)


def line_of(function: Callable[..., object], text: str) -> int:
    """Return the number of the only line of a function that has a text."""
    lines, first = inspect.getsourcelines(function)
    (number,) = [number for number, line in enumerate(lines, first) if text in line]
    return number


def net(*parts: nn.Module) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Sequential(nn.Linear(3, 1), *parts)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, loss_fn: Callable[[Tensor], Tensor], times: int) -> None:
    for _ in range(times):
        optimizer.zero_grad()
        loss_fn(model(X)).backward()
        optimizer.step()


# Warnings


def wide_target() -> None:
    train(*net(), lambda out: mse_loss(out, Y.expand(4, 3)), 3)  # here


def transposed_target() -> None:
    model, optimizer = net()
    for _ in range(2):
        optimizer.zero_grad()
        loss = nn.L1Loss()(model(X), Y.T)  # here
        loss.backward()
        optimizer.step()


def schedule_first() -> None:
    model, optimizer = net()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    schedule.step()  # here
    train(model, optimizer, Tensor.mean, 2)


def grad_of_a_result() -> None:
    model, optimizer = net()
    out = model(X)
    out.mean().backward()
    print(out.grad)  # here
    optimizer.step()


def used_up() -> None:
    model, optimizer = net()
    params = model.parameters()
    model(X).mean().backward()
    list(params)
    nn.utils.clip_grad_norm_(params, 1.0)  # here
    optimizer.step()


def one_layer_with_dropout() -> None:
    nn.LSTM(3, 1, dropout=0.5)  # here


def mean_of_kl() -> None:
    train(*net(), lambda out: nn.functional.kl_div(out, Y), 2)  # here


WARNED = [
    (wide_target, "loss-broadcasts", "warning", "Using a target size"),
    (transposed_target, "loss-broadcasts", "warning", "Using a target size"),
    (schedule_first, "scheduler-before-optimizer", "warning", "Detected call of `lr_scheduler.step()`"),
    (grad_of_a_result, "raised-by-pytorch", "warning", "that is not a leaf Tensor is being accessed"),
    (used_up, "raised-by-pytorch", "warning", "is an empty generator"),
    (one_layer_with_dropout, "raised-by-pytorch", "hint", "dropout option adds dropout after all but last"),
    (mean_of_kl, "raised-by-pytorch", "hint", "divides the total loss by both"),
]


@pytest.mark.parametrize(("loop", "code", "severity", "message"), WARNED, ids=lambda x: getattr(x, "__name__", ""))
def test_a_warning_becomes_a_finding_at_the_learners_line(
    loop: Callable[[], None], code: str, severity: str, message: str
) -> None:
    pattern = ".*" + re.escape(message)
    with pytest.warns(UserWarning, match=pattern) as alone:
        loop()
    with pytest.warns(UserWarning, match=pattern) as passed_on, watch() as report:
        loop()
    assert [str(each.message) for each in passed_on] == [str(each.message) for each in alone]
    here = (__file__, line_of(loop, "# here"))  # instead of a line of gradlab's, while calls are traced
    assert {(x.filename, x.lineno) for x in passed_on} <= {(x.filename, x.lineno) for x in alone} | {here}
    (finding,) = [each for each in report if each.code == code]
    assert (finding.file, finding.line) == here, report.text
    assert finding.severity == severity


def test_what_python_shows_is_put_back_exactly() -> None:
    before = warnings.showwarning
    with watch():
        assert warnings.showwarning is not before
    assert warnings.showwarning is before


def test_a_warning_in_gradlabs_files_is_shown_at_the_learners() -> None:
    ours = compile("warn('from ours')", inspect.getfile(watch), "exec")
    with pytest.warns(UserWarning, match="from ours") as shown, watch() as report:
        exec(ours, {"warn": warnings.warn})  # here
    assert (shown[0].filename, Path(shown[0].filename).name) == (__file__, "test_doctor_words.py")
    assert not report.findings


def own_words() -> None:
    warnings.warn("Using a target size that is my own", UserWarning, stacklevel=1)


def about_the_machine() -> None:
    nn.functional.dropout2d(X[None])  # FutureWarning or UserWarning on another day
    torch.utils.data.DataLoader(X, num_workers=4_000)


def second_order() -> None:
    model, optimizer = net()
    model(X).mean().backward(create_graph=True)
    optimizer.step()


@pytest.mark.parametrize("loop", [own_words, about_the_machine, second_order])
def test_what_is_not_about_training_or_not_pytorchs_is_none(loop: Callable[[], None]) -> None:
    with warnings.catch_warnings(record=True) as shown, watch() as report:
        loop()
    assert shown
    assert [text for each in report for text in ("worker", "own", "graph") if text in each.evidence] == []


# Errors


def one_row() -> None:
    model, optimizer = net(nn.BatchNorm1d(1))
    train(model, optimizer, Tensor.mean, 2)
    model(X[:1])  # here


def inference() -> None:
    model, optimizer = net()
    with torch.inference_mode():
        x = X * 2
    train(model, optimizer, lambda out: mse_loss(model(x), Y), 2)  # here


def shapes() -> None:
    model, optimizer = net()
    train(model, optimizer, Tensor.mean, 2)
    model(X.T)  # here


def by_an_operator() -> None:
    print(X @ X)  # here


def doubles() -> None:
    model, _ = net()
    model(X.double())  # here


def class_too_many() -> None:
    cross_entropy(torch.ones(2, 3), torch.tensor([1, 3]))  # here


def to_numpy() -> None:
    net()[0](X).numpy()  # here


STOPPED = [
    (one_row, "Expected more than 1 value per channel", "drop_last=True"),
    (inference, "Inference tensors cannot be saved for backward", "torch.no_grad()"),
    (shapes, "mat1 and mat2 shapes cannot be multiplied", "in_features"),
    (by_an_operator, "mat1 and mat2 shapes cannot be multiplied", "in_features"),
    (doubles, "must have the same dtype", ".float()"),
    (class_too_many, "Target 3 is out of bounds", "0 to C - 1"),
    (to_numpy, "Can't call numpy() on Tensor", ".detach()"),
]


@pytest.mark.parametrize(("loop", "message", "fix"), STOPPED, ids=lambda x: getattr(x, "__name__", ""))
def test_an_error_of_pytorch_becomes_a_finding(loop: Callable[[], None], message: str, fix: str) -> None:
    with pytest.raises((RuntimeError, ValueError, IndexError)) as caught, watch() as report:
        loop()
    assert message in str(caught.value)
    (finding,) = report
    assert (finding.code, finding.severity) == ("raised-by-pytorch", "error")
    assert (finding.file, finding.line) == (__file__, line_of(loop, "# here"))
    assert message in finding.evidence
    assert fix in finding.fix
    assert report.summary.startswith(f"1 finding. The block ended with {type(caught.value).__name__} in line ")


def test_an_error_of_the_learners_own_is_told_without_a_finding() -> None:
    def faulty() -> None:
        train(*net(), Tensor.mean, 3)
        raise ValueError("no such label")

    with pytest.raises(ValueError, match="no such label"), watch() as report:
        faulty()
    assert not report.findings
    ended = (
        f"The block ended with ValueError in line {line_of(faulty, 'raise')} (no such label); until then: watched 3 "
    )
    assert report.text.startswith(ended)
    assert json.loads(format_report(report, "json"))["ended"] + "; until then: watched 3 " == ended
    with pytest.raises(KeyError), watch() as report:
        print({}["none"])
    assert not report.findings
    assert report.text.endswith("('none'); until then: no backward pass and no step.")


def own_runtime_error() -> None:
    raise RuntimeError("a tensor of mine")


def interrupted() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("loop", [own_runtime_error, interrupted, lambda: int("x"), lambda: exit(3)])
def test_what_pytorch_has_not_raised_is_no_finding(loop: Callable[[], None]) -> None:
    with pytest.raises(BaseException), watch() as report:  # noqa: B017, PT011 - of any kind
        loop()
    assert not report.findings


# Was anything checked?


def test_the_last_line_counts_what_was_checked() -> None:
    model, optimizer = net()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    with watch() as report:
        for _ in range(6):
            model.train()
            optimizer.zero_grad()
            mse_loss(model(X), Y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            model.eval()
    counts = "6 backward passes, 6 steps, 6 clips, 6 scheduler steps, 6 model calls, 12 train() or eval() calls, "
    assert report.checked.startswith(f"Checked: {counts}4 losses examined in detail.")
    assert report.text.endswith(f"\n\n{report.checked}")
    assert report.checked in report._repr_html_()
    assert report.as_dict()["checked"] == report.checked
    assert report.checked in format_report(report, "github")


def test_the_last_line_says_what_could_not_be_judged() -> None:
    class Halving(torch.optim.SGD):
        pass

    model, _ = net()
    optimizer = Halving(model.parameters(), lr=0.01)
    with watch() as report:
        for _ in range(3):
            optimizer.zero_grad()
            mse_loss(model(X), Y).backward()
            for p in model.parameters():
                p.grad.mul_(0.5)
            optimizer.step()
    assert "Not judged: the inside of the step of Halving, which is not PyTorch's; gradients that" in report.checked
    assert "(3 times)" in report.checked


def test_nothing_is_claimed_where_nothing_was_trained() -> None:
    with watch() as report:
        pass
    assert report.checked == Report().checked == ""
