"""Right answers to the exercise ``largest_batch``."""


def two_points(peak_of, budget):
    few, many = peak_of(150), peak_of(200)
    each = (many - few) / 50
    return 200 + int((budget - many) / each)


def three_points(peak_of, budget):
    low, high = peak_of(100), peak_of(300)
    rows = 300 + (budget - high) * 200 // (high - low)
    return rows if peak_of(rows) <= budget else rows - 1


RIGHT = (two_points, three_points)
