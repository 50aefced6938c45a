"""The first visit on a phone, over a slow line: ``python tests/benchmarks/bench_site.py SITE [--visits N]``.

SITE is a folder that ``gradlab site`` wrote. It is served as a web server would, with text compressed. The phone is a
Chromium of 390 x 844 at a density of 3, its processor 4 times slower, its line 1.6 Mbit/s with 150 ms, its cache empty.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

LINE = {"offline": False, "latency": 150, "downloadThroughput": 200_000, "uploadThroughput": 100_000}
COUNT = """() => {
  const {prototype} = CanvasRenderingContext2D, {clearRect} = prototype;
  const painted = window.painted = new Map();
  prototype.clearRect = function (...box) {
    painted.set(this.canvas, [...(painted.get(this.canvas) ?? []), performance.now()]);
    return clearRect.apply(this, box);
  };
}"""
# Of each picture, one over the median time from one painting to the next.
RATES = """() => [...window.painted.values()].filter((at) => at.length > 9).map((at) => {
  const between = at.slice(1).map((time, index) => time - at[index]).sort((one, other) => one - other);
  return 1000 / between[between.length >> 1];
})"""


class Compressing(SimpleHTTPRequestHandler):
    """Sends text compressed, as GitHub Pages does."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        self.send_response(200)
        if path.suffix in (".html", ".css", ".js", ".svg"):
            content = gzip.compress(content, 6)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *said: Any) -> None:
        """Say nothing."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Compressing, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def visit(driver: Any, address: str) -> dict[str, float]:
    """Open the first page, press Play, bet, go to where zero_grad is off, press Play; return seconds from the start."""
    browser = driver.chromium.launch(args=["--no-sandbox", "--disable-gpu"], executable_path="/usr/bin/chromium")
    size = {"width": 390, "height": 844}
    page = browser.new_context(viewport=size, device_scale_factor=3, is_mobile=True, has_touch=True).new_page()
    control = page.context.new_cdp_session(page)
    control.send("Network.enable")
    control.send("Network.emulateNetworkConditions", LINE)
    control.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    began = time.monotonic()
    page.goto(f"{address}/index.html", wait_until="commit")
    page.locator("h1").wait_for()
    page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
    text = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
    lab = page.locator("#lab-home .gradlab")
    lab.get_by_role("button", name="Play").tap()
    page.wait_for_function("() => document.querySelector('#lab-home .gl-scrub input').value > 200")
    answers = time.monotonic() - began
    page.locator(".gl-bet li button").nth(2).tap()
    page.get_by_role("link", name="See it").tap()
    lab.get_by_role("button", name="Play").tap()
    lab.locator(".gl-chip", has_text="was not cleared").wait_for()
    stale = time.monotonic() - began
    browser.close()
    return {"text": text, "the lab answers a press": answers, "a stale arrow": stale}


def frames(driver: Any, address: str) -> dict[str, float]:
    """Play replays of lessons at 60 updates a second; return how often their pictures are painted."""
    browser = driver.chromium.launch(args=["--no-sandbox", "--disable-gpu"], executable_path="/usr/bin/chromium")
    size = {"width": 390, "height": 844}
    page = browser.new_context(viewport=size, device_scale_factor=3, is_mobile=True, has_touch=True).new_page()
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 4})
    found = {}
    for name, lesson in (("03-2", "03_forgetting_zero_grad"), ("00-4", "00_start_here"), ("13-1", "13_cheat_sheet")):
        page.goto(f"{address}/{lesson}.html")
        page.evaluate("() => document.querySelectorAll('details.deeper').forEach((each) => each.open = true)")
        page.evaluate(
            "() => document.querySelectorAll('.gl-bet').forEach((bet) => bet.querySelector('button')?.click())"
        )
        page.locator(f"#lab-{name}").scroll_into_view_if_needed()
        lab = page.locator(f"#lab-{name} .gradlab")
        lab.get_by_role("button", name="From zero").tap()
        page.wait_for_timeout(500)
        page.evaluate(COUNT)
        lab.get_by_role("button", name="Play").tap()
        page.wait_for_timeout(2500)
        rates = page.evaluate(RATES)
        found[f"{name}: pictures/s of the panel that is drawn most often"] = max(rates)
    browser.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--visits", type=int, default=3)
    options = parser.parse_args()
    with served(options.site) as address, sync_playwright() as driver:
        visits = [visit(driver, address) for _ in range(options.visits)]
        for name in visits[0]:
            print(f"{name}: {statistics.median(each[name] for each in visits):.1f} (median of {len(visits)})")
        for name, rate in frames(driver, address).items():
            print(f"{name}: {rate:.0f}")


if __name__ == "__main__":
    main()
