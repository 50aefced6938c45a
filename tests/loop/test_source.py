"""The rendered loop, read as a teacher would read it: every combination parses, and says the right things in order."""

from __future__ import annotations

import ast
import builtins
import itertools

from gradlab import Recipe

GIVEN = {"torch", "model", "loss_fn", "batches", "device", "epochs"}
ALL = [
    Recipe(zero_grad=z, set_to_none=n, divide_loss=d, amp=a, clip=c, optimizer=o, accumulate=w)
    for z, n, d, a, c, o, w in itertools.product(
        *[(True, False)] * 3, ("off", "bf16", "fp16"), (None, 1.0), ("sgd", "momentum", "adam", "adamw"), (1, 2, 16)
    )
]


def lines_of(recipe: Recipe) -> list[str]:
    return recipe.source().splitlines()


def index_of(lines: list[str], start: str) -> int:
    """The index of the one line that begins with ``start``; -1 if there is none."""
    matches = [i for i, line in enumerate(lines) if line.strip().startswith(start)]
    assert len(matches) <= 1, start
    return matches[0] if matches else -1


def test_every_combination_uses_only_names_it_has() -> None:
    for recipe in ALL:
        tree = ast.parse(recipe.source())
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        assigned = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        assert used - assigned - GIVEN <= {"range", "len"} & set(dir(builtins))
        assert not assigned & GIVEN
        assert assigned <= {"optimizer", "scaler", "epoch", "start", "window", "x", "y", "output", "loss"}
        assert ("scaler" in assigned) == (recipe.amp == "fp16")
        assert not any(isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef) for node in ast.walk(tree))


def test_every_combination_fits_a_screen() -> None:
    for recipe in ALL:
        lines = lines_of(recipe)
        assert len(lines) <= 20
        assert max(map(len, lines)) <= 88
        assert recipe.source().endswith("\n")
        assert not any(line != line.rstrip() or "\t" in line for line in lines)


def test_every_combination_has_its_lines_in_the_right_order() -> None:
    for recipe in ALL:
        lines = lines_of(recipe)
        fp16 = recipe.amp == "fp16"
        clear = index_of(lines, "optimizer.zero_grad(" if recipe.zero_grad else "# optimizer.zero_grad(")
        divided = recipe.divide_loss and recipe.accumulate > 1
        plain = "(loss / len(window)).backward()" if divided else "loss.backward()"
        backward = index_of(lines, "scaler.scale(" if fp16 else plain)
        step = index_of(lines, "scaler.step(optimizer)" if fp16 else "optimizer.step()")
        order = [clear, index_of(lines, "output = model(x)"), index_of(lines, "loss = loss_fn(output, y)"), backward]
        if recipe.clip is not None:
            if fp16:
                order.append(index_of(lines, "scaler.unscale_(optimizer)"))
            order.append(index_of(lines, "torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)"))
        order.append(step)
        if fp16:
            order.append(index_of(lines, "scaler.update()"))
        assert -1 not in order
        assert order == sorted(order)
        indents = [(len(lines[index]) - len(lines[index].lstrip())) // 4 for index in (clear, backward, step)]
        assert indents == [2, 3 if recipe.accumulate > 1 else 2, 2]
        assert ("unscale_" in recipe.source()) == (fp16 and recipe.clip is not None)
        assert ("autocast" in recipe.source()) == (recipe.amp != "off")
        assert ("set_to_none=False" in lines[clear]) is not recipe.set_to_none


def test_a_clearing_that_is_off_stays_in_sight() -> None:
    on, off = lines_of(Recipe(accumulate=4)), lines_of(Recipe(accumulate=4, zero_grad=False))
    differ = [(a, b) for a, b in zip(on, off, strict=True) if a != b]
    assert differ == [(f"        {CLEAR}", f"        # {CLEAR}")]


CLEAR = "optimizer.zero_grad()"
