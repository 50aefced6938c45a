"""Typical wrong cures of each patient, and other right ones, as replacements in its sick loop: "old => new"."""

from __future__ import annotations

from collections.abc import Iterable

# patient -> wrong cure -> the words of the remark that it must get, and the replacements
WRONG: dict[str, dict[str, tuple[str, ...]]] = {
    "the-swinging-loss": {
        "a tenth of lr": ("`.grad` is not cleared between updates", "lr=0.1 => lr=0.01"),
        "cleared once an epoch": (
            "again",
            "for x, y in batches * 8:\n => for i, (x, y) in enumerate(batches * 6):\n",
            "    loss =  =>     if i % 24 == 0:\n        optimizer.zero_grad()\n    loss = ",
        ),
    },
    "the-flat-loss": {
        "a larger lr": ("cleared after backward() and before step()", "lr=0.2 => lr=10.0"),
        "stepped twice": (
            "192 updates",
            "    loss.backward()\n    optimizer.zero_grad()\n => "
            "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n",
        ),
    },
    "four-times-the-work": {
        "no longer accumulates": (
            "376 updates; the loop is meant to make 94",
            " / 4 => ",
            "    if (i + 1) % 4 == 0:\n        optimizer.step() =>     optimizer.step()",
        ),
        "not divided": ("cleared for every micro-batch", " / 4 => "),
    },
    "the-new-head": {
        "a larger lr": ("parameters that the model no longer has", "lr=0.2 => lr=0.5"),
        "trains the head alone": (
            "model.0.weight",
            "optimizer = torch.optim.SGD(model.parameters(), lr=0.2)\n => ",
            "nn.Linear(64, 10)\n => nn.Linear(64, 10)\noptimizer = torch.optim.SGD(model[4].parameters(), lr=0.2)\n",
        ),
        "keeps the old head": (
            "still has its old head",
            "model[4] = nn.Linear(64, 10)\n => head = nn.Linear(64, 10)\n",
        ),
    },
    "the-second-update": {
        "retain_graph": ("inplace operation", "backward() => backward(retain_graph=True)"),
        "forgets the state": ("no longer remembers", "out, state = => out, _ ="),
        "caught": (
            "1 updates; the loop is meant to make 56",
            "    loss.backward()\n =>     try:\n        loss.backward()\n    except RuntimeError:\n        continue\n",
        ),
    },
    "flat-in-half-precision": {
        "no AMP": (
            "no longer steps by way of the scaler",
            "    with torch.autocast(device, dtype=torch.float16):\n        loss =>     loss",
            "scaler.scale(loss).backward() => loss.backward()",
            "scaler.step(optimizer)\n    scaler.update() => optimizer.step()",
        ),
        "no clipping": ("no longer clips", "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n => "),
        "clips at the scale": ("clipped while they are still multiplied", "(), 1.0) => (), 65536.0)"),
    },
    "learned-by-heart": {
        "no validation": (
            "validates less",
            "    model.eval()\n    with torch.no_grad():\n"
            "        losses.append(loss_fn(model(new_x), new_y).item())\n => "
            "",
        ),
        "validates in training mode": ("Fewer forward passes run in evaluation mode", "    model.eval()\n => "),
        "no dropout": ("Dropout", "build_with_dropout()\n => build_with_dropout()\nmodel[2] = nn.Identity()\n"),
    },
    "killed-at-night": {
        "total left out": ("mean", "    total += loss\n => "),
        "the last loss alone": ("`mean_loss` is", "    total += loss\n =>     total = loss.item()\n"),
        "in a list": (
            "keeps the graphs",
            "total = build(), 0 => total = build(), []",
            "total += loss => total.append(loss)",
            "= total / => = sum(total) /",
        ),
    },
    "three-mistakes": {
        "zero_grad taken out": ("`.grad` is not cleared between updates", "    optimizer.zero_grad()\n => "),
        "first backward taken out": (
            "as they are",
            "    loss_fn(model(x), y).backward()\n => ",
            "    x = (x + 0.05 * x.grad.sign()).detach()\n => ",
        ),
        "zero_grad at the top": (
            "Update 1 applies 2 batches",
            "    optimizer.zero_grad()\n => ",
            "    x = x.clone() =>     optimizer.zero_grad()\n    x = x.clone()",
        ),
    },
}

# patient -> other right cures
RIGHT: dict[str, list[str]] = {
    "the-swinging-loss": [
        "    optimizer.step() =>     optimizer.step()\n    optimizer.zero_grad()",
        "    loss.backward() =>     model.zero_grad(set_to_none=False)\n    loss.backward()",
    ],
    "the-flat-loss": [
        "    optimizer.zero_grad()\n    optimizer.step() =>     optimizer.step()\n    optimizer.zero_grad()",
    ],
    "four-times-the-work": [
        "    optimizer.zero_grad()\n =>     if i % 4 == 0:\n        optimizer.zero_grad()\n",
    ],
    "the-new-head": [
        'nn.Linear(64, 10)\n => nn.Linear(64, 10)\noptimizer.add_param_group({"params": model[4].parameters()})\n',
    ],
    "the-second-update": [
        "    optimizer.step() =>     optimizer.step()\n    state = state.detach()",
    ],
    "learned-by-heart": [
        "        losses.append(loss_fn(model(new_x), new_y).item())\n => "
        "        losses.append(loss_fn(model(new_x), new_y).item())\n    model.train()\n",
    ],
    "killed-at-night": [
        "total += loss\n => total += loss.detach()\n",
    ],
}


def edited(text: str, edits: Iterable[str]) -> str:
    """Return a text with replacements, each of which must fit."""
    for edit in edits:
        old, new = edit.split(" => ")
        assert old in text, old
        text = text.replace(old, new)
    return text
