"""All displays of a notebook on one page: axe-core finds no violation, and it fits each screen."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import pytest
from PIL import Image

from .driving import Notebook, next_frames, violations

START = (
    "import torch\ntorch.set_num_threads(1)\nfrom gradlab import Lab, Recipe, compare, course, exercise, predict\n"
    "from gradlab.course import ForecastLab"
)
WRONG = "Recipe(zero_grad=False, amp='fp16', accumulate=2, clip=1.0, lr=0.01)"
FORECAST = "ForecastLab('llama-8b', context=128).run().run(checkpoint=True, batch=2)"
LABS = (
    f"Lab('digits', {WRONG}).run(5)",
    f"Lab('bowl', {WRONG}).run(5)",
    "Lab('digits', panels=['loss', 'gradient', 'memory']).run(3)",
    FORECAST,
    "course.swing(lr=0.3)",
    "course.loss_scale()",
    "course.peak()",
    "course.ring_of_orders()",
    *(["course.two_ranks()"] if os.name == "posix" else []),  # it starts processes as Linux and macOS do
)
OTHERS = (
    "compare('line', {'right': Recipe(lr=0.01), 'forgot': Recipe(lr=0.01, zero_grad=False)}, updates=5)",
    "def answer(overflowed, scale, growth_interval):\n    return [scale] * len(overflowed)\n"
    "exercise('scales_after').check(answer)",
    "asked = predict('03/a-quarter-of-lr')\nasked.choose(asked.options[0])\nasked",
    "course.series_map()",
)
SELECTORS = (".gradlab", ".gl-bet[data-settled]", ".gl-map", *(f".jp-OutputArea-output:has({part})" for part in (
    ".gl-themed", "[role=status]")))  # fmt: skip
TALL_PX = 20_000  # labs out of the window are not painted
BOXES = """() => {
  const visible = element => element.getClientRects().length > 0;
  const parts = '.gl-controls > *, .gl-player > *, .gl-bar > .gl-button, .gl-buttons > *, pre.gl, canvas, '
    + '.gl-alarm, .gl-words';
  return [...document.querySelectorAll(`.gradlab :is(${parts})`)].filter(visible).map(part => {
    const {left, top, right, bottom} = part.getBoundingClientRect();
    return [part.tagName + ' ' + part.innerText.slice(0, 20), [left, top, right, bottom]];
  });
}"""
PANELS = """lab => [...lab.querySelectorAll('.gl-panel')].map(panel => {
  const {left, right, top, bottom} = panel.getBoundingClientRect();
  return [left, right, top, bottom];
})"""
PAPER = """() => [...document.querySelectorAll('.gradlab canvas')].map(canvas =>
  canvas.getContext('2d').getImageData(2, canvas.height - 3, 1, 1).data[1])"""
VIEWPORT = """() => {
  const {left, top, right, bottom} = document.querySelector('.gradlab').closest('.jp-WindowedPanel-outer')
    .getBoundingClientRect();
  return [left, top, right, bottom];
}"""
# Elements that overflow: labs, lines of their loops, the map and its tiles.
CUT = """() => [...document.querySelectorAll('.gradlab, .gradlab pre.gl .line, .gl-map, .gl-map li')]
  .filter(element => element.scrollWidth > element.clientWidth).map(element => element.outerHTML)"""


# The contrast of texts with the paper of their lab, as WCAG 2 defines it, where it is below 4.5.
PALE = """() => {
  const luminance = (element, what) => {
    const linear = getComputedStyle(element)[what].match(/[0-9.]+/g).slice(0, 3).map(Number).map(c => c / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  return [...document.querySelectorAll('.gradlab')].flatMap(lab => {
    const paper = luminance(lab, 'backgroundColor');
    return ['.gl-state', '.gl-note', '.gl-label', '.gl-value', 'pre.gl .line', 'pre.gl .gutter', '.gl-chip-call']
      .map(what => [what, lab.querySelector(what)]).filter(([, text]) => text)
      .map(([what, text]) => [what, luminance(text, 'color')])
      .map(([what, ink]) => [what, (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05)])
      .filter(([, contrast]) => !(contrast >= 4.5));
  });
}"""


@pytest.fixture
def gallery(notebook: Notebook) -> Iterator[Notebook]:
    """A page with all displays, which is shown again only if another test has replaced it; the test adds no error."""
    notebook.problems()
    logged = len(notebook.jupyter.errors())
    cells = (START, *LABS, *OTHERS)
    if notebook.cells != cells:
        notebook.show(*cells, height=TALL_PX)
    yield notebook
    notebook.page.emulate_media(forced_colors="none", contrast="no-preference")
    notebook.theme("Light")
    notebook.side_bar(True)
    assert notebook.problems() == []
    assert notebook.jupyter.errors()[logged:] == []


def fit_into(page: Notebook, width: int) -> None:
    """Show the notebook in a window of this width, and wait until all labs are painted."""
    page.page.set_viewport_size({"width": width, "height": TALL_PX})
    page.side_bar(width == 1366)  # as JupyterLab opens
    next_frames(page.page)
    for number in range(len(LABS)):
        page.lab(number).wait_until_painted()


def paper(page: Notebook) -> list[float]:
    """Return the lightness, 0 to 255, of a corner of each painted panel and figure."""
    painted: list[float] = page.page.evaluate(PAPER)
    for figure in page.page.locator("img.gl-themed").all():
        picture = Image.open(io.BytesIO(figure.screenshot())).convert("L")
        painted.append(float(picture.getpixel((4, picture.height - 4))))
    return painted


@pytest.mark.parametrize(
    ("width", "theme", "media"),
    [
        (1366, "Light", {}),
        (390, "Dark", {}),
        pytest.param(1366, "Light", {"forced_colors": "active"}, marks=pytest.mark.nightly),
    ],
)
def test_it_has_contrast_and_no_violation_by_axe(
    gallery: Notebook, width: int, theme: str, media: dict[str, Any]
) -> None:
    fit_into(gallery, width)
    gallery.theme(theme)
    gallery.page.emulate_media(**{"forced_colors": "none", "contrast": "no-preference", **media})
    gallery.wait_for("(lab, dark) => lab.classList.contains('gradlab-dark') === dark", theme == "Dark")
    next_frames(gallery.page)
    assert violations(gallery.page, *SELECTORS) == []
    if not media:
        assert gallery.page.evaluate(PALE) == []  # axe-core skips uncertain cases
        assert all((light > 128) == (theme == "Light") for light in paper(gallery))


@pytest.mark.parametrize("width", [390, 1366])
def test_it_fits_and_nothing_covers_anything(gallery: Notebook, width: int) -> None:
    fit_into(gallery, width)
    boxes = gallery.page.evaluate(BOXES)
    assert len(boxes) > 10 * len(LABS)
    for (name, a), (other_name, b) in combinations(boxes, 2):
        across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        assert across <= 1 or down <= 1, f"{name} and {other_name} overlap by {across:.0f} x {down:.0f} px"
    _, _, right, _ = gallery.page.evaluate(VIEWPORT)
    assert max(box[2] for _, box in boxes) <= right <= width
    assert gallery.page.evaluate(CUT) == []
    for number, lab in enumerate(LABS):
        panels = gallery.lab(number).evaluate(PANELS)
        left, right = min(box[0] for box in panels), max(box[1] for box in panels)
        for top in {round(box[2]) for box in panels}:
            row = [box for box in panels if round(box[2]) == top]
            beside_the_loop = len(panels) == 3 and len(row) == 1
            full = sum(box[1] - box[0] for box in row) >= right - left - 8 * len(row)
            assert full or beside_the_loop, f"{lab}: each row is full"
        assert min(box[1] - box[0] for box in panels) >= (255 if width == 390 else 275), lab


@pytest.mark.parametrize("lab", [*LABS[:1], pytest.param(FORECAST, marks=pytest.mark.nightly)])
def test_a_small_laptop_shows_all_of_a_lab(lab_page: Callable[..., Notebook], lab: str) -> None:
    page = lab_page(f"{START}\n{lab}")  # 1366 x 768
    page.side_bar(True)
    next_frames(page.page)
    _, top, right, bottom = page.page.evaluate(VIEWPORT)
    for name, (_, its_top, its_right, its_bottom) in page.page.evaluate(BOXES):
        assert its_top >= top - 1, name
        assert its_right <= right, name
        assert its_bottom <= bottom, f"{name} ends {its_bottom - bottom:.0f} px below the window"
