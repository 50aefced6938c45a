"""Answers to the exercise ``calls_in_order``: right orders, and one for each typical mistake."""

FORWARD = ["zero_grad", "forward", "backward"]
RIGHT = (
    [*FORWARD, "unscale_", "clip", "scaler.step", "scaler.update", "scheduler.step"],
    ["forward", "zero_grad", "backward", "unscale_", "clip", "scaler.step", "scheduler.step", "scaler.update"],
    ("forward", "backward", "unscale_", "clip", "scaler.step", "zero_grad", "scaler.update", "scheduler.step"),
)
WRONG = {
    "clip-before-unscale": [*FORWARD, "clip", "unscale_", "scaler.step", "scaler.update", "scheduler.step"],
    "cleared-before-use": [
        *("forward", "backward", "unscale_", "zero_grad", "clip", "scaler.step", "scaler.update", "scheduler.step"),
    ],
    "clip-after-step": [*FORWARD, "unscale_", "scaler.step", "scaler.update", "clip", "scheduler.step"],
    "scheduler-first": ["scheduler.step", *FORWARD, "unscale_", "clip", "scaler.step", "scaler.update"],
}
