"""Patient: a training loop that can be edited and run under the doctor, with what is wrong in words and pictures."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from ..._process import lock
from ...drawing import Drawing
from ...widgets import Control, Instrument, Settings, View
from .case import PatientCase, patient_case
from .cures import CureVerdict, judge
from .patient_drawings import PatientCurve, draw_card, draw_curves, draw_gradient, lay_out_still
from .patient_words import finding_head, finding_seen, fix_words, gradient_words, line_to_edit, run_words
from .run_loop import LearnerLoop, LoopOutcome, loop_of, run_loop

CAME, YOURS, CURED = "as it came", "yours", "cured"
_MAX_OWN_UPDATES = 300  # of a loop of the reader's own
_MOST_FINDINGS = 3
_GROWS = 2.0  # graph nodes held at the end, times those at the start, from which they are drawn
_FIRST_SHOWN = 10  # the update whose gradient is shown first, or one near it
_PAGE_UPDATES = 16  # gradients of a run that a page without a kernel holds
_TITLES = {"loss": "loss", "norm": "norm of .grad at the step", "nodes": "graph nodes that the loop holds on to"}
_Panel = Callable[[int, int], Drawing]


@dataclass(frozen=True)
class PatientView(View):
    """A view that knows what it is of."""

    which: str = CAME
    number: int = 0
    """The update whose gradient is shown, 0 for none."""


class Patient(Instrument):
    """A training loop under the doctor: edit it, run it, see what happens, and ask for the cure when you want it.

    ``Patient("the-flat-loss")`` is one of the patients in ``patient_names()``; ``Patient(train)`` is a function of your
    own, and ``Patient(text, model=model, batches=batches)`` a text with the names that it uses. Arguments of a function
    are given by name. A loop of your own runs for at most 300 updates, and your model, your optimizer and the random
    numbers are afterwards as they were. There is no time limit: the kernel's Interrupt ends a loop.
    """

    title = "A training loop under the doctor"
    size = (430, 280)

    def __init__(self, source: object, **names: Any) -> None:
        """Take the loop; it runs when it is first shown.

        Raises TypeError or ValueError for what is neither the name of a patient nor a loop.
        """
        self._case: PatientCase | None = None
        self._loop: LearnerLoop | None = None  # that of a patient is made afresh for each run
        if isinstance(source, str) and "\n" not in source.strip():
            if names:
                raise TypeError(f"Patient: {source!r} needs nothing beside it, got {', '.join(names)}")
            self._case = patient_case(source)
            self._texts = {CAME: self._case.sick, YOURS: self._case.sick, CURED: self._case.cured}
            self.title = f"{self._case.title.rstrip('?')}: a patient"  # type: ignore[misc]
        else:
            self._loop = loop_of(source, names)
            self._texts = {CAME: self._loop.text, YOURS: self._loop.text}
        self._outcomes: dict[str, LoopOutcome] = {}
        self._draft, self._draft_line = "", 0
        super().__init__()

    # What it shows ----------------------------------------------------------------------------------------------------

    def controls(self) -> list[Control]:
        """Return the choice of the loop, and the update whose gradient is shown."""
        updates = sorted({number for outcome in self._outcomes.values() for number in outcome.history.gradients})
        came = self._outcomes.get(CAME)
        shown_first = (sorted(came.history.gradients) if came else []) or updates or [_FIRST_SHOWN]
        first = min(shown_first, key=lambda number: abs(number - _FIRST_SHOWN))
        return [
            Control.choice("loop", "loop", CAME, [(words, words) for words in self._texts]),
            Control.slider("update", "update", first, updates or [_FIRST_SHOWN], text="{:,}".format, plays=True),
        ]

    def render(self, at: Settings) -> View:
        """Run the chosen loop if it has not run yet, and show what was seen."""
        which = at["loop"]
        outcome = self.outcome(which)
        seen = outcome.history.gradients
        number = max((n for n in seen if n <= at["update"]), default=min(seen, default=0))
        line = line_to_edit(outcome)
        said = (run_words(which, outcome), gradient_words(outcome.history, number))
        return PatientView(
            self._panels(which, number),
            state=" ".join(part for part in said if part),
            note=self._note(which, outcome),
            code=outcome.text,
            lit=(line, line),
            wrong=line,
            off=() if len(seen) > 1 else ("update",),
            which=which,
            number=number,
        )

    def recorded(self) -> Iterable[Settings]:
        """Return some moments of the loop as it came, and of the cured one."""
        for which in [name for name in self._texts if name != YOURS]:
            numbers = sorted(self.outcome(which).history.gradients)
            self._renew_controls()
            step = max(1, -(-len(numbers) // _PAGE_UPDATES))
            for number in numbers[::step] or [self._controls["update"].start]:
                yield {"loop": which, "update": number}

    def outcome(self, which: str = "") -> LoopOutcome:
        """Return what came of a run: of the loop that is shown, or of "as it came", "yours" or "cured"."""
        which = which or self.values["loop"]
        same = next((name for name in self._outcomes if self._texts[name] == self._texts[which]), None)
        if same is None:
            self._outcomes[which] = self._run(self._texts[which])
            self._renew_controls()
            same = which
        return self._outcomes[same]

    @property
    def verdict(self) -> CureVerdict | None:
        """Whether the loop that is shown is cured, and why not; None for a loop of your own."""
        return self._verdict(self.values["loop"])

    @property
    def words(self) -> str:
        """What the still picture tells in words: the doctor's card, then each panel."""
        drawn, _, card = self._still(self._now())
        return " ".join(drawing.words for drawing in ([card] if card else []) + drawn) or self.text

    def __repr__(self) -> str:
        return f"{self.title}\n{self.words}"

    def png(self) -> bytes:
        """Return the still picture."""
        with lock:
            return self._picture().png()

    # What the learner does --------------------------------------------------------------------------------------------

    def edit(self, text: str) -> Patient:
        """Run another text in the place of the loop; a mistake in it is told in words."""
        self.handle({"do": "edit", "text": text})
        return self

    def reveal(self) -> Patient:
        """Show the cure: the cured loop of a patient, or the doctor's fixes for a loop of your own."""
        self.handle({"do": "reveal"})
        return self

    def actions(self) -> Any:
        """Return what the browser may ask for, and what does it."""
        edit, reveal = lambda asked: self._edit(asked.text("text")), lambda asked: self._reveal()
        return {**super().actions(), "edit": edit, "reveal": reveal}

    def _edit(self, text: str) -> None:
        self._writer.tell_again("draft", "wrong", "loop")
        self._draft, self._draft_line = text, 0  # the field stays open if an interrupt ends the run ...
        tried = self._run(text)
        if tried.trouble and not tried.watched:  # ... or if this is no Python
            self._draft_line, self._alarm = tried.line, tried.trouble
            return
        self._draft = ""
        self._texts[YOURS] = text
        self._outcomes[YOURS] = tried
        self._views.clear()
        self._renew_controls()
        self._turn("loop", YOURS)

    def _reveal(self) -> None:
        self._writer.tell_again("loop")
        if CURED in self._texts:
            self._turn("loop", CURED)
            return
        fixes = [fix_words(finding) for finding in self.outcome().findings if finding.fix]
        self._alarm = " ".join(fixes) or "The doctor has found nothing to mend."

    # How it is done ---------------------------------------------------------------------------------------------------

    def _run(self, text: str) -> LoopOutcome:
        self.tell_progress(0.0)
        try:
            if self._case is not None:
                return run_loop(self._case.loop(text))
            assert self._loop is not None
            return run_loop(self._loop, text, max_updates=_MAX_OWN_UPDATES)
        finally:
            self.tell_progress(None)

    def _renew_controls(self) -> None:
        """Let the slider go over the updates that are known now."""
        self._controls = {control.name: control for control in self.controls()}
        slider = self._controls["update"]
        if self.values["update"] not in slider.values:
            self.values["update"] = slider.nearest(self.values["update"])

    def _verdict(self, which: str) -> CureVerdict | None:
        if self._case is None:
            return None
        outcome = self.outcome(which)
        needs_none = which == CAME and not outcome.clean  # the cured loop need not run to tell
        return judge(self._case, outcome, outcome if needs_none else self.outcome(CURED))

    def _is_well(self, which: str) -> bool:
        verdict = self._verdict(which)
        return self.outcome(which).clean if verdict is None else bool(verdict)

    def _note(self, which: str, outcome: LoopOutcome) -> str:
        lines = []
        if self._case is not None and which == CAME:
            lines.append(f"Complaint: {self._case.complaint}")
        if self._case is not None and which == CURED:
            lines.append(self._case.cure)
        if outcome.trouble:
            lines.append(outcome.trouble)
        lines += [f"{finding_head(one)} {finding_seen(one)}" for one in outcome.findings[:_MOST_FINDINGS]]
        if not (outcome.trouble or outcome.findings):
            lines.append("The doctor finds nothing.")
        verdict = self._verdict(which)
        if verdict is not None and (which != CAME or verdict):
            told = [reason for reason in verdict.reasons if reason not in " ".join(lines)]
            doctor = [reason for reason in told if not reason.startswith("Line ")]
            lines.append(verdict.words if verdict else " ".join(["Not cured yet.", *doctor]))
        if outcome.printed:
            lines.append("It prints: " + " \u23ce ".join(outcome.printed.splitlines()[-3:]))
        return "\n".join(lines).replace("`", "")

    def _panels(self, which: str, number: int) -> dict[str, _Panel]:
        outcomes = {key: self.outcome(key) for key in (CAME, which)}  # what is last lies in front
        definition = self._case.definition if self._case is not None else None
        panels = {}
        if definition is not None and definition.curve is not None:
            panels[definition.curve[1]] = self._curves("curve", outcomes, None)
        for field in ("loss", "norm"):
            panels[field] = self._curves(field, outcomes, number or None)
        nodes = [row.nodes for outcome in outcomes.values() for row in outcome.history.first]
        grows = bool(nodes) and nodes[-1] > _GROWS * max(nodes[0], 20)
        if grows if definition is None else definition.shows_nodes:
            panels["nodes"] = self._curves("nodes", outcomes, None)
        panels["gradient"] = partial(draw_gradient, outcomes[which].history, number, "")
        return panels

    def _curves(self, field: str, outcomes: Mapping[str, LoopOutcome], at: int | None) -> _Panel:
        """Draw numbers of some runs: a field of their updates, or the list of a patient that is its "curve"."""
        title, across = _TITLES.get(field, ""), "updates"
        lists = {key: [getattr(row, field, 0.0) for row in outcome.history.first] for key, outcome in outcomes.items()}
        if field == "curve" and self._case is not None and self._case.definition.curve is not None:
            name, title, across = self._case.definition.curve
            lists = {key: _numbers(outcome.names.get(name)) for key, outcome in outcomes.items()}
        curves = [PatientCurve(key, values, not self._is_well(key)) for key, values in lists.items()]
        return partial(draw_curves, title, across, curves, at)

    def _still(self, view: View) -> tuple[list[Drawing], int, Drawing | None]:
        """Draw the doctor's card, and beside it the curves of the sick loop and the cured one."""
        if not isinstance(view, PatientView):
            return super()._still(view)
        which, number = view.which, view.number
        other = CAME if which != CAME else CURED if self._case is not None else None
        outcomes = {key: self.outcome(key) for key in (other, which) if key is not None}
        losses = [outcome.history.losses for outcome in outcomes.values()]
        if other is not None and losses[0] == losses[1] and all(map(self._is_well, outcomes)):
            del outcomes[other]  # a healthy patient: one curve would hide the other
        outcome = outcomes[which]
        held = outcome.history.gradients.get(number)
        stale = held is not None and any(arrow.stale for arrow in held.arrows)
        fields = self._case.definition.still if self._case is not None else ("loss", "gradient")[: 1 + stale]
        arrows = [which] * ("gradient" in fields) + [CURED] * ("cured gradient" in fields and which == CAME)
        at = number if arrows and number else None
        panels = [self._curves(field, outcomes, at) for field in fields if field not in ("gradient", "cured gradient")]
        for key in arrows:
            title = f"gradient in .grad, {key}" if "cured gradient" in fields else ""
            panels.append(partial(draw_gradient, self.outcome(key).history, number, title))
        words = [outcome.trouble] if outcome.trouble else []
        if not (outcome.trouble or outcome.findings):
            verdict = self._verdict(which)
            words.append(verdict.words if verdict is not None and which != CAME else "The doctor finds nothing.")
        for key, each in reversed(outcomes.items()):
            holds = gradient_words(each.history, number) if key in arrows else ""
            words.append(f"{run_words(key, each)} {holds}".rstrip())
        found = outcome.findings[:_MOST_FINDINGS]
        return lay_out_still(partial(draw_card, outcome.text, view.wrong, found, words), panels)

    def _alt(self) -> str:
        return self.words

    def _more(self) -> dict[str, Any]:
        words = "Show the cure" if CURED in self._texts else "Show the fixes"
        more: dict[str, Any] = {"editable": True, "draft": self._draft, "buttons": [["reveal", words]]}
        return {**more, "wrong": self._draft_line} if self._draft else more


class PatientCard:
    """The still picture of a patient: the doctor's card beside the sick curve and the cured one."""

    def __init__(self, name: str) -> None:
        """Take the name of a patient; its loops run when the picture is first shown."""
        self._patient: Patient | None = Patient(name)
        self._title = self._patient.title

    def __repr__(self) -> str:
        # JupyterLab shows the first line of a folded picture's text, which must not give the outcome away.
        return f"{self._title}\n{self._seen[1]}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        png, words = self._seen
        data = {"image/png": base64.b64encode(png).decode(), "text/plain": repr(self)}
        width = int.from_bytes(png[16:20], "big") // 2  # CSS pixels
        return data, {"image/png": {"width": width, "alt": words}}

    @cached_property
    def _seen(self) -> tuple[bytes, str]:
        """The picture and its words; the runs behind them are not kept, because a notebook keeps each card."""
        patient = self._patient
        assert patient is not None
        picture = patient.png(), patient.words
        self._patient = None
        return picture


def patient_card(name: str) -> PatientCard:
    """Return the picture of one of the patients in ``patient_names()``; ValueError for another name."""
    return PatientCard(name)


def _numbers(value: object) -> list[float]:
    some = value if isinstance(value, list) else []
    return [float(one) for one in some if isinstance(one, (int, float))]
