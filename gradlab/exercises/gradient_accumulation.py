"""The exercises of notebook 07."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from .base import Exercise, Mistake
from .loops import descend, gradient, trained, weights

_HOME = "07_gradient_accumulation"


def _joined(window: Any) -> tuple[Tensor, Tensor]:
    """Return a window as the one large batch that it stands for."""
    return torch.cat([x for x, _ in window]), torch.cat([y for _, y in window])


def _windows(
    size: Callable[[int, int], int] = lambda own, full: own, *, clear: str = "window", keep: bool = True
) -> Callable[..., None]:
    """Return a loop in windows; ``size(own, full)`` is what it divides by, ``clear`` where it empties ``.grad``."""

    def loop(model: nn.Module, loss_fn: Any, batches: Any, lr: float, n: int) -> None:
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        for start in range(0, len(batches), n):
            window = batches[start : start + n]
            if len(window) < n and not keep:
                return
            for i, (x, y) in enumerate(window):
                if clear == "batch" or (clear == "window" and i == 0):
                    optimizer.zero_grad()
                (loss_fn(model(x), y) / size(len(window), n)).backward()
            optimizer.step()

    return loop


def _still(*arguments: Any) -> None:
    """Leave everything as it is."""


class Accumulated(Exercise):
    """The loop, with a last window that is shorter."""

    name = "accumulated"
    notebook = _HOME
    title = "The loop, with its last window"
    level, minutes = "medium", 8
    spec = (
        "Write `accumulated(model, loss_fn, batches, lr, n)`: one epoch of plain SGD with one update for every `n` "
        "batches, and one for what is left at the end, each with the gradient of the mean loss over its own window."
    )
    stub = """
def accumulated(model, loss_fn, batches, lr, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in batches:
        pass  # your loop
"""
    hints = (
        "`batches` is a list. Which slice of it is the window that begins at `start`?",
        "`range(0, len(batches), n)` gives the starts, and `batches[start : start + n]` is shorter at the end.",
        "For each window: clear, then for each of its batches forward and backward, then one step. Divide each loss "
        "by `len(window)`.",
    )
    mistakes = (
        Mistake(
            "drops-last",
            "The last, shorter window is never used: no step comes after its backward().",
            _windows(keep=False),
        ),
        Mistake(
            "full-size",
            "You divide by n everywhere, but the last window has fewer batches.",
            _windows(lambda own, full: full),
        ),
        Mistake("sum", "The losses are added up, not averaged: divide each one.", _windows(lambda own, full: 1)),
        Mistake(
            "never-clears",
            "`.grad` is never cleared: each window has the earlier ones in it.",
            _windows(clear="never"),
        ),
        Mistake(
            "clears-inside",
            "You clear before each backward(): only the last batch of a window is left when step() comes.",
            _windows(clear="batch"),
        ),
        Mistake(
            "step-each-batch",
            "That is one update a batch: step() belongs after the window.",
            lambda model, loss_fn, batches, lr, n: _windows()(model, loss_fn, batches, lr, 1),
        ),
        Mistake(
            "one-step",
            "That is one step for the whole epoch.",
            lambda model, loss_fn, batches, lr, n: _windows()(model, loss_fn, batches, lr, len(batches)),
        ),
        Mistake("does-not-move", "The weights do not move: is step() there, and `.grad` full when it comes?", _still),
    )
    rounds = 5
    axes = ("weight", "its value afterwards")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a small model, a loss, batches of one size that do not fill the last window, an lr and the window."""
        n = dice.randint(3, 5)
        count = 2 * n + dice.randint(2, n - 1)
        batches = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(count)]
        return nn.Linear(3, 1), mse_loss, batches, dice.uniform(0.05, 0.15), n

    def right(self, model: nn.Module, loss_fn: Any, batches: Any, lr: float, n: int) -> Any:
        """Take each window as one large batch, and its gradient from autograd.grad, which never touches .grad."""
        for start in range(0, len(batches), n):
            x, y = _joined(batches[start : start + n])
            descend(loss_fn(model(x), y), model.parameters(), lr)
        return weights(model)

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Compare the weights after the epoch."""
        return trained(answer, *arguments)

    def told(self, *arguments: Any) -> str:
        """Say how many batches there are."""
        return f"{len(arguments[2])} batches, n={arguments[4]}: these are the weights afterwards"


def _real(window: Any) -> int:
    """Return how many targets of a window count."""
    return sum(int((y != -100).sum()) for _, y in window)


def _tokens(reduction: str, divide_by: Callable[[Any, Any], float]) -> Callable[..., None]:
    """Return a way to send a window backward; ``divide_by(window, y)`` is what a micro-batch's loss is divided by."""

    def backward(model: nn.Module, window: Any) -> None:
        for x, y in window:
            loss = cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-100, reduction=reduction)
            (loss / divide_by(window, y)).backward()

    return backward


class ByTokens(Exercise):
    """Weigh micro-batches by what is in them."""

    name = "by_tokens"
    notebook = _HOME
    title = "Every character the same"
    level, minutes = "easy", 5
    spec = (
        "This is a mean of means: mend `by_tokens(model, window)` so that `.grad` holds the gradient of the mean loss "
        "over all characters of the window, padding (targets of `-100`) left out, with one `backward()` a micro-batch."
    )
    stub = """
def by_tokens(model, window):
    for x, y in window:
        output = model(x).flatten(0, 1)
        loss = nn.functional.cross_entropy(output, y.flatten(), ignore_index=-100)
        (loss / len(window)).backward()
"""
    hints = (
        "The mean over everything is a sum over everything, divided by how many there are.",
        '`reduction="sum"` gives the sum of a micro-batch. How many characters has the whole window?',
        "`(y != -100).sum()` counts those of one micro-batch. Add them up before the loop begins.",
    )
    mistakes = (
        Mistake(
            "mean-of-means",
            "Still a mean of means: a character in a short micro-batch counts more than one in a long one.",
            _tokens("mean", lambda window, y: len(window)),
        ),
        Mistake("sum", "The sum is there. Now divide it by the number of characters.", _tokens("sum", lambda *_: 1)),
        Mistake(
            "counts-padding",
            "You count the padding, too: only targets that are not -100 have a loss.",
            _tokens("sum", lambda window, y: sum(b.numel() for _, b in window)),
        ),
        Mistake(
            "own-count",
            "You divide each micro-batch by its own count: that is a sum of means. Divide by the window's total.",
            _tokens("mean", lambda *_: 1),
        ),
        Mistake(
            "by-window",
            "That divides sums by the number of micro-batches: divide by the number of characters.",
            _tokens("sum", lambda window, y: len(window)),
        ),
        Mistake(
            "by-rows",
            "That divides by the number of rows: passages, not characters.",
            _tokens("sum", lambda window, y: sum(len(b) for _, b in window)),
        ),
    )
    rounds = 6
    axes = ("weight", "its gradient")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a small model of characters, and three or four micro-batches of unequal length, padded."""
        model = nn.Sequential(nn.Embedding(6, 3), nn.Linear(3, 6))
        window = []
        for i in range(dice.randint(3, 4)):
            lengths = [dice.randint(2, 4) + 6 * (i % 2), dice.randint(5, 9) + 9 * (i % 2)]
            x = torch.randint(6, (len(lengths), max(lengths)))
            y = torch.randint(6, x.shape)
            for row, length in enumerate(lengths):
                y[row, length:] = -100
            window.append((x, y))
        return model, window

    def right(self, model: nn.Module, window: Any) -> Any:
        """Put all characters into one row, and take the gradient of their mean loss from autograd.grad."""
        output = torch.cat([model(x).flatten(0, 1) for x, _ in window])
        y = torch.cat([y.flatten() for _, y in window])
        loss = cross_entropy(output[y != -100], y[y != -100])
        return gradient(loss, model)

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Compare what stands in .grad afterwards."""
        answer(*arguments)
        held = [(p.grad if p.grad is not None else torch.zeros_like(p)) for p in arguments[0].parameters()]
        return torch.cat([grad.detach().flatten() for grad in held])

    def told(self, *arguments: Any) -> str:
        """Say how many characters each micro-batch has."""
        counts = [_real([part]) for part in arguments[1]]
        return f"micro-batches of {', '.join(map(str, counts))} characters: this is .grad"


def _update(
    *, clear: bool = True, divide: bool = True, clip: str = "window", say: str = "mean"
) -> Callable[..., float]:
    """Return one update of a window, right or with something missing or in another place."""

    def update(model: nn.Module, loss_fn: Any, window: Any, optimizer: Any, max_norm: float) -> float:
        if clear:
            optimizer.zero_grad()
        losses = []
        for x, y in window:
            loss = loss_fn(model(x), y)
            (loss / len(window) if divide else loss).backward()
            losses.append(loss.item())
            if clip == "batch":
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if clip == "window":
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        mean = sum(losses) / len(losses)
        said = {"mean": mean, "sum": sum(losses), "last": losses[-1], "share": losses[-1] / len(losses)}
        return said[say]

    return update


class OneUpdate(Exercise):
    """One update with everything in its place."""

    name = "one_update"
    notebook = _HOME
    title = "Everything in its place"
    level, minutes = "harder", 10
    spec = (
        "Write `one_update(model, loss_fn, window, optimizer, max_norm)`: one update with the gradient of the window's "
        "mean loss, clipped once to `max_norm`, whatever was in `.grad` before; return the mean loss of the window "
        "as a number."
    )
    stub = """
def one_update(model, loss_fn, window, optimizer, max_norm):
    for x, y in window:
        loss = loss_fn(model(x), y)
    return 0.0  # your update
"""
    hints = (
        "Six things: clear, then for each batch forward, backward and note the loss; then clip, step, return.",
        "`torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)` belongs where `.grad` is complete.",
        "Divide what goes backward, `(loss / len(window)).backward()`, and leave `loss` itself alone: its mean is what "
        "you return.",
    )
    mistakes = (
        Mistake(
            "clips-inside",
            "You clip inside the window: the first micro-batches are shortened again and again.",
            _update(clip="batch"),
        ),
        Mistake(
            "clips-nothing",
            "The step has used a gradient that was not clipped: clip after the last backward(), before step().",
            _update(clip="never"),
        ),
        Mistake(
            "clips-the-sum",
            "You clip the sum of the gradients: without the division max_norm bites too early.",
            _update(divide=False),
        ),
        Mistake(
            "does-not-clear",
            "There was something in `.grad` before: clear it before the window begins.",
            _update(clear=False),
        ),
        Mistake(
            "returns-a-share",
            "The weights are right. The loss that you return is a share of it, divided for backward().",
            _update(say="share"),
        ),
        Mistake(
            "returns-the-last",
            "The weights are right. You return the loss of the last micro-batch, not the window's mean.",
            _update(say="last"),
        ),
        Mistake(
            "returns-the-sum",
            "The weights are right. You return the sum of the losses: their mean is wanted.",
            _update(say="sum"),
        ),
    )
    rounds = 16  # the threshold is too high to matter in half of the cases; both kinds have to come up
    axes = ("weight", "its value afterwards")

    def case(self, dice: random.Random) -> tuple[Any, ...]:
        """Return a model with something in .grad, a loss, a window, SGD, and a threshold below or above the norm."""
        model = nn.Linear(4, 2)
        window = [(torch.randn(3, 4), 3 * torch.randn(3, 2)) for _ in range(dice.randint(3, 5))]
        x, y = _joined(window)
        norm = gradient(mse_loss(model(x), y), model).norm().item()
        part = dice.uniform(0.3, 0.6) if dice.random() < 0.5 else dice.uniform(1.2, 2.0)
        mse_loss(model(torch.randn(3, 4)), torch.randn(3, 2)).backward()
        optimizer = torch.optim.SGD(model.parameters(), lr=dice.uniform(0.05, 0.15))
        return model, mse_loss, window, optimizer, norm * part

    def right(self, model: nn.Module, loss_fn: Any, window: Any, optimizer: Any, max_norm: float) -> Any:
        """Take the window as one large batch; shorten its gradient, from autograd.grad, by hand."""
        x, y = _joined(window)
        loss = loss_fn(model(x), y)
        whole = gradient(loss, model)
        shorter = whole * min(1.0, max_norm / whole.norm().item())
        return {"weights": weights(model) - optimizer.param_groups[0]["lr"] * shorter, "loss": loss.item()}

    def observe(self, answer: Any, *arguments: Any) -> Any:
        """Compare the weights after the update, and the loss that is returned."""
        said = answer(*arguments)
        return {"weights": weights(arguments[0]), "loss": said}

    def told(self, *arguments: Any) -> str:
        """Say how large the window and the threshold are."""
        return f"a window of {len(arguments[2])} and max_norm={arguments[4]:.3f}"

    def drawn(self, value: Any) -> Any:
        """Draw the weights."""
        return value["weights"]


EXERCISES = (ByTokens, Accumulated, OneUpdate)
