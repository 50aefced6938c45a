"""A right answer to the exercise ``scales_after``."""


def counted(overflowed, scale, growth_interval):
    scales, in_a_row = [], 0
    for bad in overflowed:
        if bad:
            scale *= 0.5
            in_a_row = 0
        else:
            in_a_row += 1
            if in_a_row == growth_interval:
                scale *= 2
                in_a_row = 0
        scales.append(scale)
    return scales


RIGHT = (counted,)
