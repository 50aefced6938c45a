"""Scenes, which hold a moment of a run or a forecast as plain numbers, and sentences about runs, memory and errors."""

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
    from .sentences import explain_oom as explain_oom
    from .sentences import find_oom as find_oom
    from .sentences import fit_sentence as fit_sentence
    from .sentences import free_after_oom as free_after_oom
    from .sentences import memory_scene as memory_scene
    from .sentences import need_sentence as need_sentence
    from .sentences import peak_location as peak_location
    from .sentences import percent as percent
    from .sentences import share_of_gpu as share_of_gpu
    from .sentences import status_line as status_line
    from .sentences import suggestions as suggestions
    from .sentences import times_as_much as times_as_much
    from .sentences import unapplied as unapplied
    from .sentences import warning as warning
    from .sentences import with_article as with_article

load_lazily(__name__, needs_torch=False)
