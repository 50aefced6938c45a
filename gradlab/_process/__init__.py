"""Tools for process-wide state: threads, subprocesses, hooks, random numbers, PyTorch settings and Python's parser."""

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from .children import end_with_parent as end_with_parent
    from .children import running_module as running_module
    from .dispatch_mode import DispatchMode as DispatchMode
    from .hooks import Original as Original
    from .hooks import Patches as Patches
    from .hooks import ThreadHook as ThreadHook
    from .random_stream import RandomStream as RandomStream
    from .random_stream import preserving_rng as preserving_rng
    from .state import KernelSettings as KernelSettings
    from .state import copy_state as copy_state
    from .state import plain_torch_state as plain_torch_state
    from .state import preserving_torch_state as preserving_torch_state
    from .threads import SERVED_LATELY as SERVED_LATELY
    from .threads import MainThread as MainThread
    from .threads import innermost_frames as innermost_frames
    from .threads import learner_threads as learner_threads
    from .threads import lock as lock
    from .threads import main_thread as main_thread
    from .threads import others_may_draw as others_may_draw
    from .threads import parse_python as parse_python
    from .threads import progress_bar as progress_bar

load_lazily(__name__, needs_torch=False)
