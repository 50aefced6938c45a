"""The curve without the newest switch in a real browser: live, and in a replay without a kernel."""

from __future__ import annotations

from collections.abc import Callable

from .driving import Notebook

CELL = """from gradlab import Lab, Recipe
lab = Lab("digits", Recipe(lr=0.2), controls=["zero_grad"], panels=["held-out loss", "gradient"], speed="10 updates/s")
lab.run(updates=200)"""
SHOWN = "lab.model.screen.scenes.held_out().unswitched"


def test_the_loss_without_the_switch_grows_and_can_be_read(lab_page: Callable[..., Notebook]) -> None:
    page = lab_page(CELL)
    page.turn("zero_grad", False)
    page.button("Play").click()
    page.wait_for_updates(215)
    page.button("Pause").click()
    page.wait_until_still()
    updates = page.updates()
    assert page.ask(f"[int(update) for update in {SHOWN}.updates]") == list(range(201, updates + 1))
    panel = page.root.locator('[data-panel="held-out loss"]')
    canvas, tip = panel.locator("canvas"), panel.locator(".gl-tip")
    assert "Had you left zero_grad on, the held-out loss would be" in canvas.get_attribute("aria-label")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    across, down = page.points("held-out loss", "without")[-1]
    page.page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])
    page.wait_for("lab => [...lab.querySelectorAll('.gl-tip')].some(tip => !tip.hidden)")
    assert tip.inner_text().startswith(f"update {updates}: 0.")
    assert "had you left zero_grad on" in tip.inner_text()
