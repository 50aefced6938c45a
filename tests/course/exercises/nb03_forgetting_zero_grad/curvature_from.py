"""A right answer to the exercise ``curvature_from``."""

import math

RIGHT = (lambda lr, loss_period: 2 * (1 - math.cos(math.pi / loss_period)) / lr,)
