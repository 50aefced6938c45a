"""Up to ten updates a second each call that changes ``.grad`` is a frame: the states are those of a plain loop."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gradlab import Lab, Recipe, tasks

torch.set_num_threads(1)

CALLS = {"zero_grad(": "zero_grad", "backward()": "backward", "step()": "step"}


def plain_beats(recipe: Recipe, updates: int) -> list[tuple[str, list[torch.Tensor], list[torch.Tensor | None]]]:
    """Weights and ``.grad`` after each call, by an exec of the loop that notes them line by line."""
    task = tasks.digits()
    model, beats = task.build(0), []

    def note(call: str) -> None:
        if sum(call == "step" for call, *_ in beats) < updates:
            weights = [param.detach().clone() for param in model.parameters()]
            grads = [None if param.grad is None else param.grad.clone() for param in model.parameters()]
            beats.append((call, weights, grads))

    lines = []
    for line in recipe.source(task.batches[0]).splitlines():
        lines.append(line)
        call = next((name for part, name in CALLS.items() if part in line and "#" not in line), "")
        if call:
            lines.append(f"{line[: len(line) - len(line.lstrip())]}note({call!r})")
    names: dict[str, Any] = {"torch": torch, "model": model, "loss_fn": task.loss_fn, "batches": task.batches}
    exec("\n".join(lines), {**names, "device": "cpu", "epochs": 1, "note": note})
    return beats


@pytest.mark.parametrize("zero_grad", [True, False])
@pytest.mark.parametrize("window", [1, 4])
def test_each_beat_is_a_state_of_the_plain_loop(window: int, zero_grad: bool) -> None:
    recipe = Recipe(lr=0.2, accumulate=window, zero_grad=zero_grad)
    lab = Lab("digits", recipe, panels=["held-out loss", "gradient"], speed="10 updates/s")
    wanted = plain_beats(recipe, 3)
    for call, weights, grads in wanted:
        lab.model.run_beat_for(100.0)
        assert lab.model.at_beat
        assert lab.runner.statement.label == call
        for param, weight, grad in zip(lab.runner.model.parameters(), weights, grads, strict=True):
            assert torch.equal(param, weight)
            assert (param.grad is None) == (grad is None)
            assert grad is None or torch.equal(param.grad, grad)
    assert len(wanted) == 3 * (1 + window + zero_grad)
    assert lab.runner.updates == 3


@pytest.mark.parametrize("zero_grad", [True, False])
@pytest.mark.parametrize("window", [1, 4])
def test_the_beats_of_an_update_share_its_time(window: int, zero_grad: bool) -> None:
    recipe = Recipe(accumulate=window, zero_grad=zero_grad)
    lab = Lab("digits", recipe, panels=["held-out loss", "gradient"], speed="10 updates/s")
    beats, frames = 1 + window + zero_grad, []
    while len(frames) < 2 * beats:
        request = {"do": "frames", "count": 1, "every": 100, "updates": 1, "beats": True}
        frames += lab.handle({"n": 1, "client": "a", **request})["frames"]
    assert [frame["beats"] for frame in frames] == [beats] * len(frames)
    assert all("gradient" in frame["panels"] for frame in frames[1:]), "each beat is drawn"


def test_a_recording_at_such_a_speed_holds_the_beats() -> None:
    lab = Lab("digits", controls=["line"], panels=["held-out loss", "gradient"], speed="10 updates/s")
    recording = lab.record(8, switches=["zero_grad"], marks=[6], turns=1)
    for track, beats in zip(recording.tracks, (3, 2), strict=True):
        counts = [frame["beats"] for frame in track.frames if "beats" in frame]
        assert counts == [beats] * beats * (8 - track.update)
    fast = Lab("digits", panels=["held-out loss"]).record(8).tracks[0].frames
    assert not any("beats" in frame for frame in fast)
