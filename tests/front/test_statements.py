"""A statement at a time: what is painted, the lit line, the status line and the warning tell the same."""

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

FRAMES = 75
RECIPES = {
    "never cleared": Recipe(lr=0.01, zero_grad=False),
    "a window of 4": Recipe(lr=0.05, accumulate=4),
}
# Shows the frames one after the other in a RunScreen, and gives back what can be seen after each.
SHOW = """frames => {
  let shown = nothingShown();
  const screen = new RunScreen(root, {ask, play() {}, onPlay() {}, speed() {}});
  const painted = {texts: [], fills: []};
  const own = context => context.canvas.closest?.('[data-panel=gradient]');
  const {fillText, fill, clearRect} = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    if (own(this)) { painted.texts = []; painted.fills = []; }
    return clearRect.apply(this, box);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    if (own(this)) painted.texts.push(text);
    return fillText.call(this, text, ...place);
  };
  CanvasRenderingContext2D.prototype.fill = function (...path) {
    if (own(this)) painted.fills.push(this.fillStyle);
    return fill.apply(this, path);
  };
  return frames.map(frame => {
    shown = mergeFrame(shown, frame);
    screen.show(shown);
    const count = role => painted.fills.filter(each => each === colourOf(role, 'light').toLowerCase()).length;
    const chip = root.querySelector('.gl-chip');
    return {
      line: [...root.querySelectorAll('pre.gl .line.lit .text')].map(line => line.textContent).join('\\n'),
      state: root.querySelector('.gl-state').textContent,
      warning: chip.hidden ? '' : chip.textContent,
      texts: painted.texts, fresh: count('fresh'), stale: count('stale'),
    };
  });
}"""


@dataclass
class Account:
    """What ``.grad`` holds by the lines that have run, written down by hand."""

    fresh: list[int] = field(default_factory=list)
    stale: list[int] = field(default_factory=list)
    applied: bool = True
    batches: int = 0
    wrong: bool = False

    def ran(self, line: str) -> None:
        """A line of the loop has run."""
        if ".backward()" in line:
            if self.applied:
                self.stale, self.fresh = self.stale + self.fresh, []
            self.batches, self.applied = self.batches + 1, False
            self.fresh.append(self.batches)
        elif "optimizer.step()" in line:
            self.wrong, self.applied = bool(self.stale), True
        elif "zero_grad(" in line:
            self.fresh, self.stale = [], []

    def held(self) -> str:
        """The batches inside as the panel and the status line write them."""
        inside = [*self.stale, *self.fresh]
        return f"{inside[0]}" if len(inside) == 1 else f"{inside[0]}–{inside[-1]}" if inside else ""


def recorded(recipe: Recipe) -> list[dict[str, Any]]:
    """The frames of a lab that plays statement by statement, from its beginning."""
    lab = Lab("digits", recipe, panels=["gradient"])
    frames = lab.handle({"do": "hello", "n": 0, "client": "test"})["frames"]
    while len(frames) < FRAMES:
        request = {"do": "frames", "count": FRAMES - len(frames), "every": 350, "n": 1, "client": "test"}
        frames += lab.handle(request)["frames"]
    return frames


@pytest.mark.parametrize("name", RECIPES)
def test_all_that_is_seen_agrees(page: Any, name: str) -> None:
    page.emulate_media(reduced_motion="reduce")
    frames = recorded(RECIPES[name])
    page.set_viewport_size({"width": 1300, "height": 900})
    page.evaluate("() => { document.querySelector('#host').style.width = '1280px'; }")
    account = Account()
    seen = page.evaluate(SHOW, frames)
    for number, now in enumerate(seen[1:], 1):
        where = f"frame {number}, {now['line'].strip()!r}"
        account.ran(now["line"])
        inside = account.held()
        corner = [text for text in now["texts"] if text.startswith("holds")]
        if not inside:
            assert re.search(r"\.grad is (None|all zeros)", now["state"]), where
            assert corner in (["holds no batch"], []), where
            assert (now["fresh"], now["stale"]) == (1, 1), f"{where}: nothing but the key is painted"
        else:
            assert inside.replace("–", " to ") in now["state"], where
            assert corner == [f"holds batch{'es' if '–' in inside else ''} {inside}"], where
            arrows = len(account.fresh) + (len(account.stale) if len(inside) < 9 else 0)
            assert now["fresh"] >= 1 + len(account.fresh), where
            assert (now["stale"] > 1) == bool(account.stale), where
            assert now["fresh"] + now["stale"] >= 2 + min(arrows, 8), where
        assert bool(now["warning"]) == account.wrong, where
        told = re.search(r", ([\d,]+) of them already applied|(, already applied)", now["state"])
        stale = 0 if told is None else len(account.stale) if told[2] else int(told[1].replace(",", ""))
        assert stale == len(account.stale), where
        assert told is None or not told[2] or not account.fresh, where
