"""Right answers to the exercise ``by_tokens``."""

from torch.nn.functional import cross_entropy


def losses(model, window, reduction):
    for x, y in window:
        yield cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-100, reduction=reduction)


def counted_first(model, window):
    total = sum((y != -100).sum() for _, y in window)
    for loss in losses(model, window, "sum"):
        (loss / total).backward()


def weighted(model, window):
    counts = [(y != -100).sum() for _, y in window]
    for loss, count in zip(losses(model, window, "mean"), counts, strict=True):
        (loss * count / sum(counts)).backward()


def divided_afterwards(model, window):
    total = 0
    for (_, y), loss in zip(window, losses(model, window, "sum"), strict=True):
        loss.backward()
        total += (y != -100).sum().item()
    for p in model.parameters():
        p.grad /= total


RIGHT = (counted_first, weighted, divided_afterwards)
