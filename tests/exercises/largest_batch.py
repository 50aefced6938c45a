"""Answers to the exercise ``largest_batch``: right ones, and one for each typical mistake."""

import math


def two_points(peak_of, budget):
    few, many = peak_of(150), peak_of(200)
    each = (many - few) / 50
    return 200 + int((budget - many) / each)


def three_points(peak_of, budget):
    low, high = peak_of(100), peak_of(300)
    rows = 300 + (budget - high) * 200 // (high - low)
    return rows if peak_of(rows) <= budget else rows - 1


def share(peak_of, budget):
    return int(budget / (peak_of(256) / 256))


def without_constant(peak_of, budget):
    return budget // (peak_of(201) - peak_of(200))


def few_rows(peak_of, budget):
    one, two = peak_of(1), peak_of(2)
    return int((budget - one) // (two - one)) + 1


def rounded_up(peak_of, budget):
    few, many = peak_of(200), peak_of(300)
    return math.floor(200 + (budget - few) / (many - few) * 100) + 1


def fraction(peak_of, budget):
    few, many = peak_of(200), peak_of(300)
    return 200 + 100 * (budget + 0.5 - few) / (many - few)


RIGHT = (two_points, three_points)
WRONG = {
    "share": share,
    "no-constant": without_constant,
    "too-few-rows": few_rows,
    "one-too-many": rounded_up,
    "not-whole": fraction,
}
