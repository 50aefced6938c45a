"""The cheat sheet: its texts train as plain PyTorch does, its rows lead to lessons, and it prints on one page."""

from __future__ import annotations

import errno
import html
import math
import os
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from browser.driving import chromium
from playwright.sync_api import sync_playwright
from rank_scripts import script
from torch import nn
from torch.nn.functional import cross_entropy, linear
from torch.utils.data import DataLoader

from gradlab import Recipe, formatting, tasks
from gradlab.course import launch
from gradlab.course.cheat_sheet import Pitfall, cheat_sheet
from gradlab.drawing import applied_text, batch_area, batch_style, colour
from gradlab.formatting import lesson_address, link_html
from gradlab.tasks import Task

ALL_REDUCE = "torch.distributed.all_reduce(tokens)"
LR, MAX_NORM, PERIOD = 0.2, 0.69, 4


def plain(text: str) -> str:
    """The text of a piece of HTML."""
    return html.unescape(re.sub(r"<[^>]+>", "", text))


def sgd_by_hand(params: list[torch.Tensor], loss_of: Callable[[Any], torch.Tensor], windows: list[Any]) -> None:
    """Make one update for each window: the gradient clipped, lr along a cosine. No optim, no .grad, no adding."""
    clipped = []
    for t, window in enumerate(windows):
        grads = torch.autograd.grad(loss_of(window), params)
        norm = torch.cat([g.flatten() for g in grads]).norm().item()
        clipped.append(norm > MAX_NORM)
        lr = LR * (1 + math.cos(math.pi * t / PERIOD)) / 2
        with torch.no_grad():
            for p, g in zip(params, grads, strict=True):
                p -= lr * min(1.0, MAX_NORM / norm) * g
    assert any(clipped)
    assert not all(clipped)


def as_sgd(program: str) -> str:
    """A text of the sheet with SGD, whose steps are as long as the gradient: with AdamW no wrong division shows."""
    for before, after in {
        "AdamW(model.parameters(), lr=0.001)": f"SGD(model.parameters(), lr={LR})",
        "T_max=1000": f"T_max={PERIOD}",
        "max_norm=1.0": f"max_norm={MAX_NORM}",
    }.items():
        assert program.count(before) == 1
        program = program.replace(before, after)
    return program


def trained(program: str, model: nn.Module, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """The weights after a text of the sheet has run for one epoch."""
    return trained_on(as_sgd(program), Task("given", lambda seed: model, batches, nn.functional.mse_loss))


def trained_on(text: str, task: Task) -> torch.Tensor:
    """The weights of a task's fresh model after a text has run for one epoch on the batches of a DataLoader."""
    model, loader = task.build(seed=0), DataLoader(task.batches, batch_size=None)
    names = {"torch": torch, "model": model, "loss_fn": task.loss_fn, "device": "cpu", "epochs": 1}
    exec(text, names | {"batches": task.batches, "loader": loader})
    return nn.utils.parameters_to_vector(model.parameters()).detach()


def windows(batches: list[Any]) -> list[list[Any]]:
    return [batches[:4], batches[4:8], batches[8:]]


def test_no_text_of_the_sheet_is_one_that_the_labs_do_not_run() -> None:
    """Without the scheduler and with a loader, each loop ends in the bits of a Recipe's own text on a list."""
    sheet, task = cheat_sheet(), tasks.line()
    task = Task("line", task.build, task.batches[:10], task.loss_fn)  # the last window has two
    recipe = Recipe(accumulate=4, clip=1.0, optimizer="adamw", lr=0.001)
    windows_of = "for window in windows(loader, 4):"
    slices = "for start in range(0, len(batches), 4):\n        window = batches[start:start + 4]"
    loop = "".join(line for line in sheet.loop.splitlines(keepends=True) if "scheduler" not in line)
    assert loop.replace(windows_of, slices).splitlines() == recipe.source().splitlines()
    for margin, amp in {"": "off", "bf16": "bf16", "fp16": "fp16"}.items():
        text = "\n".join(line for line in sheet.program(margin).splitlines() if "scheduler" not in line)
        assert torch.equal(trained_on(text, task), trained_on(recipe.replace(amp=amp).source(), task))


def test_a_skipped_first_step_warns_of_the_scheduler() -> None:
    """The row of the page: the warning is harmless, since the order of the calls is right."""
    task = tasks.line()
    text = cheat_sheet().program("fp16")
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler\.step\(\)` before `optimizer\.step\(\)`"):
        trained_on(text.replace("GradScaler(device)", "GradScaler(device, init_scale=1e30)"), task)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trained_on(text.replace("GradScaler(device)", "GradScaler(device, init_scale=1.0)"), task)


def small_text() -> tuple[nn.Module, list[tuple[torch.Tensor, torch.Tensor]]]:
    """Sixteen batches of two sequences with other lengths in each, padded with -100 where they end."""
    torch.manual_seed(25)  # MAX_NORM lies between the norm of the last gradient and those of the others
    batches = []
    for _ in range(16):
        length = int(torch.randint(3, 12, ()))
        x, y = torch.randint(7, (2, length)), torch.randint(7, (2, length))
        y[1, int(torch.randint(1, length, ())) :] = -100
        batches.append((x, y))
    return nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 7)).double(), batches


def large_text_batches(model: nn.Module, windows_of_all: list[list[Any]]) -> torch.Tensor:
    """The weights after one update for each window, on the mean over all its tokens at once."""
    weights = [p.detach().clone().requires_grad_() for p in model.parameters()]

    def loss_of(window: list[Any]) -> torch.Tensor:
        tokens = torch.cat([x.flatten() for x, _ in window])
        targets = torch.cat([y.flatten() for _, y in window])
        scores = linear(weights[0][tokens], weights[1], weights[2])
        return cross_entropy(scores[targets != -100], targets[targets != -100])

    sgd_by_hand(weights, loss_of, windows_of_all)
    return torch.cat([p.flatten() for p in weights]).detach()


def test_the_margin_for_tokens_counts_every_token_the_same() -> None:
    model, batches = small_text()
    expected = large_text_batches(model, windows(batches[:10]))
    weights = trained(cheat_sheet().program("tokens"), model, batches[:10])
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-6)  # clip_grad_norm_ adds 1e-6 to the norm
    wrong, _ = small_text()
    mean_of_means = (
        cheat_sheet().program("tokens").replace("tokens).back", "len(window)).back").replace('sum")', 'mean")')
    )
    assert (trained(mean_of_means, wrong, batches[:10]) - expected).abs().max() > 1e-3


@pytest.mark.skipif(os.name != "posix", reason="starts processes as Linux and macOS do")
def test_the_margin_for_ddp_makes_one_process_s_updates(tmp_path: Path) -> None:
    """Two real processes: each takes every other batch; a window of four on each is one of eight."""
    sheet = cheat_sheet()
    divided = "(loss * world_size / tokens).backward()"  # with the tokens of both, as the margin says
    assert all(code in sheet.margins["ddp"].says for code in (ALL_REDUCE, divided))
    first, count, there, flat, _ = (line for it in sheet.margins["tokens"].changes for line in it.code.splitlines())
    clear = " " * 8 + "optimizer.zero_grad"
    text = as_sgd(sheet.program("ddp"))
    text = text.replace(clear, "".join(f"{' ' * 8}{line}\n" for line in (count, there, ALL_REDUCE)) + clear)
    text = text.replace("loss = loss_fn(output, y)", flat).replace("(loss / len(window)).backward()", divided)
    text = f"{first}\n{text}"
    model, batches = small_text()
    batches = batches[:10]
    torch.save({"model": model, "batches": batches}, tmp_path / "given.pt")
    program = script(
        tmp_path,
        f"""
        given = torch.load("given.pt", weights_only=False)
        names = dict(torch=torch, model=given["model"], loss_fn=None, device="cpu", epochs=1)
        exec({text!r}, names | dict(loader=given["batches"][rank::size], world_size=size))
        torch.save(torch.nn.utils.parameters_to_vector(given["model"].parameters()).detach(), f"end-{{rank}}.pt")
        """,
    )
    run = launch(program)
    assert run, run
    expected = large_text_batches(model, [batches[:8], batches[8:]])
    for rank in (0, 1):
        torch.testing.assert_close(torch.load(tmp_path / f"end-{rank}.pt"), expected, rtol=0, atol=1e-6)


def test_the_page_shows_the_loop_as_it_is_with_its_notes() -> None:
    sheet = cheat_sheet()
    shown = [plain(line) for line in re.findall(r"<code>((?:(?!</code>).)*\n)</code>", sheet.html, re.S)]
    assert "".join(shown) == sheet.loop
    assert sheet.loop in repr(sheet)
    page = " ".join(plain(sheet.html).split())
    for note in sheet.notes.values():
        assert note.replace("`", "").replace("**", "") in page
    for margin in sheet.margins.values():
        assert margin.title in page
        assert all(" ".join(change.code.split()) in page for change in margin.changes)


def test_sixteen_bytes_are_what_adamw_holds_after_an_update() -> None:
    """Counted in a network that has made one update, once under autocast."""
    for with_autocast in (False, True):
        model = nn.Linear(64, 64)
        optimizer = torch.optim.AdamW(model.parameters())
        with torch.autocast("cpu", torch.bfloat16, enabled=with_autocast):
            loss = model(torch.randn(8, 64)).sum()
        loss.backward()
        optimizer.step()
        state = [it for p in model.parameters() for it in optimizer.state[p].values() if it.dim()]
        counted = [[*model.parameters()], [p.grad for p in model.parameters()], [], state]
        sizes = [sum(it.nbytes for it in part) / sum(p.numel() for p in model.parameters()) for part in counted]
        assert sizes == cheat_sheet().sizes["rows"][0][1:]
    assert [sum(row[1:]) for row in cheat_sheet().sizes["rows"]] == [16, 16]


def test_every_row_leads_to_a_section_of_a_lesson(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatting, "REPOSITORY", "https://example.org/school")
    for pitfall in cheat_sheet().pitfalls:
        assert link_html(lesson_address(pitfall.lesson, pitfall.section), pitfall.lesson[:2]) in cheat_sheet().html


def test_what_a_row_says_is_text_and_not_markup() -> None:
    sheet = replace(cheat_sheet(), pitfalls=(Pitfall("a < b", "<b>", "`c > d`", "01_autograd"),))
    assert "<td>a &lt; b</td><td>&lt;b&gt;</td><td><code>c &gt; d</code></td>" in sheet.html


def test_in_a_read_only_folder_it_is_written_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = Path.write_text
    read_only = [Path()]

    def refuse(path: Path, *args: str, **kwargs: str) -> int:
        if path.parent in read_only:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return write(path, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", refuse)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    cheat_sheet().save("sheet.html")
    assert (tmp_path / "sheet.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    saved = tmp_path / "sheet.html"
    assert capsys.readouterr().out == f"You cannot write in this folder. The page was saved to {saved}\n"

    read_only.append(tmp_path)
    with pytest.raises(OSError, match="Read-only"):
        cheat_sheet().save(tmp_path / "sheet.html")  # a folder that was asked for by name


@pytest.mark.browser
@pytest.mark.skipif(
    chromium() is None and not os.environ.get("GRADLAB_REQUIRE_BROWSER"),
    reason="needs Chromium (Debian: apt-get install chromium)",
)
def test_it_prints_on_one_sheet(tmp_path: Path) -> None:
    """Printed as a browser does; nothing of the code is cut at the edge of its column."""
    cheat_sheet().save(tmp_path / "sheet.html")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 733, "height": 900})  # of A4, less the margins
        page.goto((tmp_path / "sheet.html").as_uri())
        printed = [page.pdf(format=paper) for paper in ("A4", "Letter")]
        page.emulate_media(media="print")
        page.add_style_tag(content="body { margin: 0 }")
        cut = "[...document.querySelectorAll('pre, .gl-loop')].filter(it => it.scrollWidth > it.clientWidth).length"
        assert page.evaluate(cut) == 0
        widths = "[...document.querySelectorAll('.gl-states svg:has(polygon)')].map(it => it.clientWidth)"
        assert all(width >= 110 for width in page.evaluate(widths)), "arrows that are seen on paper"
        browser.close()
    assert [len(re.findall(rb"/Type\s*/Page\b(?!s)", pages)) for pages in printed] == [1, 1]


def test_the_picture_shows_what_grad_holds_after_each_call() -> None:
    """The calls run on a weight whose batches have the gradients 1, 10 and 100; an arrow is a batch in the sum."""
    w = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    batches, times = iter((1.0, 10.0, 100.0)), list[int]()
    states = re.findall(r'aria-label="after ([^:]+): ([^"]+)">(.*?)</svg>', cheat_sheet().html)
    for call, contents, drawn in states:
        if call == "zero_grad()":
            optimizer.zero_grad()
            times = []
        elif call == "backward()":
            (next(batches) * w).sum().backward()
            times.append(0)
        else:
            optimizer.step()
            times = [each + 1 for each in times]
        assert len(times) == (0 if w.grad is None else str(int(w.grad)).count("1"))
        assert contents == (", ".join(map(applied_text, times)) or "no gradient")
        assert re.findall("\u00d7 \\d+", drawn) == [f"\u00d7 {each}" for each in times if each > 1]
        looks = re.findall(r'<polygon points="[^"]+" fill="([^"]+)" stroke="([^"]+)"', drawn)
        arrows = [batch_area(batch_style(each)) for each in times]
        arrows = [batch_area("sum")] * (len(times) > 1) + arrows  # the sum has an arrow of its own
        assert looks == [(fill_of(arrow), colour(arrow["stroke"])) for arrow in arrows]
    assert times == [2, 2, 1]


def fill_of(style: dict[str, Any]) -> str:
    """The sheet's fill of an arrow: its paper is that of the page around it."""
    return {"paper": "var(--jp-layout-color0, Canvas)", "reused": "url(#gl-sheet-reused)"}.get(
        style["fill"], colour(style["fill"])
    )
