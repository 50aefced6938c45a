"""What a patient is: a loop and its cure in words, a ``.md`` in ``cases``, and below what a cured loop must do."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ... import tasks
from ..._checks import near_names
from .run_loop import LearnerLoop, LoopOutcome, loop_of

_Names = Mapping[str, Any]
_PATHS = {
    path.stem.partition("_")[2].replace("_", "-"): path for path in sorted(Path(__file__).parent.glob("cases/p*.md"))
}
_WHOLE = re.compile(
    r"# (?P<title>[^\n]+)\n+"
    r"(?P<complaint>.+?)\n+"
    r"```python\n(?P<sick>.+?\n)```\n+"
    r"## Cure\n+"
    r"(?P<cure>.+?)\n+"
    r"```python\n(?P<cured>.+?\n)```\n*",
    re.DOTALL,
)


def digits_names() -> dict[str, Any]:
    """Return what a loop that reads digits is given: ``build()`` makes the network."""
    task = tasks.digits(device="cpu")
    batches = [(x.clone(), y.clone()) for x, y in task.batches]
    return {"build": lambda: task.build(seed=0), "batches": batches, "loss_fn": task.loss_fn, "device": "cpu"}


def held_out_digits() -> tuple[Tensor, Tensor]:
    """Return 297 pictures that no batch contains, with their digits."""
    held_out = tasks.digits(device="cpu").held_out
    assert held_out is not None
    return held_out


def loss_on_held_out(names: _Names) -> float:
    """Return the loss of the network on them."""
    x, y = held_out_digits()
    with torch.no_grad():
        return float(nn.functional.cross_entropy(names["model"](x), y))


@dataclass(frozen=True, kw_only=True)
class CaseDefinition:
    """What a patient's loop is given, and when it counts as cured; what it trains is called ``model``."""

    bound: float
    """The loss on held-out data that a cured loop reaches."""
    given: Callable[[], dict[str, Any]] = digits_names
    """Make the names that the loop uses, afresh for each run."""
    held_out: Callable[[_Names], float] = loss_on_held_out
    """Return the loss on held-out data from the names after the loop."""
    measure: str = "loss on 297 held-out digits"
    """What ``held_out`` returns, in words."""
    also: Callable[[LoopOutcome, LoopOutcome], str] = lambda outcome, cured: ""
    """``also(outcome, cured)`` says what this patient still lacks, "" if nothing."""
    curve: tuple[str, str, str] | None = None
    """A list of numbers that the loop makes, to be drawn: its name, what it holds, what it goes over."""
    shows_nodes: bool = False
    """Draw the graph nodes that the loop holds on to."""
    still: tuple[str, ...] = ("loss",)
    """What stands beside the doctor's card in the still picture, where it tells sick from cured.

    Of "curve", "loss", "norm", "nodes", "gradient" and "cured gradient".
    """


@dataclass(frozen=True)
class PatientCase:
    """A patient with its words."""

    name: str
    title: str
    complaint: str
    sick: str
    cure: str
    """Why it was ill, and what the cure does."""
    cured: str
    definition: CaseDefinition

    def loop(self, text: str) -> LearnerLoop:
        """Return a text with what this patient's loop is given."""
        return loop_of(text, self.definition.given())


def patient_names() -> tuple[str, ...]:
    """Return the names of all patients, in the order of notebook 10."""
    return tuple(_PATHS)


def patient_case(name: str) -> PatientCase:
    """Return the patient of this name; ValueError with the names that come close for another."""
    if name not in _PATHS:
        near = near_names(name, _PATHS, 0.5) or patient_names()
        raise ValueError(f"Patient: there is none called {name!r}; there is {', '.join(near)}")
    found = _WHOLE.fullmatch(_PATHS[name].read_text(encoding="utf-8"))
    if found is None:
        order = "# title, complaint, ```python loop, ## Cure, words, ```python loop"
        raise ValueError(f"{_PATHS[name]}: the parts of a patient are, in this order: {order}")
    words = {part: " ".join(found[part].split()) for part in ("title", "complaint", "cure")}
    return PatientCase(
        name, words["title"], words["complaint"], found["sick"], words["cure"], found["cured"], DEFINITIONS[name]
    )


# What some of them are given, and what they must do beside -----------------------------------------------------------


def names_with_an_old_head() -> dict[str, Any]:
    """Return what the loop is given; the head that ``build()`` makes can be told from a new one."""
    names = digits_names()

    def build() -> nn.Module:
        model: nn.Module = names["build"]()
        model[4].is_old = True  # type: ignore[index]
        return model

    return {**names, "build": build}


def has_a_new_head(outcome: LoopOutcome, cured: LoopOutcome) -> str:
    """Say if the old head is still in place."""
    parts = list(outcome.names["model"].children())
    return "The model still has its old head." if not parts or hasattr(parts[-1], "is_old") else ""


def wave_names() -> dict[str, Any]:
    """Return 300 values of a sine wave, as a sequence of one number each."""
    return {"wave": torch.sin(torch.arange(0, 60, 0.2)).view(-1, 1, 1)}


def loss_further_on(names: _Names) -> float:
    """Return the error on a piece of the wave that no update has seen."""
    wave = torch.sin(torch.arange(60, 80, 0.2)).view(-1, 1, 1)
    with torch.no_grad():
        out, _ = names["model"]["rnn"](wave[:-1], torch.zeros(1, 1, 16))
        return float((names["model"]["head"](out) - wave[1:]).square()[10:].mean())


def carries_state(outcome: LoopOutcome, cured: LoopOutcome) -> str:
    """Say if the state is no longer carried from one piece to the next."""
    kept = outcome.names.get("state")
    if isinstance(kept, Tensor) and bool(kept.detach().abs().sum()):
        return ""
    return "The network no longer remembers: after the loop `state` is not what the last piece left in it."


def noisy_names() -> dict[str, Any]:
    """Return 128 pictures with three wrong labels in ten, and 297 others with the right ones."""
    names = digits_names()
    generator = torch.Generator().manual_seed(0)
    noisy = []
    for x, y in names["batches"][:2]:
        wrong = torch.rand(len(y), generator=generator) < 0.3
        noisy.append((x, torch.where(wrong, torch.randint(10, y.shape, generator=generator), y)))
    new_x, new_y = held_out_digits()

    def build() -> nn.Module:  # the run has seeded its weights
        return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 10))

    return {"noisy": noisy, "new_x": new_x, "new_y": new_y, "loss_fn": names["loss_fn"], "build_with_dropout": build}


def still_logs(outcome: LoopOutcome, cured: LoopOutcome) -> str:
    """Say if the mean loss is no longer computed, or if graphs still pile up."""
    nodes = [row.nodes for row in outcome.history.rows]
    if nodes and nodes[-1] > 4 * nodes[0]:
        return f"The loop still holds on to {nodes[-1]:,} graph nodes; after its first update it held {nodes[0]:,}."
    try:
        mean, right = float(outcome.names["mean_loss"]), float(cured.names["mean_loss"])
    except (KeyError, TypeError, ValueError):
        return "The mean of all losses is no longer computed: `mean_loss` is not a number."
    if math.isclose(mean, right, rel_tol=1e-3):
        return ""
    return f"`mean_loss` is {mean:.4f}, but the mean of all losses is {right:.4f}."


def loss_on_changed_digits(names: _Names) -> float:
    """Return the loss on held-out digits after a small, nasty change of each picture."""
    x, y = held_out_digits()
    x = x.clone().requires_grad_()
    loss_fn = nn.functional.cross_entropy
    (slope,) = torch.autograd.grad(loss_fn(names["model"](x), y), x)
    with torch.no_grad():
        return float(loss_fn(names["model"](x + 0.05 * slope.sign()), y))


def still_changed(outcome: LoopOutcome, cured: LoopOutcome) -> str:
    """Say if the pictures are no longer changed before they are learned."""
    last, _ = digits_names()["batches"][-1]
    x = outcome.names.get("x")
    if isinstance(x, Tensor) and x.shape == last.shape and not torch.equal(x.detach(), last):
        return ""
    return "The network learns from the pictures as they are: they are no longer changed before the update."


DEFINITIONS = {
    "the-swinging-loss": CaseDefinition(bound=0.8, still=("loss", "gradient")),
    "the-flat-loss": CaseDefinition(bound=1.5, still=("loss", "norm")),
    "four-times-the-work": CaseDefinition(bound=1.5, still=("loss", "gradient", "cured gradient")),
    "the-new-head": CaseDefinition(bound=0.5, given=names_with_an_old_head, also=has_a_new_head),
    "the-second-update": CaseDefinition(
        bound=0.1,
        given=wave_names,
        held_out=loss_further_on,
        measure="squared error on a later piece of the wave",
        also=carries_state,
    ),
    "flat-in-half-precision": CaseDefinition(bound=1.5, still=("loss", "norm")),
    "learned-by-heart": CaseDefinition(
        bound=1.0,
        given=noisy_names,
        curve=("losses", "loss on new pictures", "epochs"),
        still=("curve", "loss"),
    ),
    "killed-at-night": CaseDefinition(bound=2.0, also=still_logs, shows_nodes=True, still=("nodes", "loss")),
    "three-mistakes": CaseDefinition(
        bound=1.0,
        held_out=loss_on_changed_digits,
        measure="loss on 297 held-out digits after a nasty change",
        also=still_changed,
    ),
}
"""Name of a patient -> what its loop is given, and when it counts as cured."""
