"""The run in words: what .grad holds, what of it was reused, and what has gone wrong."""

from __future__ import annotations

import math

import pytest
import torch

from gradlab import Recipe, Run, tasks
from gradlab.formatting import batches_text
from gradlab.scenes.sentences import status_line, warning

torch.set_num_threads(1)


def counts(run: Run) -> tuple[int, int]:
    """The number of batches in ``.grad`` not applied twice by steps, and of those that were."""
    contents = run.provenance.contents()
    total, reused = (sum(last - first + 1 for first, last in spans) for spans in (contents.holds, contents.reused))
    return total - reused, reused


def until(run: Run, word: str) -> None:
    run.run_statement()
    while run.statement.label != word:
        run.run_statement()


def test_a_healthy_loop_reuses_nothing_at_any_statement() -> None:
    run = Run(tasks.digits(), Recipe(lr=0.05, accumulate=3))
    for _ in range(60):
        run.run_statement()
        assert counts(run)[1] == 0
        assert "applied" not in status_line(run)
        assert warning(run) == ""


def test_without_clearing_all_but_the_newest_are_reused() -> None:
    run = Run(tasks.digits(), Recipe(lr=0.05, zero_grad=False))
    run.advance(updates=4)
    assert counts(run) == (1, 3)
    assert "holds batches 1 to 4, 3 of them reused" in status_line(run)
    assert warning(run) == "Step 4 applied batches 1 to 3 again: .grad was not cleared."
    until(run, "backward")
    assert counts(run) == (2, 3)  # batch 4 was applied once so far
    assert warning(run).startswith("Step 4 ")  # the fifth step has not been made yet
    until(run, "step")
    assert warning(run) == "Step 5 applied batches 1 to 4 again: .grad was not cleared."


def test_a_second_step_on_the_same_gradient_reuses_it() -> None:
    run = Run(tasks.digits(), Recipe(lr=0.05))
    run.edit(run.source.replace("optimizer.step()", "optimizer.step()\n        optimizer.step()"))
    run.advance(updates=2)
    assert counts(run) == (0, 1)
    assert "holds batch 1, reused" in status_line(run)
    assert warning(run) == "Step 2 applied batch 1 again: .grad was not cleared."


@pytest.mark.parametrize(("set_to_none", "text"), [(True, ".grad is None"), (False, ".grad is all zeros")])
def test_a_cleared_gradient_is_called_what_it_is(set_to_none: bool, text: str) -> None:
    run = Run(tasks.line(), Recipe(lr=0.01, set_to_none=set_to_none))
    run.advance(updates=2)
    until(run, "zero_grad")
    assert text in status_line(run)


def test_a_diverged_run_is_named_with_the_update() -> None:
    run = Run(tasks.line(), Recipe(lr=100.0))
    run.advance(updates=60)
    losses = list(run.record.rows["loss"])
    first = next(i for i, loss in enumerate(losses, 1) if not math.isfinite(loss))
    assert f"since update {run.record.broken:,}" in warning(run)
    assert run.record.broken == first
    assert "NaN" in status_line(run) or "inf" in status_line(run)


def test_fp16_names_the_scale_and_the_skipped_steps() -> None:
    run = Run(tasks.line(), Recipe(lr=0.01, amp="fp16"))
    run.advance(updates=12)
    skipped = len(run.record.skipped)
    assert skipped > 0
    assert f"{skipped} steps skipped" in status_line(run)
    until(run, "backward")
    assert "still times the loss scale" in status_line(run)


def test_skipped_steps_are_counted_while_their_bucket_is_filling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradlab.loop.history.MOST_ROWS", 64)
    run = Run(tasks.bowl(), Recipe(lr=0.01))
    run.advance(updates=65)  # from 64 on a bucket holds two updates
    assert run.record.rows.stride == 2
    run.switch(Recipe(lr=0.01, amp="fp16"))
    run.advance(updates=1)
    run.record.write(run.updates + 1, 1.0, 1.0, 1.0, 0.0, skipped=True)
    assert "1 step skipped" in status_line(run)


@pytest.mark.parametrize(
    ("spans", "text"),
    [
        ([], "no batch"),
        ([(41, 41)], "batch 41"),
        ([(38, 41)], "batches 38 to 41"),
        ([(3, 3), (7, 9)], "batches 3, 7 to 9"),
        ([(1, 1), (3, 3), (5, 5), (1007, 1009)], "batches 1, \u2026, 1,007 to 1,009"),
    ],
)
def test_batches_in_words(spans: list[tuple[int, int]], text: str) -> None:
    assert batches_text(spans) == text
