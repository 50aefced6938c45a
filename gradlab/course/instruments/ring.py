"""ring_of_orders: drag the four calls of a loop into any order, run it, and see what it does and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import permutations
from typing import Any

from ...widgets import Control, Instrument, View
from .ring_panels import CALLS_SHOWN, CallSeen, draw_contents, draw_losses, draw_ring
from .ring_trial import OPTIMIZERS, PIECES, USUAL, Setup, needs_loss, run_trial
from .ring_verdict import OrderRun, judge_order, usual_setup


class RingOfOrders(Instrument):
    """The calls of a training loop on a ring: any order is run on real digits and held against the usual one."""

    title = "The ring of orders"

    def controls(self) -> list[Control]:
        """Return the controls: the order, what else decides the run, and the call to look at."""
        return [
            Control.order("order", "order of the calls", USUAL, PIECES),
            Control.slider("call", "call", CALLS_SHOWN, range(CALLS_SHOWN + 1), plays=700),
            Control.choice("optimizer", "optimizer", "SGD", list(OPTIMIZERS)),
            Control.tick("set_to_none", "set_to_none", start=True),
            Control.choice("layers", "model", 3, [("three layers", 3), ("one layer", 1)]),
            Control.tick("first_loss", "forward before the loop", start=False),
        ]

    def render(self, at: Mapping[str, Any]) -> View:
        """Return the ring, what ``.grad`` holds and the losses, with the verdict in words and the text that ran."""
        ran = self.ran(at)
        moment = CallSeen(ran, at["call"])
        line = moment.call.line if moment.call else 0
        return View(
            panels={
                "ring": lambda width, height: draw_ring(moment, width, height),
                "grad": lambda width, height: draw_contents(moment, width, height),
                "loss": lambda width, height: draw_losses(ran, width, height),
            },
            state=f"{ran.verdict.capitalize()}. {ran.judged.result}. {ran.why}".replace("`", ""),
            note=moment.words.replace("`", ""),
            code=ran.code,
            off=() if needs_loss(at["order"]) else ("first_loss",),
            lit=(line, line),
            wrong=line if moment.call and moment.call.failed else 0,
        )

    def ran(self, at: Mapping[str, Any]) -> OrderRun:
        """Return the order at these settings with the usual loop beside it; each is run once."""
        setup = Setup(at["order"], at["optimizer"], at["set_to_none"], at["first_loss"], at["layers"])
        trial, usual = run_trial(setup), run_trial(usual_setup(setup))
        return OrderRun(trial, usual, judge_order(trial, usual))

    def recorded(self) -> Iterable[Mapping[str, Any]]:
        """Return all orders of the four calls, and the usual one with a call left out or doubled, call by call."""
        for order in all_orders():
            for first_loss in (False, True) if needs_loss(order) else (False,):
                for call in range(CALLS_SHOWN, -1, -1):
                    yield {"order": order, "first_loss": first_loss, "call": call}


def all_orders() -> list[str]:
    """Return the 24 orders of the four calls, and the usual one with one call left out or doubled."""
    found = [" ".join(order) for order in permutations(PIECES)]
    found += [" ".join(piece for piece in PIECES if piece != left) for left in PIECES]
    found += [" ".join((*PIECES[:at], piece, *PIECES[at:])) for piece in PIECES for at in range(len(PIECES) + 1)]
    return list(dict.fromkeys(found))


def ring_of_orders(**start: Any) -> RingOfOrders:
    """Return the ring of orders, to be shown: four calls to be dragged into any order, run, and judged.

    Keyword arguments set where its controls start: ``order="forward backward step zero_grad"``, ``call`` (how many
    calls of the loop the picture has behind it, 0 to 12), ``optimizer`` ("SGD", "SGD with momentum" or "Adam"),
    ``set_to_none``, ``layers`` (3 or 1) and ``first_loss`` (a forward before the loop). Raises ValueError for others.
    """
    return RingOfOrders(**start)


def run_order(order: str, **options: Any) -> OrderRun:
    """Run the four calls in an order, as ``"zero_grad forward backward step"``, and judge what comes of it.

    The options are those of ``ring_of_orders``. Raises ValueError for an order or an option that there is not.
    """
    ring = RingOfOrders(order=order, **options)
    return ring.ran(ring.values)
