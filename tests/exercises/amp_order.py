"""Answers to the exercise ``amp_order``: right ones, and one for each typical mistake."""

ZERO, BACKWARD, UNSCALE = "optimizer.zero_grad()", "scaler.scale(loss).backward()", "scaler.unscale_(optimizer)"
CLIP, STEP, UPDATE = "clip_grad_norm_(model.parameters(), 0.1)", "scaler.step(optimizer)", "scaler.update()"

RIGHT = (
    [ZERO, BACKWARD, UNSCALE, CLIP, STEP, UPDATE],
    [BACKWARD, UNSCALE, CLIP, STEP, UPDATE, ZERO],
    [BACKWARD, UNSCALE, CLIP, STEP, ZERO, UPDATE],
)
WRONG = {
    "clip-first": [BACKWARD, CLIP, UNSCALE, STEP, UPDATE, ZERO],
    "clip-late": [ZERO, BACKWARD, UNSCALE, STEP, UPDATE, CLIP],
    "cleared": [BACKWARD, UNSCALE, CLIP, ZERO, STEP, UPDATE],
    "cleared-early": [BACKWARD, UNSCALE, ZERO, CLIP, STEP, UPDATE],
    "update-early": [BACKWARD, UNSCALE, CLIP, UPDATE, STEP, ZERO],
}
