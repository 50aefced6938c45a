"""PyTorch's own errors in the learner's terms."""

from __future__ import annotations

import linecache
from types import TracebackType
from typing import Any

from .events import NOWHERE, Site
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
    if isinstance(error, (AttributeError, TypeError)) and "None" in said and ".grad" in _text(site):
        _grad_is_none(case, site)


def _place(trace: TracebackType | None) -> Site:
    """Return the innermost line of the learner's own code."""
    found: Site = ("", 0)
    while trace is not None:
        if rank(trace.tb_frame.f_code.co_filename) == 2:
            found = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return found


def _text(site: Site) -> str:
    return linecache.getline(*site)


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


def _twice(case: Case, site: Site, said: str) -> None:
    newest = case.recorder.newest
    if newest is not None and newest.old:
        case.find(
            "carried-state-not-detached",
            "error",
            site,
            "This loss depends on a state of the last update, whose graph is gone: it was carried on undetached.",
            "PyTorch: trying to backward through the graph a second time",
            "state = state.detach()  # before the next batch",
        )
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
        site,
        "scaler.step() is called again although scaler.update() has not closed the last update.",
        "PyTorch: " + said.splitlines()[0][:160],
        "scaler.update()  # once an update, after the last scaler.step()",
        lesson="08_mixed_precision",
    )


def _second_unscale(case: Case, site: Site, said: str) -> None:
    case.find(
        "unscale-twice",
        "error",
        site,
        "scaler.unscale_() is called twice for one update: the gradients may be divided only once.",
        "PyTorch: " + said.splitlines()[0][:160],
        "scaler.unscale_(optimizer)  # once, right before clipping",
        lesson="08_mixed_precision",
    )


def _grad_is_none(case: Case, site: Site) -> None:
    case.find(
        "grad-none-after-zero-grad",
        "error",
        site,
        "`.grad` is None here: zero_grad() takes the tensor away, and before the first backward() there is none.",
        f"the line reads {_text(site).strip()[:80]!r}",
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


_KNOWN: tuple[tuple[str, Any], ...] = (
    ("does not require grad and does not have a grad_fn", _no_graph),
    ("Trying to backward through the graph a second time", _twice),
    ("modified by an inplace operation", _in_place),
    ("step() has already been called since the last update()", _second_scaler_step),
    ("unscale_() has already been called", _second_unscale),
    ("unscale_() is being called after step()", _second_unscale),
    ("out of memory", _out_of_memory),
)
