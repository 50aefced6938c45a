"""Which notebook explains a finding."""

from __future__ import annotations

_LESSONS = {
    "01_autograd": ("graph-broken", "retain-graph-growth"),
    "02_backward_adds": ("carried-state-not-detached",),
    "03_forgetting_zero_grad": ("missing-zero-grad",),
    "04_zero_grad": (
        "foreign-gradients-in-step",
        "optimizer-holds-stale-params",
        "optimizer-params-frozen",
        "params-missing-from-optimizer",
        "zero-grad-between-backward-and-step",
    ),
    "05_set_to_none": ("grad-none-after-zero-grad",),
    "06_optimizer_step": ("double-step", "never-steps", "step-without-backward"),
    "07_gradient_accumulation": (
        "clip-after-step",
        "clip-before-backward",
        "clip-inside-accumulation",
        "last-accumulation-window-dropped",
        "loss-not-divided",
        "zero-grad-in-micro-batch",
    ),
    "08_mixed_precision": (
        "backward-inside-autocast",
        "clip-before-unscale",
        "scaler-bypassed",
        "scaler-step-without-update",
    ),
    "09_gpu_memory": ("graph-retained-memory-leak", "out-of-memory"),
}
_OF = {code: notebook for notebook, codes in _LESSONS.items() for code in codes}


def lesson(code: str) -> str:
    """Return the path of the notebook that explains a code; what has no lesson of its own is in 10_loop_doctor."""
    return f"notebooks/{_OF.get(code, '10_loop_doctor')}.ipynb"
