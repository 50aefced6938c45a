"""Typical wrong cures of each patient, and other right ones, as replacements in its sick loop."""

from __future__ import annotations

Edits = list[tuple[str, str]]

# patient -> wrong cure -> (replacements, words of the remark that it must get)
WRONG: dict[str, dict[str, tuple[Edits, str]]] = {
    "the-swinging-loss": {
        "a tenth of lr": ([("lr=0.1", "lr=0.01")], "`.grad` is not cleared between updates"),
        "cleared once an epoch": (
            [
                ("for x, y in batches * 8:\n", "for i, (x, y) in enumerate(batches * 6):\n"),
                ("    loss = ", "    if i % 24 == 0:\n        optimizer.zero_grad()\n    loss = "),
            ],
            "again",
        ),
        "clipped": (
            [("    optimizer.step()", "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()")],
            "`.grad` is not cleared between updates",
        ),
        "cleared too early": (
            [("    optimizer.step()", "    optimizer.zero_grad()\n    optimizer.step()")],
            "cleared after backward() and before step()",
        ),
    },
    "the-flat-loss": {
        "a larger lr": ([("lr=0.2", "lr=10.0")], "cleared after backward() and before step()"),
        "never cleared": ([("    optimizer.zero_grad()\n", "")], "`.grad` is not cleared between updates"),
        "stepped twice": (
            [
                (
                    "    loss.backward()\n    optimizer.zero_grad()\n",
                    "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n",
                )
            ],
            "192 updates",
        ),
        "Adam": ([("torch.optim.SGD", "torch.optim.Adam")], "cleared after backward() and before step()"),
    },
    "four-times-the-work": {
        "no longer accumulates": (
            [(" / 4", ""), ("    if (i + 1) % 4 == 0:\n        optimizer.step()", "    optimizer.step()")],
            "376 updates; the loop is meant to make 94",
        ),
        "not divided": ([(" / 4", "")], "cleared for every micro-batch"),
        "never cleared": ([("    optimizer.zero_grad()\n", "")], "`.grad` is not cleared between updates"),
        "cleared before the step": (
            [
                ("    optimizer.zero_grad()\n", ""),
                ("        optimizer.step()", "        optimizer.zero_grad()\n        optimizer.step()"),
            ],
            "cleared after backward() and before step()",
        ),
    },
    "the-new-head": {
        "a larger lr": ([("lr=0.2", "lr=0.5")], "parameters that the model no longer has"),
        "trains the head alone": (
            [
                ("optimizer = torch.optim.SGD(model.parameters(), lr=0.2)\n", ""),
                (
                    "nn.Linear(64, 10)\n",
                    "nn.Linear(64, 10)\noptimizer = torch.optim.SGD(model[4].parameters(), lr=0.2)\n",
                ),
            ],
            "model.0.weight",
        ),
        "keeps the old head": (
            [("model[4] = nn.Linear(64, 10)\n", "head = nn.Linear(64, 10)\n")],
            "still has its old head",
        ),
        "copies the numbers": (
            [
                (
                    "model[4] = nn.Linear(64, 10)\n",
                    "model[4] = nn.Linear(64, 10)\nmodel[4].load_state_dict(nn.Linear(64, 10).state_dict())\n",
                )
            ],
            "parameters that the model no longer has",
        ),
    },
    "the-second-update": {
        "retain_graph": ([("backward()", "backward(retain_graph=True)")], "inplace operation"),
        "forgets the state": ([("out, state =", "out, _ =")], "no longer remembers"),
        "caught": (
            [
                (
                    "    loss.backward()\n",
                    "    try:\n        loss.backward()\n    except RuntimeError:\n        continue\n",
                )
            ],
            "1 updates; the loop is meant to make 56",
        ),
        "zero_grad moved": (
            [
                (
                    "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()",
                    "    loss.backward()\n    optimizer.step()\n    optimizer.zero_grad()",
                )
            ],
            "a second time",
        ),
    },
    "flat-in-half-precision": {
        "no AMP": (
            [
                ("    with torch.autocast(device, dtype=torch.float16):\n        loss", "    loss"),
                ("scaler.scale(loss).backward()", "loss.backward()"),
                ("scaler.step(optimizer)\n    scaler.update()", "optimizer.step()"),
            ],
            "no longer steps by way of the scaler",
        ),
        "no clipping": (
            [("    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n", "")],
            "no longer clips",
        ),
        "clips at the scale": ([("(), 1.0)", "(), 65536.0)")], "clipped while they are still multiplied"),
        "unscaled after clipping": (
            [("(), 1.0)\n", "(), 1.0)\n    scaler.unscale_(optimizer)\n")],
            "clipped while they are still multiplied",
        ),
    },
    "learned-by-heart": {
        "more dropout": (
            [("build_with_dropout()\n", "build_with_dropout()\nmodel[2].p = 0.8\n")],
            "evaluation mode",
        ),
        "no validation": (
            [
                (
                    "    model.eval()\n    with torch.no_grad():\n"
                    "        losses.append(loss_fn(model(new_x), new_y).item())\n",
                    "",
                )
            ],
            "validates less",
        ),
        "validates in training mode": ([("    model.eval()\n", "")], "Fewer forward passes run in evaluation mode"),
        "no dropout": ([("build_with_dropout()\n", "build_with_dropout()\nmodel[2] = nn.Identity()\n")], "Dropout"),
    },
    "killed-at-night": {
        "total left out": ([("    total += loss\n", "")], "mean"),
        "emptied now and then": ([("    total += loss\n", "    total = total + loss\n")], "kept alive"),
        "the last loss alone": ([("    total += loss\n", "    total = loss.item()\n")], "`mean_loss` is"),
        "in a list": (
            [
                ("total = build(), 0", "total = build(), []"),
                ("total += loss", "total.append(loss)"),
                ("= total /", "= sum(total) /"),
            ],
            "kept alive",
        ),
    },
    "three-mistakes": {
        "zero_grad taken out": ([("    optimizer.zero_grad()\n", "")], "`.grad` is not cleared between updates"),
        "first backward taken out": (
            [
                ("    loss_fn(model(x), y).backward()\n", ""),
                ("    x = (x + 0.05 * x.grad.sign()).detach()\n", ""),
            ],
            "as they are",
        ),
        "zero_grad at the top": (
            [
                ("    optimizer.zero_grad()\n", ""),
                ("    x = x.clone()", "    optimizer.zero_grad()\n    x = x.clone()"),
            ],
            "Update 1 applies 2 batches",
        ),
    },
}

# patient -> other right cures
RIGHT: dict[str, list[Edits]] = {
    "the-swinging-loss": [
        [("    optimizer.step()", "    optimizer.step()\n    optimizer.zero_grad()")],
        [("    loss = ", "    for p in model.parameters():\n        p.grad = None\n    loss = ")],
        [("    loss.backward()", "    model.zero_grad(set_to_none=False)\n    loss.backward()")],
    ],
    "the-flat-loss": [
        [("    optimizer.zero_grad()\n    optimizer.step()", "    optimizer.step()\n    optimizer.zero_grad()")]
    ],
    "four-times-the-work": [[("    optimizer.zero_grad()\n", "    if i % 4 == 0:\n        optimizer.zero_grad()\n")]],
    "the-new-head": [
        [("nn.Linear(64, 10)\n", 'nn.Linear(64, 10)\noptimizer.add_param_group({"params": model[4].parameters()})\n')]
    ],
    "the-second-update": [[("    optimizer.step()", "    optimizer.step()\n    state = state.detach()")]],
    "learned-by-heart": [
        [
            (
                "        losses.append(loss_fn(model(new_x), new_y).item())\n",
                "        losses.append(loss_fn(model(new_x), new_y).item())\n    model.train()\n",
            )
        ]
    ],
    "killed-at-night": [[("total += loss\n", "total += loss.detach()\n")]],
}


def edited(text: str, edits: Edits) -> str:
    """Return a text with replacements, each of which must fit."""
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text
