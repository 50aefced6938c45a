"""Tools for the notebooks of the series, such as exercises, figures, instruments and the cheat sheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from ..widgets import ForecastLab as ForecastLab
    from .cheat_sheet import cheat_sheet as cheat_sheet
    from .claims import ClaimLog as ClaimLog
    from .exercises import exercise as exercise
    from .figures.curves import bowl_steps as bowl_steps
    from .figures.curves import curves as curves
    from .figures.curves import head_to_tail as head_to_tail
    from .figures.graph import graph_of as graph_of
    from .figures.graph import record_gradients as record_gradients
    from .figures.graph_picture import draw_graph as draw_graph
    from .figures.strip import update_strip as update_strip
    from .instruments.loss_scale import loss_scale as loss_scale
    from .instruments.peak import peak as peak
    from .instruments.ring import ring_of_orders as ring_of_orders
    from .instruments.ring import run_order as run_order
    from .instruments.ring import six_rings as six_rings
    from .instruments.swing import swing as swing
    from .instruments.two_ranks import two_ranks as two_ranks
    from .measured import OperationLog as OperationLog
    from .notebook_calls import attempt as attempt
    from .notebook_calls import doctor_command as doctor_command
    from .processes import launch as launch
    from .processes import prepare as prepare
    from .processes import work_in_temporary_folder as work_in_temporary_folder
    from .series import series_map as series_map

load_lazily(__name__)
