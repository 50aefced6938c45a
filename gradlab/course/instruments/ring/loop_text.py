"""The loop as text: an optimizer, and the calls of an order once a batch. This text is what runs."""

from __future__ import annotations

from dataclasses import dataclass

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
