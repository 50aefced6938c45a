"""The training loop: a Recipe writes the text, a Program compiles it, and a Run executes it and records a History."""

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from .history import History as History
    from .history import HistoryWriter as HistoryWriter
    from .program import LoopError as LoopError
    from .program import Program as Program
    from .recipe import LONGEST_WINDOW as LONGEST_WINDOW
    from .recipe import SWITCHES as SWITCHES
    from .recipe import Choice as Choice
    from .recipe import OnOff as OnOff
    from .recipe import Positive as Positive
    from .recipe import Recipe as Recipe
    from .recipe import Switch as Switch
    from .recipe import Whole as Whole
    from .run import Counterfactual as Counterfactual
    from .run import Run as Run

load_lazily(__name__, needs_torch=False)
