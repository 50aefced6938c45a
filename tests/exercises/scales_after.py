"""Answers to the exercise ``scales_after``: the right one, and one for each typical mistake."""


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


def not_in_a_row(overflowed, scale, growth_interval):
    scales, good = [], 0
    for bad in overflowed:
        if bad:
            scale /= 2
        else:
            good += 1
            if good % growth_interval == 0:
                scale *= 2
        scales.append(scale)
    return scales


def never_begins_again(overflowed, scale, growth_interval):
    scales, in_a_row = [], 0
    for bad in overflowed:
        in_a_row = 0 if bad else in_a_row + 1
        if bad:
            scale /= 2
        elif in_a_row >= growth_interval:
            scale *= 2
        scales.append(scale)
    return scales


def eager(overflowed, scale, growth_interval):
    scales = []
    for bad in overflowed:
        scale = scale / 2 if bad else scale * 2
        scales.append(scale)
    return scales


def one_late(overflowed, scale, growth_interval):
    scales, in_a_row = [], 0
    for bad in overflowed:
        if bad:
            scale, in_a_row = scale / 2, 0
        else:
            in_a_row += 1
            if in_a_row > growth_interval:
                scale, in_a_row = scale * 2, 0
        scales.append(scale)
    return scales


def back_to_start(overflowed, scale, growth_interval):
    scales, in_a_row, now = [], 0, scale
    for bad in overflowed:
        if bad:
            now, in_a_row = scale, 0
        else:
            in_a_row += 1
            if in_a_row == growth_interval:
                now, in_a_row = now * 2, 0
        scales.append(now)
    return scales


def before(overflowed, scale, growth_interval):
    return [scale, *counted(overflowed, scale, growth_interval)[:-1]]


RIGHT = (counted,)
WRONG = {
    "not-in-a-row": not_in_a_row,
    "never-begins-again": never_begins_again,
    "eager": eager,
    "one-late": one_late,
    "back-to-start": back_to_start,
    "before": before,
}
