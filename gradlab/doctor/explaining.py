"""PyTorch's own errors in the learner's terms."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from .events import NOWHERE, Site
from .lines import text
from .rules import Case
from .sites import rank


def explain(case: Case, error: BaseException) -> None:
    """Add a finding for an exception whose cause is known; others are left to speak for themselves."""
    said = str(error)
    site = _place(error.__traceback__)
    for words, finder in _KNOWN:
        if words in said:
            finder(case, site, said)
            return
    if isinstance(error, (AttributeError, TypeError)) and "None" in said and ".grad" in text(site):
        _grad_is_none(case, site)


def _place(trace: TracebackType | None) -> Site:
    """Return the innermost line of the learner's own code."""
    found: Site = ("", 0)
    while trace is not None:
        if rank(trace.tb_frame.f_code.co_filename) == 2:
            found = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return found


def _no_graph(case: Case, site: Site, said: str) -> None:
    for optimizer, cover in case.book.covers.items():
        if cover and case.recorder.pages.frozen(cover) == cover:
            made = case.made[optimizer].site
            case.find(
                "optimizer-params-frozen",
                "error",
                made if made != NOWHERE else site,
                "None of this optimizer's parameters requires a gradient, so backward() has nowhere to go.",
                f"all {cover.bit_count()} parameters of {case.name(optimizer)} have requires_grad=False",
                "p.requires_grad_(True)  # for the parameters that should learn",
            )
            return
    case.find(
        "graph-broken",
        "error",
        site,
        "The loss is not connected to any parameter, so there is nothing to go back through.",
        "PyTorch: element 0 of tensors does not require grad",
        "# compute the loss from the model's own output: no .detach(), .data, .item(), torch.tensor(...) or no_grad()",
    )


def _carried(case: Case, site: Site, said: str) -> None:
    case.find(
        "carried-state-not-detached",
        "error",
        site,
        "This loss depends on a state of the last update, whose graph is gone: it was carried on undetached.",
        "PyTorch: " + said.splitlines()[0][:160],
        "state = state.detach()  # before the next batch",
    )


def _twice(case: Case, site: Site, said: str) -> None:
    newest = case.recorder.newest
    if newest is not None and newest.carried:
        _carried(case, site, said)
    else:
        case.find(
            "backward-twice",
            "error",
            site,
            "backward() goes a second time through a graph that the first one has freed.",
            "PyTorch: trying to backward through the graph a second time",
            "(loss_a + loss_b).backward()  # once, for all losses that share a graph",
        )


def _in_place(case: Case, site: Site, said: str) -> None:
    newest = case.recorder.newest
    if newest is not None and newest.carried:
        _carried(case, site, said)
        return
    case.find(
        "modified-in-place",
        "error",
        site,
        "A tensor that backward() needs was overwritten after it had been used: by an in-place operation, or by a "
        "step() between forward and backward.",
        "PyTorch: " + said.splitlines()[0][:160],
        "x = x + 1  # instead of x += 1; and all backward() calls before the first step()",
    )


def _second_scaler_step(case: Case, site: Site, said: str) -> None:
    case.find(
        "scaler-step-without-update",
        "error",
        case.recorder.scaler_step if "unscale_" in said else site,
        "scaler.step() is called again although scaler.update() has not closed the last update.",
        "PyTorch: " + said.splitlines()[0][:160],
        "scaler.update()  # once an update, after the last scaler.step()",
    )


def _second_unscale(case: Case, site: Site, said: str) -> None:
    case.find(
        "unscale-twice",
        "error",
        site,
        "scaler.unscale_() is called twice for one update: the gradients may be divided only once.",
        "PyTorch: " + said.splitlines()[0][:160],
        "scaler.unscale_(optimizer)  # once, right before clipping",
    )


def _grad_is_none(case: Case, site: Site) -> None:
    case.find(
        "grad-none-after-zero-grad",
        "error",
        site,
        "`.grad` is None here: zero_grad() takes the tensor away, and before the first backward() there is none.",
        f"the line reads {text(site).strip()[:80]!r}",
        "if p.grad is not None: ...  # or read it between backward() and zero_grad()",
    )


def _out_of_memory(case: Case, site: Site, said: str) -> None:
    case.find(
        "out-of-memory",
        "error",
        site,
        "The device has no room left for what this line asks for.",
        "PyTorch: " + said.splitlines()[0][:160],
        "# a smaller batch with accumulation, checkpointing, or bf16: gradlab.forecast says what would fit",
    )


def _never_scaled(case: Case, site: Site, said: str) -> None:
    newest = case.recorder.newest
    case.find(
        "scaler-bypassed",
        "error",
        newest.site if newest is not None else site,
        "scaler.step() divides the gradients by the loss scale, but the loss was never multiplied by it.",
        "PyTorch: " + said.splitlines()[0][:160],
        "scaler.scale(loss).backward()",
    )


def _nothing_to_unscale(case: Case, site: Site, said: str) -> None:
    wipes = [wipe for cycle in case.book.cycles.values() for wipe in cycle.wipes if wipe.clear.site != NOWHERE]
    if wipes:
        case.find(
            "zero-grad-between-backward-and-step",
            "error",
            wipes[-1].clear.site,
            "The gradients are cleared after backward() and before step(), so the step has nothing to apply.",
            "PyTorch: " + said.splitlines()[0][:160],
            "optimizer.zero_grad()  # move it above the backward pass, or below scaler.step(optimizer)",
        )
        return
    case.find(
        "step-without-backward",
        "error",
        site,
        "scaler.step() finds no gradient: no backward() has reached this optimizer's parameters.",
        "PyTorch: " + said.splitlines()[0][:160],
        "scaler.scale(loss).backward()  # before scaler.step(optimizer)",
    )


def _schedule_at_its_end(case: Case, site: Site, said: str) -> None:
    case.find(
        "scheduler-outpaces-optimizer",
        "error",
        site,
        "The scheduler has come to the end of its schedule while training goes on: it steps more often than planned.",
        "PyTorch: " + said.splitlines()[0][:160],
        "scheduler.step()  # once an update, and total_steps = number of updates",
    )


def _nothing_to_clip(case: Case, site: Site, said: str) -> None:
    if "clip" in text(site):
        case.find(
            "clip-before-backward",
            "error",
            site,
            "The call comes before backward(), when there is no new gradient to clip.",
            "PyTorch finds no gradient in the list that is to be clipped",
            "torch.nn.utils.clip_grad_value_(model.parameters(), value)  # after backward(), right before step()",
        )


_KNOWN: tuple[tuple[str, Any], ...] = (
    ("does not require grad and does not have a grad_fn", _no_graph),
    ("Trying to backward through the graph a second time", _twice),
    ("modified by an inplace operation", _in_place),
    ("step() has already been called since the last update()", _second_scaler_step),
    ("unscale_() has already been called", _second_unscale),
    ("unscale_() is being called after step()", _second_scaler_step),
    ("Attempted step but _scale is None", _never_scaled),
    ("Attempted unscale_ but _scale is None", _never_scaled),
    ("No inf checks were recorded for this optimizer", _nothing_to_unscale),
    ("The specified number of total steps is", _schedule_at_its_end),
    ("nested_tensorlist[0].empty()", _nothing_to_clip),
    ("out of memory", _out_of_memory),
)
