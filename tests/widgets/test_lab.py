"""The Lab without a browser: what a click does to the run, the code pane, the pictures and the words."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from ipywidgets import Dropdown
from PIL import Image
from seen import button, html, inside, pictures

from gradlab import Lab, Recipe, Run, tasks
from gradlab.widgets.code import changed_lines
from gradlab.widgets.presets import PRESETS

torch.set_num_threads(1)


def press(lab: Lab, name: str, value: Any) -> None:
    """Turn a control as the browser does."""
    lab.controller.controls.widgets[name].value = value


def weights(run: Run) -> list[torch.Tensor]:
    return [param.detach().clone() for param in run.model.parameters()]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def shown_code(lab: Lab) -> str:
    """The text in the code pane, as a reader sees it."""
    shown = html(lab.controller.code.widget)
    lines = re.findall(
        r'<span class="line[^"]*"[^>]*><span class="gutter">[^<]*</span>(.*?)</span>(?=<span class="line|</pre>)', shown
    )
    plain = [re.sub(r"<[^>]+>", "", line) for line in lines]
    return "\n".join(plain).replace("&#39;", "'").replace("&quot;", '"').replace("&amp;", "&") + "\n"


def images(lab: Lab) -> list[bytes]:
    return pictures(lab.controller.screen.widget)


SWITCHES = [
    ("zero_grad", False),
    ("set_to_none", False),
    ("accumulate", 4),
    ("amp", "bf16"),
    ("amp", "fp16"),
    ("clip", 0.5),
    ("optimizer", "adam"),
    ("lr", 0.02),
]


@pytest.mark.parametrize(("name", "value"), SWITCHES)
def test_a_switch_changes_the_code_and_the_run_and_keeps_the_weights(name: str, value: Any) -> None:
    lab = Lab("line").run(3)
    before = weights(lab.runner)
    press(lab, name, value)
    expected = Recipe(lr=tasks.line().lr).replace(**{name: value})
    assert lab.runner.recipe == expected
    assert shown_code(lab) == expected.source()
    assert lab.controller.code.changed
    assert same(weights(lab.runner), before)
    lab.run(12)  # with fp16 the first steps are skipped until the scale is low enough
    assert lab.runner.updates == 15
    assert not same(weights(lab.runner), before)


def test_divide_loss_waits_for_a_window() -> None:
    lab = Lab("line")
    assert lab.controller.controls.widgets["divide_loss"].disabled
    press(lab, "accumulate", 4)
    assert not lab.controller.controls.widgets["divide_loss"].disabled
    press(lab, "divide_loss", False)
    assert shown_code(lab) == Recipe(lr=0.01, accumulate=4, divide_loss=False).source()


def test_the_lab_trains_as_the_plain_loop_does() -> None:
    recipe = Recipe(lr=0.05, accumulate=3, clip=1.0)
    lab = Lab("digits", recipe, panels=["loss", "gradient", "picture", "landscape", "scaler", "memory"])
    task = tasks.digits()
    names = {"model": task.build(0), "loss_fn": task.loss_fn, "batches": task.batches, "device": task.device}
    exec(recipe.source(), {"torch": torch, "epochs": 2, **names})
    lab.run(-(-len(task.batches) // 3))
    for _ in range(10):
        lab.step()
    lab.controller.update()
    while lab.runner.updates < 2 * -(-len(task.batches) // 3):
        (speed,) = inside(lab.controller.player.widget, Dropdown)
        speed.value = 60.0
        lab.controller.update()
    assert same(weights(lab.runner), [param.detach() for param in names["model"].parameters()])


def test_a_switch_in_mid_update_completes_the_update_first() -> None:
    lab = Lab("line").run(1)
    for _ in range(4):
        lab.step()
    press(lab, "zero_grad", False)
    assert lab.runner.updates == 2
    assert "completed first" in lab.controller.words.value
    assert shown_code(lab) == lab.runner.source == Recipe(lr=0.01, zero_grad=False).source()


def test_a_new_optimizer_says_that_its_state_is_empty_and_keeps_the_weights() -> None:
    lab = Lab("line", Recipe(optimizer="adam", lr=0.01)).run(5)
    before = weights(lab.runner)
    press(lab, "optimizer", "adamw")
    assert "its state starts empty" in lab.controller.words.value
    assert same(weights(lab.runner), before)
    assert lab.runner.updates == 5
    press(lab, "zero_grad", False)
    assert "its state starts empty" not in lab.controller.words.value


def test_another_task_is_a_new_run_and_says_so() -> None:
    lab = Lab("line").run(5)
    press(lab, "task", "spiral")
    assert lab.runner.updates == 0
    assert lab.runner.task.name == "spiral"
    assert "A new run" in lab.controller.words.value


def test_one_statement_lights_the_next_line() -> None:
    lab = Lab("line")
    order = []
    for _ in range(9):
        lab.step()
        lit = re.findall(
            r'<span class="line lit[^"]*" aria-current="step"><span class="gutter">▶ (\d+)',
            html(lab.controller.code.widget),
        )
        order.append([int(number) for number in lit])
    assert order == [[3], [4], [5], [6], [7], [8], [9], [10], [4]]


def test_reset_shows_the_first_frame_again() -> None:
    lab = Lab("digits")
    first, words = images(lab), lab.text
    lab.switch(zero_grad=False).run(50)
    lab.switch(zero_grad=True)
    assert images(lab) != first
    lab.reset()
    assert lab.text == words
    assert images(lab) == first


def test_the_warning_comes_with_a_reused_batch_and_goes_with_the_repair() -> None:
    lab = Lab("digits")
    assert lab.run(3).warning == ""
    assert lab.switch(zero_grad=False).run(2).warning == "Step 5 applied batches 3 to 4 again: .grad was not cleared."
    assert "gl-chip" in lab.controller.words.value
    lab.switch(zero_grad=True).run(1)
    assert lab.warning == ""
    assert "gl-chip" not in lab.controller.words.value


def test_a_wrong_edit_names_the_line_and_leaves_the_run() -> None:
    lab = Lab("line").run(3)
    before, source = weights(lab.runner), lab.runner.source
    assert not lab.controller.edit("for x in batches\n    pass")
    assert "line 1" in lab.controller.words.value
    assert lab.runner.source == source
    assert lab.controller.edit(source.replace("loss.backward()", "loss.bakward()"))
    lab.controller.update()
    assert "line 9" in lab.controller.words.value
    assert "bakward" in lab.controller.words.value
    assert same(weights(lab.runner), before)
    assert lab.runner.source == source
    lab.run(2)
    assert lab.runner.updates == 5


def test_an_edit_runs_and_a_switch_brings_the_recipe_back() -> None:
    lab = Lab("line").run(1)
    text = lab.runner.source.replace(
        "optimizer.step()", "optimizer.step()\n        steps = globals().get('steps', 0) + 1"
    )
    assert lab.controller.edit(text)
    lab.run(4)
    assert lab.runner.source == text
    assert lab.runner.updates == 5
    press(lab, "zero_grad", False)
    assert lab.runner.source == Recipe(lr=0.01, zero_grad=False).source()


def test_a_loop_that_ends_says_so_and_stops_playing() -> None:
    lab = Lab("line")
    assert lab.controller.edit(lab.runner.source.replace("range(epochs)", "range(2)"))
    button(lab.controller.player.widget, "Play").value = True
    for _ in range(20):
        lab.controller.update()
    assert lab.runner.updates == 16
    assert not lab.controller.player.playing
    assert "come to its end" in lab.controller.words.value
    lab.reset()
    lab.controller.update()
    assert lab.runner.updates == 1


@pytest.mark.parametrize("value", [-1.0, 0.0, float("nan"), float("inf")])
def test_a_bad_lr_is_refused_in_words(value: float) -> None:
    lab = Lab("line").run(2)
    press(lab, "lr", value)
    assert "lr must be a finite number above 0" in lab.controller.words.value
    assert lab.runner.recipe.lr == lab.controller.controls.widgets["lr"].value == 0.01


def test_a_divergent_run_is_drawn_and_named() -> None:
    lab = Lab("line", Recipe(lr=50.0)).run(60)
    assert "diverged" in lab.warning
    assert all(png.startswith(b"\x89PNG") for png in images(lab))
    digits = Lab("digits", Recipe(lr=1e30), panels=["loss", "gradient", "picture", "landscape", "memory"]).run(20)
    assert "diverged" in digits.warning


def test_fp16_brings_the_scaler_panel_and_takes_it_away() -> None:
    lab = Lab("digits")
    assert "scaler" not in lab.controller.panels()
    assert "scaler" in lab.switch(amp="fp16").run(2).controller.panels()
    assert "loss scale 65,536" in lab.text
    assert "scaler" not in lab.switch(amp="off").run(1).controller.panels()


def test_the_saved_output_has_a_picture_and_words_beside_the_widget() -> None:
    lab = Lab("line").run(5)
    bundle, shown = lab._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "image/png", "text/plain"}
    width, _ = Image.open(io.BytesIO(base64.b64decode(bundle["image/png"]))).size
    assert width >= 1200
    assert shown["image/png"]["width"] * 2 == width  # drawn at double density
    assert bundle["text/plain"].startswith("line: update 5 · loss ")


def test_save_writes_a_picture_or_a_page(tmp_path: Path) -> None:
    lab = Lab("line").run(2)
    assert lab.save(tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    page = lab.save(str(tmp_path / "x.html")).read_text()
    assert "optimizer.zero_grad" in page
    assert "update 2" in page
    with pytest.raises(ValueError, match=r"path must end in .png or .html, got 'x.gif'"):
        lab.save("x.gif")


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_runs(name: str) -> None:
    lab = Lab.preset(name).run(20)
    assert lab.runner.updates == 20
    assert set(lab.controller.controls.widgets) <= set(PRESETS[name].controls)


def test_the_overflow_preset_shows_an_overflow() -> None:
    lab = Lab.preset("fp16 overflow").run(20)
    assert lab.runner.record.skips > 0
    assert lab.runner.loss_scale < 65536


def test_controls_show_only_what_is_asked_for() -> None:
    lab = Lab("line", controls=["zero_grad"], panels=["loss"])
    assert list(lab.controller.controls.widgets) == ["zero_grad"]
    assert len(images(lab)) == 1


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: Lab("digitz"), r"'bowl', 'line', .*'digits', .*got 'digitz'"),
    (lambda: Lab(3), r"task must be a Task or one of .*got 3"),
    (lambda: Lab(float("nan")), r"task must be .*got nan"),
    (lambda: Lab("line", recipe="fast"), r"recipe must be a gradlab.Recipe, got 'fast'"),
    (lambda: Lab("line", controls="zero_grad"), r"controls must be a list of names .*got 'zero_grad'"),
    (lambda: Lab("line", controls=["zerograd"]), r"controls must be names out of .*got 'zerograd'"),
    (lambda: Lab("line", controls=7), r"controls must be a list .*got 7"),
    (lambda: Lab("line", panels=["los"]), r"panels must be names out of loss, .*got 'los'"),
    (lambda: Lab("line", panels=[]), r"panels must .*got \[\]"),
    (lambda: Lab("line", panels=[float("inf")]), r"panels must be names out of .*got inf"),
    (lambda: Lab("line", panels=["picture"]), r"panels .*line.*picture"),
    (lambda: Lab("line").run(-1), r"updates must be a whole number from 0, got -1"),
    (lambda: Lab("line").run(float("nan")), r"updates must be .*got nan"),
    (lambda: Lab("line").run(True), r"updates must be .*got True"),
    (lambda: Lab("line").switch(lr=-1), r"lr must be a finite number above 0, got -1"),
    (lambda: Lab("line").switch(learning_rate=1), r"must be one of .*'lr', got 'learning_rate'"),
    (lambda: Lab.preset("no such"), r"name must be one of 'healthy', .*got 'no such'"),
    (lambda: Lab.preset(None), r"name must be one of .*got None"),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_bad_input_is_named(call: Callable[[], object], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_changed_lines_are_those_that_a_diff_shows() -> None:
    assert changed_lines("a\nb\nc", "a\nB\nc\nd") == {2, 4}
    assert changed_lines("a\nb", "a\nb") == set()


def test_pyplot_is_never_imported() -> None:
    code = "import sys; from gradlab import Lab; Lab('line').run(2); assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("change", ["switch", "edit"])
def test_the_first_update_after_a_change_is_watched_however_busy_the_screen(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab("digits", Recipe(lr=0.05), controls=["set_to_none", "edit", "speed"], panels=["loss", "memory"]).run(3)
    controller = lab.controller
    monkeypatch.setattr("gradlab.widgets.panels._SHARE", 1e9)  # what was drawn just now is not due for hours
    monkeypatch.setattr(type(controller.player), "playing", property(lambda player: True))
    if change == "switch":
        controller.turn("set_to_none", False)
    else:
        assert controller.edit(lab.runner.source.replace("set_to_none=True", "set_to_none=False"))
    controller.draw()
    assert not controller.screen.due("memory")
    controller.watch()
    assert lab.runner.watch_memory
    assert controller.screen.due("memory")
    controller.draw()
    controller.watch()
    assert not lab.runner.watch_memory
