"""The memory panel in a browser: a switch shows its effect within the next update, and a card its line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .driving import Notebook

LAB = "from gradlab import Lab, Recipe\nlab = Lab('digits', Recipe(lr=0.05{}), controls={})\nlab.run(5)\nlab"
CONTROLS = "['zero_grad', 'set_to_none', 'accumulate', 'amp', 'optimizer', 'card', 'speed']"
SCENE = "__import__('gradlab').scenes.RunScenes(lab.runner).memory()"
NEWEST = """(lambda m: (m.updates[-1][1], [
    (word, m.categories['gradients'][(list(m.starts) + [len(m.modules)])[at + 1] - 1])
    for at, word in enumerate(m.statements) if at >= m.updates[-1][0]]))(SCENE)""".replace("SCENE", SCENE)


def gradients_after_clearing(page: Notebook, update: int) -> int:
    """Bytes of gradients after zero_grad in the newest update that the panel shows, which must be this one."""
    number, statements = page.ask(NEWEST.replace("\n", " "))
    assert number == update
    return int(dict(statements)["zero_grad"])


def test_a_switch_is_seen_in_the_next_update(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("", CONTROLS))
    assert gradients_after_clearing(page, 5) == 0
    before = page.pictures()[-1]
    page.turn("set_to_none", False)
    page.wait_for("lab => lab.querySelector('pre.gl').innerText.includes('set_to_none=False')")
    page.button("1 update").click()
    page.wait_for_updates(6)
    assert gradients_after_clearing(page, 6) > 0
    assert page.pictures()[-1] != before


@pytest.mark.parametrize("speed", ["60 updates/s", "full speed"])
def test_a_switch_is_seen_while_playing(lab_page: Callable[..., Notebook], speed: str) -> None:
    page = lab_page(LAB.format(", optimizer='adam'", CONTROLS))
    page.turn("speed", speed)
    page.button("Play").click()
    page.wait_for_updates(40)
    at = page.updates()  # before the switch: at full speed many updates pass until its words are on screen
    page.turn("set_to_none", False)
    page.wait_for_words("set_to_none off")
    page.wait_for_updates(page.updates() + 30)
    page.button("Pause").click()
    page.wait_until_still()
    number, statements = page.ask(NEWEST.replace("\n", " "))
    assert at < number <= page.updates()
    assert dict(statements)["zero_grad"] > 0
    assert page.ask(f"'is watched' in {SCENE}.note or len(lab.runner.watched) < 2")


def test_a_card_is_chosen_and_told(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(LAB.format("", CONTROLS))
    before = page.pictures()[-1]
    page.turn("card", "T4")
    page.wait_for_words("Memory is held against T4: 14.6 GiB")
    assert page.pictures()[-1] != before


def test_out_of_memory_leaves_a_lab_that_plays(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(
        "import dataclasses, torch\nfrom torch import nn\nfrom gradlab import Lab, Recipe, tasks\n"
        "class Hungry(nn.Module):\n"
        "    def forward(self, x):\n"
        "        if x.requires_grad and not torch.is_autocast_enabled('cpu'):\n"
        "            raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB.')\n"
        "        return x\n"
        "net = lambda seed: nn.Sequential(nn.Linear(64, 32), Hungry(), nn.Linear(32, 10))\n"
        "lab = Lab(dataclasses.replace(tasks.digits(), builder=net), Recipe(lr=0.05))\nlab"
    )
    page.button("Play").click()
    page.wait_for_words("Out of memory at line 7, output = model.x., in 1. 2.00 GiB more could not be had")
    page.button("Play").wait_for()  # it has stopped
    page.turn("AMP", "bf16")
    page.wait_for_words("AMP bf16")
    page.button("Play").click()
    page.wait_for_updates(20)
    page.button("Reset").click()
    page.wait_for_words("update 0")
