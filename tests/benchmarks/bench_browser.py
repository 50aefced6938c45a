"""What a learner sees in a real JupyterLab and Chromium: frames a second while training, and how soon Pause answers."""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from browser.driving import Notebook, browsing, serving

SPEEDS = ("60 updates/s", "full speed")
SECONDS = 4.0
PAUSES = 7
# Counts the pictures that the loss panel gets, and gives back the count and the seconds.
COUNT = """seconds => new Promise(resolve => {
  const img = document.querySelector('.gradlab img');
  let frames = 0;
  const observer = new MutationObserver(changes => { frames += changes.length; });
  observer.observe(img, {attributes: true, attributeFilter: ['src']});
  const began = performance.now();
  setTimeout(() => { observer.disconnect(); resolve([frames, (performance.now() - began) / 1000]); }, seconds * 1000);
})"""
# Clicks Pause in the page, and gives back the seconds from the click to the last change of a picture or of the update
# in the words, once none has come for a second.
PAUSE = """() => new Promise(resolve => {
  const lab = document.querySelector('.gradlab');
  const update = () => /update [0-9,]+/.exec(lab.querySelector('.gl-words').innerText)[0];
  let last = update(), changed = 0;
  const began = performance.now();
  const observer = new MutationObserver(() => {
    const now = update();
    if (now !== last) { last = now; changed = performance.now() - began; }
  });
  observer.observe(lab, {childList: true, characterData: true, subtree: true});
  lab.querySelector('.widget-toggle-button').click();
  setTimeout(() => { observer.disconnect(); resolve(changed / 1000); }, 1000);
})"""


def frames(page: Notebook, speed: str) -> tuple[float, float]:
    """Return frames and updates a second while playing at a speed."""
    page.turn("speed", speed)
    page.button("Play").click()
    page.wait_for_updates(page.updates() + 10)
    before = page.updates()
    count, seconds = page.page.evaluate(COUNT, SECONDS)
    rate = (page.updates() - before) / seconds
    page.button("Pause").click()
    page.wait_until_still()
    return count / seconds, rate


def pause(page: Notebook) -> float:
    """Return the seconds from a click on Pause to the last update that is told."""
    page.button("Play").click()
    page.wait_for_updates(page.updates() + 20)
    return float(page.page.evaluate(PAUSE))


def main() -> int:
    """Print the figures; return 1 when one misses its target."""
    rows = []
    with tempfile.TemporaryDirectory() as home, serving(Path(home)) as jupyter:
        profile = Path(home) / "profile"
        with browsing(jupyter, profile, "bench.ipynb") as page:
            page.show("from gradlab import Lab\nlab = Lab('digits')\nlab")
            for speed in SPEEDS:
                fps, rate = frames(page, speed)
                rows.append((f"frames at {speed}", f"{fps:.1f} /s ({rate:.0f} updates/s)", ">= 15 /s", fps >= 15))
            for speed in SPEEDS:
                page.turn("speed", speed)
                waits = [pause(page) for _ in range(PAUSES)]
                figure = f"{statistics.median(waits):.3f} s (worst {max(waits):.3f})"
                rows.append((f"Pause at {speed}", figure, "<= 0.3 s", max(waits) <= 0.3))
    for name, figure, target, met in rows:
        print(f"{name:26}{figure:>28}  {target:10} {'' if met else 'MISSED'}")
    return 0 if all(met for *_, met in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
