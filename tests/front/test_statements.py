"""A statement at a time: each arrow's style and count, the lit line, the status line and the warning agree."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from test_components import browser as browser
from test_components import page as page
from test_components import pytestmark as pytestmark
from test_components import shared as shared

from gradlab import Lab, Recipe

FRAMES = 55
RECIPES = {
    "cleared": Recipe(lr=0.05),
    "cleared to zeros": Recipe(lr=0.05, set_to_none=False),
    "never cleared": Recipe(lr=0.01, zero_grad=False),
    "a window of 4": Recipe(lr=0.05, accumulate=4),
    "a window of 3, never cleared": Recipe(lr=0.01, accumulate=3, zero_grad=False),
    "a window of 5, not divided": Recipe(lr=0.01, accumulate=5, divide_loss=False),
    "clipped, never cleared": Recipe(lr=0.05, clip=1.0, zero_grad=False),
    "Adam, never cleared": Recipe(lr=0.001, optimizer="adam", zero_grad=False),
    "bf16": Recipe(lr=0.05, amp="bf16", accumulate=2),
    "two steps for each backward": Recipe(lr=0.05),
}
# Shows the frames one after the other in a RunScreen, and gives back what can be seen after each.
SHOW = """frames => {
  let shown = nothingShown();
  const screen = new RunScreen(root, {ask, play() {}, onPlay() {}, speed() {}});
  return frames.map(frame => {
    shown = mergeFrame(shown, frame);
    screen.show(shown);
    const chip = root.querySelector('.gl-chip');
    const { ids, marks } = root.querySelector('[data-panel=gradient]').gradlabPanel.picture._panel;
    return {
      line: [...root.querySelectorAll('pre.gl .line.lit .text')].map(line => line.textContent).join('\\n'),
      state: root.querySelector('.gl-state').textContent,
      warning: chip.hidden ? '' : chip.textContent.replace('⚠ ', ''),
      marks: marks.map(({fill, hatch, words, text}, at) => ({id: ids[at], fill, hatch, words, text})),
    };
  });
}"""
COUNTED = re.compile(
    r"batch(?:es)? ([\d,]+)(?:\u2013([\d,]+))?: .*(not applied yet|applied once|applied (\d+)(?: to (\d+))? times)"
)
LOOKS = {0: ("paper", None), 1: ("fresh", None), 2: ("reused", "//")}


@dataclass
class Account:
    """Number of steps that applied each batch in ``.grad``, counted by hand as the lines run."""

    times: dict[int, int] = field(default_factory=dict)
    batches: int = 0
    steps: int = 0
    warning: str = ""

    def ran(self, line: str) -> None:
        """A line of the loop has run."""
        if ".backward()" in line:
            self.batches += 1
            self.times[self.batches] = 0
        elif "optimizer.step()" in line:
            self.steps += 1
            again = [batch for batch, times in self.times.items() if times]
            self.warning = f"Step {self.steps} applied {numbers(again)} again" if again else ""
            self.times = {batch: times + 1 for batch, times in self.times.items()}
        elif "zero_grad(" in line:
            self.times = {}


def numbers(batches: list[int], to: str = " to ") -> str:
    """Batches as the lab writes them."""
    return f"batch {batches[0]}" if len(batches) == 1 else f"batches {batches[0]}{to}{batches[-1]}"


def recorded(name: str) -> list[dict[str, Any]]:
    """The frames of a lab that plays statement by statement, from its beginning."""
    lab = Lab("digits", RECIPES[name], panels=["gradient"])
    if name.startswith("two steps"):
        step = "        optimizer.step()"
        lab.edit(lab.runner.source.replace(step, f"{step}\n{step}"))
    frames = lab.handle({"do": "hello", "n": 0, "client": "test"})["frames"]
    while len(frames) < FRAMES:
        request = {"do": "frames", "count": FRAMES - len(frames), "every": 350, "n": 1, "client": "test"}
        frames += lab.handle(request)["frames"]
    return frames


@pytest.mark.parametrize("name", RECIPES)
def test_all_that_is_seen_agrees(page: Any, name: str) -> None:
    page.emulate_media(reduced_motion="reduce")
    frames = recorded(name)
    page.set_viewport_size({"width": 1300, "height": 900})
    page.evaluate("() => { document.querySelector('#host').style.width = '1280px'; }")
    account, counts_written = Account(), 0
    for number, now in enumerate(page.evaluate(SHOW, frames)[1:], 1):
        where = f"frame {number}, {now['line'].strip()!r}"
        account.ran(now["line"])
        left = dict(account.times)
        arrows = {mark["id"]: mark for mark in now["marks"] if re.fullmatch(r"arrow \d+", mark["id"])}
        for arrow in arrows.values():
            first, last, _, fewest, most = COUNTED.fullmatch(arrow["words"]).groups()  # type: ignore[union-attr]
            inside = [left.pop(batch) for batch in range(int(first), int(last or first) + 1)]
            counts = (int(fewest), int(most or fewest)) if fewest else (int("once" in arrow["words"]),) * 2
            assert counts == (min(inside), max(inside)), where
            assert (arrow["fill"], arrow["hatch"] or None) == LOOKS[min(counts[0], 2)], where
        assert not left, f"{where}: an arrow for each batch"
        for mark in now["marks"]:
            if mark["id"].startswith("arrow name") and "\u00d7" in (mark["text"] or ""):
                _, _, times = mark["text"].partition("\u00d7 ")
                text = arrows[mark["id"].replace(" name", "")]["words"]
                assert f"applied {times.replace(chr(0x2013), ' to ')} times" in text, where
                counts_written += 1
        assert now["warning"].startswith(account.warning), where
        assert bool(now["warning"]) == bool(account.warning) or "Two steps are taken" in now["warning"], where
        assert now["state"].startswith(f"update {account.steps}"), where
    assert account.steps
    assert bool(counts_written) == ("never" in name or "two steps" in name)
