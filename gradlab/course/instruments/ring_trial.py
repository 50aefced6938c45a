"""A loop of the ring: its text, run as it is, with an account of what each call found in ``.grad`` and left there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from ..._process import main_thread
from ...gradients import Provenance, Span, union, within
from ...loop import LoopError, Program
from ...tasks import Task, digits

PIECES = ("zero_grad", "forward", "backward", "step")
USUAL = " ".join(PIECES)
_FORWARD = "loss = loss_fn(model(x), y)"
OPTIMIZERS = {
    "SGD": "torch.optim.SGD(model.parameters(), lr=0.3)",
    "SGD with momentum": "torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)",
    "Adam": "torch.optim.Adam(model.parameters(), lr=0.003)",
}


@dataclass(frozen=True)
class Setup:
    """All that decides what a loop does: its order, its optimizer and its model."""

    order: str = USUAL
    """Calls with spaces between them."""
    optimizer: str = "SGD"
    """One of ``OPTIMIZERS``."""
    set_to_none: bool = True
    first_loss: bool = False
    """Whether a forward runs before the loop; only for an order that ``needs_loss``."""
    layers: int = 3
    """Of the model: 3 or 1."""

    @property
    def pieces(self) -> tuple[str, ...]:
        """The calls, in order."""
        return tuple(self.order.split())

    @property
    def has_first_loss(self) -> bool:
        """Whether a forward does run before the loop."""
        return self.first_loss and needs_loss(self.order)


def needs_loss(order: str) -> bool:
    """Whether the first turn of the loop asks for a loss before it has computed one."""
    pieces = order.split()
    return "backward" in pieces and "forward" not in pieces[: pieces.index("backward")]


def order_source(setup: Setup) -> str:
    """Return the program: it needs only ``torch``, ``model``, ``loss_fn`` and ``batches``."""
    clear = "optimizer.zero_grad()" if setup.set_to_none else "optimizer.zero_grad(set_to_none=False)"
    lines = {"zero_grad": clear, "forward": _FORWARD, "backward": "loss.backward()", "step": "optimizer.step()"}
    text = [f"optimizer = {OPTIMIZERS[setup.optimizer]}"]
    if setup.has_first_loss:
        text += ["x, y = batches[0]", _FORWARD, "", "for x, y in batches[1:]:"]
    else:
        text += ["", "for x, y in batches:"]
    return "\n".join([*text, *(f"    {lines[piece]}" for piece in setup.pieces)]) + "\n"


TURNS = 60
"""Of the loop: one batch each."""
_BATCH = 16


@dataclass(frozen=True)
class Grad:
    """What the ``.grad`` of all parameters holds at one moment."""

    kind: str
    """"None", "zeros" or "batches"."""
    holds: tuple[Span, ...] = ()
    """Numbers of the backwards that are inside, as (first, last)."""
    stale: tuple[Span, ...] = ()
    """Of these, what a step has applied."""
    outdated: tuple[Span, ...] = ()
    """Of these, what no step has applied, but whose forward ran before the newest move of the weights."""
    norm: float = 0.0

    @property
    def count(self) -> int:
        """How many backwards are inside."""
        return count(self.holds)

    @property
    def fresh(self) -> int:
        """How many of them no step has applied."""
        return self.count - count(self.stale)

    @property
    def looks(self) -> dict[int, str]:
        """The number of each backward that is inside, and whether it is "fresh", "stale" or "outdated"."""
        found = {number: "fresh" for first, last in self.holds for number in range(first, last + 1)}
        for look, some in (("stale", self.stale), ("outdated", self.outdated)):
            found |= {number: look for first, last in some for number in range(first, last + 1)}
        return found


@dataclass(frozen=True)
class LoopCall:
    """One call of the loop, with ``.grad`` right before and right after it."""

    turn: int
    place: int
    """In the order, from 0."""
    piece: str
    line: int
    """Of the text, from 1."""
    before: Grad
    after: Grad
    added: int = 0
    """Of a backward: its number."""
    batch: int = 0
    """Of a forward or a backward: the number of the batch that its loss is of."""
    moved: bool = False
    """Of a step: whether it changed a weight."""
    age: int = 0
    """Of a step: how often the weights had moved since the forward of the oldest gradient that it applied first."""
    failed: bool = False


@dataclass(frozen=True)
class Trial:
    """One loop that was run to its end, or to its error."""

    setup: Setup
    text: str
    calls: tuple[LoopCall, ...]
    losses: tuple[float, ...]
    """On held-out digits: before the loop, and after each turn that was completed."""
    prints: tuple[bytes, ...]
    """A fingerprint of all weights, at the same moments."""
    weights: Tensor
    """At the end, in one row."""
    error: LoopError | None = None
    in_place: bool = False
    """Of an error in a backward: whether a step had written to the weights since the forward."""
    used: bool = False
    """Of an error in a backward: whether an earlier backward had gone through this loss already."""

    @property
    def turns(self) -> int:
        """How many turns of the loop were completed."""
        return len(self.losses) - 1

    @property
    def steps(self) -> list[LoopCall]:
        """The calls of step() that ran."""
        return [call for call in self.calls if call.piece == "step" and not call.failed]


def count(spans: tuple[Span, ...]) -> int:
    """Return how many numbers are in these spans."""
    return sum(last - first + 1 for first, last in spans)


@cache
def digits_task() -> Task:
    """Return the task: real handwritten digits."""
    return digits(batch=_BATCH, device="cpu")


def build(layers: int) -> nn.Module:
    """Return the network of the task, or a single layer, with the same weights each time."""
    if layers == 3:
        return digits_task().build(seed=0)
    generator = torch.Generator().manual_seed(0)
    model = nn.utils.skip_init(nn.Linear, 64, 10)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.125, 0.125, generator=generator)
    return model


def namespace(setup: Setup) -> dict[str, Any]:
    """Return the names that the text needs; with a forward before the loop there is one batch more."""
    batches = digits_task().batches[: TURNS + setup.has_first_loss]
    return {"torch": torch, "model": build(setup.layers), "loss_fn": digits_task().loss_fn, "batches": batches}


@lru_cache(maxsize=128)
def run_trial(setup: Setup) -> Trial:
    """Run the text of a setup from the same weights on the same batches; an error ends it and is kept."""
    with main_thread.hold(), torch.enable_grad():
        observer = _Observer(setup)
        try:
            return observer.run()
        finally:
            observer.provenance.close()


class _Observer:
    """Runs a text statement by statement, and writes down what each call has done."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.text = setup, order_source(setup)
        self.names = namespace(setup)
        self.model: nn.Module = self.names["model"]
        self.provenance = Provenance(self.model.named_parameters())
        self.calls: list[LoopCall] = []
        self.losses: list[float] = []
        self.prints: list[bytes] = []
        self.turn = 0
        self.moves = 0  # steps that have changed a weight
        self.writes = 0  # steps that have found anything but None: they write to the weights, if only the same numbers
        self.grad = Grad("None")
        self.weights = self._weights()
        self.loss_batch = self.loss_moves = self.loss_writes = 0  # of the newest forward: what was before it
        self.loss_used = False
        self.made_after: dict[int, int] = {}  # number of a backward -> moves before its forward

    def run(self) -> Trial:
        program = Program(self.text)
        lines = self.text.splitlines()
        first = next(at for at, line in enumerate(lines, 1) if line.startswith("for ")) + 1
        for _ in program.setup(self.names):
            pass
        self.provenance.watch([self.names["optimizer"]])
        if self.setup.has_first_loss:
            self.loss_batch = 1
        self._end_turn()
        at, error = 0, None
        pieces = self.setup.pieces
        try:
            for number in program.loop(self.names):
                line = program.statements[number].line
                if line < first:  # the header: another batch
                    if self.turn:
                        self._end_turn()
                    self.turn, at = self.turn + 1, 0
                    continue
                self._note(pieces[at], at, line)
                at += 1
            self._end_turn()
        except (NameError, RuntimeError) as raised:
            error = program.explain(raised)
            in_place, used = self.writes > self.loss_writes, self.loss_used
            self._note(pieces[at], at, first + at, failed=True)
            return self._trial(error, in_place, used)
        return self._trial(None, False, False)

    def _trial(self, error: LoopError | None, in_place: bool, used: bool) -> Trial:
        calls, losses, prints = tuple(self.calls), tuple(self.losses), tuple(self.prints)
        return Trial(self.setup, self.text, calls, losses, prints, self._weights(), error, in_place, used)

    def _note(self, piece: str, place: int, line: int, failed: bool = False) -> None:
        """Write a call down that has just run, or failed."""
        if piece == "backward" and not failed:
            self.made_after[self.provenance.backwards] = self.loss_moves
        before, self.grad = self.grad, self._read_grad()
        added = batch = age = 0
        moved = False
        if piece == "forward":
            batch = self.loss_batch = self.turn + self.setup.has_first_loss
            self.loss_moves, self.loss_writes, self.loss_used = self.moves, self.writes, False
        elif piece == "backward" and not failed:
            added, batch, self.loss_used = self.provenance.backwards, self.loss_batch, True
        elif piece == "step" and not failed:
            now = self._weights()
            moved = not torch.equal(now, self.weights)
            self.weights = now
            new = [made for number, made in self.made_after.items() if _newly(number, before)]
            age = self.moves - min(new, default=self.moves)
            self.moves += moved
            self.writes += before.kind != "None"
            self.made_after.clear()  # all that is in .grad is applied now, and what is not there cannot come back
        self.calls.append(
            LoopCall(self.turn, place, piece, line, before, self.grad, added, batch, moved, age, failed),
        )

    def _end_turn(self) -> None:
        x, y = digits_task().held_out or (None, None)
        with torch.no_grad():
            self.losses.append(float(self.names["loss_fn"](self.model(x), y)))
        row = self._weights() + 0.0  # no negative zeros
        self.prints.append(hashlib.sha256(row.numpy().tobytes()).digest())

    def _read_grad(self) -> Grad:
        contents = self.provenance.contents()
        if all(parameter.grad is None for parameter in self.model.parameters()):
            return Grad("None")
        kind = "batches" if contents.holds else "zeros"
        grad = Grad(kind, tuple(contents.holds), tuple(contents.stale), norm=contents.norm)
        outdated = union((n, n) for n, moves in self.made_after.items() if moves < self.moves and _newly(n, grad))
        return replace(grad, outdated=tuple(outdated))

    def _weights(self) -> Tensor:
        return torch.cat([parameter.detach().flatten() for parameter in self.model.parameters()])


def _newly(number: int, before: Grad) -> bool:
    """Whether a step that finds this in ``.grad`` is the first to apply a backward."""
    return within(number, before.holds) and not within(number, before.stale)
