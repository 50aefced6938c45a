"""What only the notebooks of the series need: exercises, claims, the cheat sheet, processes and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from ..drawing import ACTIVATIONS as ACTIVATIONS
    from ..drawing import CATEGORY_STYLES as CATEGORY_STYLES
    from ..drawing import FAINT as FAINT
    from ..drawing import FRESH as FRESH
    from ..drawing import GRADIENTS as GRADIENTS
    from ..drawing import GREY as GREY
    from ..drawing import INK as INK
    from ..drawing import LOSS as LOSS
    from ..drawing import OPTIMIZER as OPTIMIZER
    from ..drawing import SCALE as SCALE
    from ..drawing import STALE as STALE
    from ..drawing import WEIGHTS as WEIGHTS
    from ..drawing import WRONG as WRONG
    from ..widgets import ForecastLab as ForecastLab
    from .autograd_graph import graph_of as graph_of
    from .autograd_graph import record_gradients as record_gradients
    from .cheat_sheet import cheat_sheet as cheat_sheet
    from .checklist import check_symptoms as check_symptoms
    from .claims import ClaimLog as ClaimLog
    from .exercises import exercise as exercise
    from .figures.curves import curves as curves
    from .figures.graph import draw_graph as draw_graph
    from .figures.headtail import head_to_tail as head_to_tail
    from .figures.orders import Trial as Trial
    from .figures.orders import orders_figure as orders_figure
    from .grad_traffic import traffic as traffic
    from .instruments.loss_scale.instrument import loss_scale as loss_scale
    from .instruments.peak.instrument import peak as peak
    from .instruments.swing import swing as swing
    from .patients.case import patient_names as patient_names
    from .patients.patient import Patient as Patient
    from .processes import launch as launch
    from .processes import prepare as prepare
    from .processes import torchrun as torchrun
    from .real_peak import real_peak as real_peak

load_lazily(__name__)
