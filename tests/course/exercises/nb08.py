"""Right answers to the exercises of notebook 08, written another way than the solutions."""

import math

ZERO, BACKWARD, UNSCALE = "optimizer.zero_grad()", "scaler.scale(loss).backward()", "scaler.unscale_(optimizer)"
CLIP, STEP, UPDATE = "clip_grad_norm_(model.parameters(), 0.1)", "scaler.step(optimizer)", "scaler.update()"


def by_the_limit(gradients):
    smallest = gradients[gradients != 0].abs().min().item()
    return 2 ** max(0, math.floor(math.log2(2**-25 / smallest)) + 1)  # above half of 2**-24, which rounds to 0


def looking_back(overflowed, scale, growth_interval):
    scales, since = [], 0
    for update, bad in enumerate(overflowed, 1):
        if bad or update - since == growth_interval:
            scale, since = scale / 2 if bad else scale * 2, update
        scales.append(scale)
    return scales


RIGHT = {
    "amp_order": [[BACKWARD, UNSCALE, CLIP, STEP, UPDATE, ZERO]],
    "smallest_scale": [by_the_limit],
    "scales_after": [looking_back],
}
