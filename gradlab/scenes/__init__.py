"""A moment of a run, a forecast or an error, as plain numbers and words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from .camera import BEFORE as BEFORE
    from .camera import BESIDE as BESIDE
    from .camera import needed_reach as needed_reach
    from .from_run import RunScenes as RunScenes
    from .from_run import loss_curve as loss_curve
    from .kinds import BEATS as BEATS
    from .kinds import Arrows as Arrows
    from .kinds import BatchArrow as BatchArrow
    from .kinds import Contours as Contours
    from .kinds import Curve as Curve
    from .kinds import Fit as Fit
    from .kinds import Landscape as Landscape
    from .kinds import Memory as Memory
    from .kinds import PanelName as PanelName
    from .kinds import Samples as Samples
    from .kinds import ScalerHistory as ScalerHistory
    from .kinds import Scene as Scene
    from .kinds import StatementLabel as StatementLabel
    from .kinds import UnswitchedCurve as UnswitchedCurve
    from .words import explain_oom as explain_oom
    from .words import find_oom as find_oom
    from .words import fit_sentence as fit_sentence
    from .words import free_after_oom as free_after_oom
    from .words import memory_scene as memory_scene
    from .words import need_sentence as need_sentence
    from .words import peak_location as peak_location
    from .words import percent as percent
    from .words import share_of_gpu as share_of_gpu
    from .words import status_line as status_line
    from .words import suggestions as suggestions
    from .words import times_as_much as times_as_much
    from .words import unapplied as unapplied
    from .words import warning as warning
    from .words import with_article as with_article

load_lazily(__name__, needs_torch=False)
