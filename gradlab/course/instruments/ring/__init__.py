"""The ring of orders: the four calls of a training loop in any order, run on a real task and judged."""
