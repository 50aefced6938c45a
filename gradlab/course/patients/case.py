"""What a patient is: a loop, its cure, and what a cured loop must do; found by its two files being there."""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .run_loop import LearnerLoop, Limits, LoopOutcome, loop_of

_HERE = Path(__file__).parent / "cases"
_WHOLE = re.compile(
    r"# (?P<title>[^\n]+)\n+"
    r"(?P<complaint>.+?)\n+"
    r"```python\n(?P<sick>.+?\n)```\n+"
    r"## Cure\n+"
    r"(?P<cure>.+?)\n+"
    r"```python\n(?P<cured>.+?\n)```\n*",
    re.DOTALL,
)


def no_more(outcome: LoopOutcome, cured: LoopOutcome) -> str:
    """Ask for nothing beyond what is asked of every patient."""
    return ""


@dataclass(frozen=True, kw_only=True)
class CaseDefinition:
    """The ``.py`` of a patient: what its loop is given, and when it counts as cured."""

    given: Callable[[], dict[str, Any]]
    """Make the names that the loop uses, afresh for each run."""
    held_out: Callable[[Mapping[str, Any]], float]
    """Return the loss on held-out data from the names after the loop."""
    bound: float
    """The loss on held-out data that a cured loop reaches."""
    measure: str = "loss on 297 held-out digits"
    """What ``held_out`` returns, in words."""
    models: tuple[str, ...] = ("model",)
    """The names of what is trained."""
    also: Callable[[LoopOutcome, LoopOutcome], str] = no_more
    """``also(outcome, cured)`` says what this patient still lacks, "" if nothing."""
    curve: tuple[str, str, str] | None = None
    """A list of numbers that the loop makes, to be drawn: its name, what it holds, what it goes over."""
    shows_nodes: bool = False
    """Draw the graph nodes that the loop holds on to."""
    still: tuple[str, ...] = ("loss",)
    """What stands beside the doctor's card in the still picture, where it tells sick from cured.

    Of "curve", "loss", "norm", "nodes", "gradient" and "cured gradient".
    """
    limits: Limits = field(default_factory=lambda: Limits(updates=1_000, seconds=30.0))


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
    paths = sorted(path for path in _HERE.glob("*.md") if path.with_suffix(".py").exists())
    return tuple(_name(path) for path in paths)


def patient_case(name: str) -> PatientCase:
    """Return the patient of this name; ValueError with the names that come close for another."""
    paths = {_name(path): path for path in _HERE.glob("*.md")}
    if name not in paths:
        near = difflib.get_close_matches(name, paths, n=3, cutoff=0.5) or list(patient_names())
        raise ValueError(f"Patient: there is none called {name!r}; there is {', '.join(near)}")
    path = paths[name]
    found = _WHOLE.fullmatch(path.read_text(encoding="utf-8"))
    if found is None:
        order = "# title, complaint, ```python loop, ## Cure, words, ```python loop"
        raise ValueError(f"{path}: the parts of a patient are, in this order: {order}")
    definition = importlib.import_module(f".cases.{path.stem}", __package__).PATIENT
    words = {part: " ".join(found[part].split()) for part in ("title", "complaint", "cure")}
    return PatientCase(
        name, words["title"], words["complaint"], found["sick"], words["cure"], found["cured"], definition
    )


def _name(path: Path) -> str:
    """Return "the-flat-loss" for p1_the_flat_loss.md."""
    return path.stem.partition("_")[2].replace("_", "-")
