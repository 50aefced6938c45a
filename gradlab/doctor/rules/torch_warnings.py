"""A rule that turns PyTorch's own warnings into findings, with the learner's lines that caused them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from ..._frames import Owner, code_owner, frames
from ..._process import Original
from ...formatting import number_of
from ..events import Site
from ..finding import SEVERITIES, Code
from ..listeners.event_log import never_raises
from .base import Rule
from .known_errors import RAISED, TORCH, first_sentence, is_users
from .losses import LossFlaws
from .scheduling import Scheduling

_GRADLAB = str(Path(__file__).parents[2])
_MAX_WARNINGS = 64  # different warnings
_PYTHONS = ("warnings.py", "_py_warnings.py")
_FROM_CPP = " (Triggered internally at "
_NOT_ABOUT_TRAINING = re.compile(
    # warnings about hardware and its libraries
    "CUDA|GPU|[Dd]river|is not available|worker|pin_memory|NNPACK|MKL|XLA|contiguous chunk|"
    # warnings about planned API changes and about performance
    "deprecated|future release|new feature|under active development|in prototype|nested tensor|use_reentrant|"
    # warnings about code that is intentional or a matter of style
    "Anomaly Detection|create_graph=True|recommended to use|Consider using tensor.detach|has been overridden|"
    "get_last_lr"
)
_HINT = RAISED.with_(
    severity="hint",
    message="PyTorch warns in this line, and no rule of the doctor explains it.",
    fix="Read the whole warning, and change the line, or silence it with warnings.filterwarnings if it is intentional.",
)
_SERIOUS = _HINT.with_(severity="warning")
_SHAPES = LossFlaws.LOSS_BROADCASTS.with_(
    message="Predictions and targets have different shapes, and PyTorch repeats one of them until they fit.",
    fix="Give both sides of the loss the same shape: the target has {shape}.",
)
_EARLY = Scheduling.SCHEDULER_BEFORE_OPTIMIZER.with_(
    message="The scheduler steps before its optimizer has taken any step.",
    fix="Step the optimizer that the scheduler was made for, and the scheduler after it.",
)
_NOT_CLIPPED = _SERIOUS.with_(
    message="Nothing is clipped here: the iterator of parameters is used up.",
    fix="Call model.parameters() again for each clip, or keep list(model.parameters()).",
)
_TABLE: dict[str, Code] = {
    "Using a target size": _SHAPES,
    "lr_scheduler.step()` before `optimizer.step()": _EARLY,
    "is not a leaf": _SERIOUS.with_(
        message="This reads the `.grad` of a non-leaf tensor, which backward() does not fill.",
        fix="Read the `.grad` of the leaf that it was made of, or call retain_grad() on it before backward().",
    ),
    "None of the inputs have requires_grad": _SERIOUS.with_(
        message="What is computed under checkpoint() here gets no gradient, because none of its inputs requires one.",
        fix="Call checkpoint() with use_reentrant=False.",
    ),
    "is an empty generator": _NOT_CLIPPED,
    "duplicate parameters": _SERIOUS.with_(
        message="The optimizer holds a parameter twice.", fix="Give each parameter to the optimizer once."
    ),
    "degrees of freedom is <= 0": _SERIOUS.with_(
        message="A variance over a single value is NaN.", fix="Use more values, or correction=0."
    ),
    "discards the imaginary part": _SERIOUS.with_(
        message="The imaginary part is thrown away here.", fix="Take .real or .abs(), whichever you need."
    ),
    "is a no-op. (Did you mean": _SERIOUS.with_(
        message="The weights of the checkpoint are not loaded.", fix="Call load_state_dict(..., assign=True)."
    ),
    "DataParallel() has no effect": _SERIOUS,
    "divides the total loss by both": _HINT.with_(
        message='kl_div with reduction="mean" divides by all elements, and not by the rows of the batch.',
        fix='Use reduction="batchmean".',
    ),
}
"""Part of a warning's message -> the code that explains it."""


class TorchWarnings(Rule):
    """A rule that records PyTorch's warnings during the watch, and reports those that no other finding covers."""

    def _begin(self) -> None:
        self._warnings: dict[tuple[Site, str], int] = {}  # line and message of a warning -> number of passes before it

    def hear(self, original: Original) -> Any:
        """Return a ``showwarning`` that also records warnings, and shows those of gradlab at the learner's line."""

        def showwarning(message: Any, category: Any, filename: str, lineno: int, *rest: Any, **named: Any) -> None:
            if self.log.is_watched_thread():
                site = self._hear(sys._getframe(1), str(message), category)
                if filename.startswith(_GRADLAB) and site:
                    filename, lineno = site
            original.call(message, category, filename, lineno, *rest, **named)

        return showwarning

    @never_raises
    def _hear(self, frame: FrameType, text: str, category: type[Warning]) -> Site | None:
        """Record a warning if it is PyTorch's and about training; return the learner's line that caused it, or None."""
        stack = [inner for inner in frames(frame) if Path(inner.f_code.co_filename).name not in _PYTHONS]
        caller = next((frame for frame in stack if code_owner(frame.f_code.co_filename) is not Owner.OURS), None)
        if caller is None or not is_users(caller):
            return None
        site = caller.f_code.co_filename, caller.f_lineno
        pytorchs = stack[0].f_code.co_filename.startswith(TORCH) or _FROM_CPP in text
        old = issubclass(category, (DeprecationWarning, PendingDeprecationWarning, FutureWarning))
        if pytorchs and not old and not _NOT_ABOUT_TRAINING.search(text) and len(self._warnings) < _MAX_WARNINGS:
            self._warnings.setdefault((site, text.partition(_FROM_CPP)[0]), self.log.passes.count)
        return site

    def explain(self) -> None:
        """Report the recorded warnings, most severe first, unless a finding in the same line or file covers them."""
        findings = self.context.findings
        codes = {key: next((code for part, code in _TABLE.items() if part in key[1]), _HINT) for key in self._warnings}
        for (site, text), code in sorted(codes.items(), key=lambda item: SEVERITIES.index(item[1].severity)):
            about = "scheduler" if code is _EARLY else "clip" if code is _NOT_CLIPPED else code.name
            same_file = any(name.startswith(about) and where[0] == site[0] for name, where in findings)
            is_reported = (code.name, site) in findings or (same_file and about != RAISED.name)
            if not is_reported and not (code is _EARLY and self.log.scales):  # a scaler may have skipped the first step
                proof = f"PyTorch warned after {number_of(self._warnings[site, text], 'backward pass', 'es')}: "
                shape = re.search(r"target size \(torch.Size\(\[(.*?)\]\)\)", text)
                self.report(code, site, proof + first_sentence(text), shape=f"({shape[1]})" if shape else "")


TorchWarnings.codes = frozenset({RAISED, LossFlaws.LOSS_BROADCASTS, Scheduling.SCHEDULER_BEFORE_OPTIMIZER})
