"""Right answers to the exercise ``calls_in_order``."""

FORWARD = ["zero_grad", "forward", "backward"]
RIGHT = (
    [*FORWARD, "unscale_", "clip", "scaler.step", "scaler.update", "scheduler.step"],
    ["forward", "zero_grad", "backward", "unscale_", "clip", "scaler.step", "scheduler.step", "scaler.update"],
    ("forward", "backward", "unscale_", "clip", "scaler.step", "zero_grad", "scaler.update", "scheduler.step"),
)
