"""A recipe is a value: equal by its switches, hashable, frozen, with its differences as text."""

from __future__ import annotations

import dataclasses

import pytest

from gradlab import Recipe

OTHERS = {
    "zero_grad": (False, "zero_grad off"),
    "set_to_none": (False, "set_to_none off"),
    "accumulate": (4, "accumulate 4"),
    "divide_loss": (False, "divide_loss off"),
    "amp": ("fp16", "AMP fp16"),
    "clip": (0.5, "clip 0.5"),
    "optimizer": ("adamw", "optimizer adamw"),
    "lr": (0.0125, "lr 0.0125"),
}


def test_the_switches_and_their_defaults() -> None:
    clearing, window = {"zero_grad": True, "set_to_none": True}, {"accumulate": 1, "divide_loss": True}
    others = {"amp": "off", "clip": None, "optimizer": "sgd", "lr": 0.1}
    assert dataclasses.asdict(Recipe()) == clearing | window | others
    assert OTHERS.keys() == dataclasses.asdict(Recipe()).keys()


@pytest.mark.parametrize("name", OTHERS)
def test_one_changed_switch_is_another_recipe_and_is_named(name: str) -> None:
    value, label = OTHERS[name]
    changed = Recipe().replace(**{name: value})
    assert getattr(changed, name) == value
    assert changed != Recipe()
    assert changed.changes_from(Recipe()) == [label]
    back = Recipe().changes_from(changed)
    assert len(back) == 1
    assert back[0] != label
    assert changed.replace(**{name: getattr(Recipe(), name)}) == Recipe()


def test_equal_recipes_are_one_key() -> None:
    assert {Recipe(lr=1), Recipe(lr=1.0), Recipe(clip=3, lr=1), Recipe(clip=3.0, lr=1.0)} == {
        Recipe(lr=1.0),
        Recipe(clip=3.0, lr=1.0),
    }
    assert Recipe(lr=1, clip=3).source() == Recipe(lr=1.0, clip=3.0).source()


@pytest.mark.parametrize("lr", [5e-324, 1 / 3, 1e22])
def test_the_text_carries_the_very_number(lr: float) -> None:
    source = Recipe(lr=lr, clip=lr).source()
    assert f"lr={lr!r})" in source
    assert f"max_norm={lr!r})" in source
    assert float(source.split("lr=")[1].split(")")[0]) == lr
