"""From a Recipe to the loop's text: the loop that a PyTorch teacher would write on the board.

The text is the program. A Run executes it line by line, the code pane shows it, and ``exec`` of it in a namespace that
holds only ``torch``, ``model``, ``loss_fn``, ``batches``, ``device`` and ``epochs`` trains just the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .recipe import Recipe

_OPTIMIZER = {
    "sgd": "torch.optim.SGD(model.parameters(), lr={lr})",
    "momentum": "torch.optim.SGD(model.parameters(), lr={lr}, momentum=0.9)",
    "adam": "torch.optim.Adam(model.parameters(), lr={lr})",
    "adamw": "torch.optim.AdamW(model.parameters(), lr={lr})",
}
_AUTOCAST = {"bf16": "torch.bfloat16", "fp16": "torch.float16"}
_INDENT = "    "


def render(recipe: Recipe) -> str:
    """Return the loop's text for a recipe, ending in a newline."""
    setup = [f"optimizer = {_OPTIMIZER[recipe.optimizer].format(lr=recipe.lr)}"]
    if recipe.amp == "fp16":
        setup.append("scaler = torch.amp.GradScaler(device)")
    epoch = _window(recipe) if recipe.accumulate > 1 else _batch(recipe)
    lines = [*setup, "", "for epoch in range(epochs):", *_indented(epoch)]
    return "\n".join(lines) + "\n"


def _batch(recipe: Recipe) -> list[str]:
    """One update for each batch."""
    body = [_MOVE, _clear(recipe), *_forward_backward(recipe, "loss"), *_update(recipe)]
    return ["for x, y in batches:", *_indented(body)]


def _window(recipe: Recipe) -> list[str]:
    """One update for each window of batches; the last one may be shorter and is divided by its own size."""
    loss = "loss / len(window)" if recipe.divide_loss else "loss"
    each = ["for x, y in window:", *_indented([_MOVE, *_forward_backward(recipe, loss)])]
    n = recipe.accumulate
    body = [f"window = batches[start:start + {n}]", _clear(recipe), *each, *_update(recipe)]
    return [f"for start in range(0, len(batches), {n}):", *_indented(body)]


_MOVE = "x, y = x.to(device), y.to(device)"


def _clear(recipe: Recipe) -> str:
    """The line that clears ``.grad``; it stays in sight as a comment when it is switched off."""
    line = f"optimizer.zero_grad(set_to_none={recipe.set_to_none})"
    return line if recipe.zero_grad else f"# {line}"


def _forward_backward(recipe: Recipe, loss: str) -> list[str]:
    forward = ["output = model(x)", "loss = loss_fn(output, y)"]
    if recipe.amp != "off":
        autocast = f"with torch.autocast(device_type=device, dtype={_AUTOCAST[recipe.amp]}):"
        forward = [autocast, *_indented(forward)]
    # ``loss`` itself is never divided or scaled, so that what is logged is the loss and not a share of it.
    if recipe.amp == "fp16":
        return [*forward, f"scaler.scale({loss}).backward()"]
    return [*forward, f"{loss}.backward()" if loss == "loss" else f"({loss}).backward()"]


def _update(recipe: Recipe) -> list[str]:
    scaled = recipe.amp == "fp16"
    lines = []
    if recipe.clip is not None:
        if scaled:  # the norm of scaled gradients is 65536 times too large: clip what the step will use
            lines.append("scaler.unscale_(optimizer)")
        lines.append(f"torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm={recipe.clip})")
    return [*lines, *(["scaler.step(optimizer)", "scaler.update()"] if scaled else ["optimizer.step()"])]


def _indented(lines: list[str]) -> list[str]:
    return [_INDENT + line for line in lines]
