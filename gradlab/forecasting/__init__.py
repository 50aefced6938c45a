"""Forecasts of the memory that a training loop needs, and of the GPUs that have enough, before anything is allocated.

The tables of GPUs and of published model sizes work without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from .cards import GPUS as GPUS
    from .cards import SHOWN as SHOWN
    from .cards import card_name as card_name
    from .cards import usable_bytes as usable_bytes
    from .estimate import Forecast as Forecast
    from .estimate import forecast as forecast
    from .simulate import ForecastError as ForecastError
    from .sizes import model_size as model_size
    from .sizes import model_sizes as model_sizes

load_lazily(__name__, needs_torch=False)
