"""Right answers to the exercise ``amp_order``."""

ZERO, BACKWARD, UNSCALE = "optimizer.zero_grad()", "scaler.scale(loss).backward()", "scaler.unscale_(optimizer)"
CLIP, STEP, UPDATE = "clip_grad_norm_(model.parameters(), 0.1)", "scaler.step(optimizer)", "scaler.update()"

RIGHT = (
    [ZERO, BACKWARD, UNSCALE, CLIP, STEP, UPDATE],
    [BACKWARD, UNSCALE, CLIP, STEP, UPDATE, ZERO],
    [BACKWARD, UNSCALE, CLIP, STEP, ZERO, UPDATE],
)
