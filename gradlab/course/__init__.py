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
    from .answer_key import AnswerKey as AnswerKey
    from .attempt import attempt as attempt
    from .cheat_sheet import cheat_sheet as cheat_sheet
    from .checklist import check_symptoms as check_symptoms
    from .claim_log import ClaimLog as ClaimLog
    from .doctor_command import doctor_command as doctor_command
    from .exercises import exercise as exercise
    from .fact_check import OperationLog as OperationLog
    from .fact_check import batch_grads as batch_grads
    from .fact_check import fails as fails
    from .fact_check import flat_grads as flat_grads
    from .fact_check import flat_weights as flat_weights
    from .fact_check import grad_of as grad_of
    from .fact_check import is_deprecated as is_deprecated
    from .fact_check import linear_stack as linear_stack
    from .fact_check import small_batch as small_batch
    from .fact_check import small_net as small_net
    from .figures.curves import curves as curves
    from .figures.curves import head_to_tail as head_to_tail
    from .figures.graph import graph_of as graph_of
    from .figures.graph import record_gradients as record_gradients
    from .figures.graph_picture import draw_graph as draw_graph
    from .grad_table import grad_table as grad_table
    from .grad_traffic import traffic as traffic
    from .handout import Handout as Handout
    from .instruments.loss_scale import loss_scale as loss_scale
    from .instruments.peak import peak as peak
    from .instruments.ring import ring_of_orders as ring_of_orders
    from .instruments.ring import run_order as run_order
    from .instruments.ring_panels import draw_rings as draw_rings
    from .instruments.swing import swing as swing
    from .instruments.two_ranks import two_ranks as two_ranks
    from .line_times import time_lines as time_lines
    from .patients.case import patient_names as patient_names
    from .patients.patient import Patient as Patient
    from .patients.patient import patient_card as patient_card
    from .plain_run import weights_after as weights_after
    from .processes import launch as launch
    from .processes import prepare as prepare
    from .processes import torchrun as torchrun
    from .processes import work_in_temporary_folder as work_in_temporary_folder
    from .progress.class_guesses import class_guesses as class_guesses
    from .progress.my_record import my_record as my_record
    from .progress.series_map import series_map as series_map
    from .real_peak import real_peak as real_peak
    from .trying import try_claims as try_claims
    from .worksheet import Worksheet as Worksheet

load_lazily(__name__)
