"""What a report shows of a training: fresh, stale and lost batches, against plain loops that count them themselves."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradlab.doctor import watch


class Counted:
    """A loop that counts by itself what is inside ``.grad``: it calls nothing of the doctor's."""

    def __init__(self) -> None:
        self.model = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-5)
        self.fresh = self.stale = self.lost = 0
        self.seen: list[tuple[int, int, int]] = []

    def backward(self) -> None:
        self.model(torch.ones(2, 3)).sum().backward()
        self.fresh += 1

    def step(self) -> None:
        self.optimizer.step()
        self.seen.append((self.fresh, self.stale, self.lost))
        self.fresh, self.stale, self.lost = 0, self.fresh + self.stale, 0

    def clear(self) -> None:
        self.optimizer.zero_grad()
        self.fresh, self.stale, self.lost = 0, 0, self.lost + self.fresh


def healthy(loop: Counted) -> None:
    for _ in range(130):
        loop.clear()
        loop.backward()
        loop.step()


def forgotten(loop: Counted) -> None:
    for _ in range(190):
        loop.backward()
        loop.step()


def dropped_windows(loop: Counted) -> None:
    for _ in range(8):
        loop.clear()
        for batch in range(18):
            loop.backward()
            if batch % 4 == 3:
                loop.step()
                loop.clear()


def forgotten_late(loop: Counted) -> None:
    healthy(loop)
    for _ in range(60):
        loop.backward()
        loop.step()


def windows_late(loop: Counted) -> None:
    healthy(loop)
    for _ in range(40):
        loop.clear()
        for _ in range(3):
            loop.backward()
        loop.step()


LOOPS = [healthy, forgotten, dropped_windows, forgotten_late, windows_late]


@pytest.mark.parametrize("train", LOOPS)
def test_the_history_is_what_a_plain_count_gives(train):
    loop = Counted()
    with watch() as report:
        train(loop)
    (history,) = report.history
    assert (history.width, history.steps) == (1, len(loop.seen))
    assert list(zip(history.fresh, history.stale, history.lost, strict=True)) == loop.seen


def test_a_long_history_has_few_columns_with_the_same_sums():
    loop = Counted()
    with watch() as report:
        for _ in range(9):
            healthy(loop)
            dropped_windows(loop)
    (history,) = report.history
    assert history.steps == len(loop.seen)
    assert 100 <= len(history.fresh) <= 200
    for which, means in enumerate((history.fresh, history.stale, history.lost)):
        for column, mean in enumerate(means):
            part = loop.seen[column * history.width : (column + 1) * history.width]
            assert mean == pytest.approx(sum(one[which] for one in part) / len(part))


def test_a_mistake_after_a_thousand_good_updates_is_found_with_its_numbers():
    loop = Counted()
    with watch() as report:
        for _ in range(1000):
            loop.clear()
            loop.backward()
            loop.step()
        for _ in range(3):
            loop.backward()
            loop.step()
    (finding,) = report.findings
    assert finding.code == "missing-zero-grad"
    assert "update 1003" in finding.evidence
    assert "batches 1,000 to 1,002 again" in finding.evidence
    assert "1,003 updates of self.optimizer" in report.watched


def clips_late(loop: Counted) -> None:
    loop.clear()
    loop.backward()
    loop.step()
    nn.utils.clip_grad_norm_(loop.model.parameters(), 1.0)


def steps_twice(loop: Counted) -> None:
    loop.clear()
    loop.backward()
    loop.step()
    loop.step()


def stays_in_eval(loop: Counted) -> None:
    loop.model.eval()
    loop.clear()
    loop.backward()
    loop.step()


def is_nan(loop: Counted) -> None:
    loop.clear()
    (loop.model(torch.ones(2, 3)).sum() * torch.nan).backward()
    loop.step()


@pytest.mark.parametrize("mistake", [clips_late, steps_twice, stays_in_eval, is_nan])
def test_a_late_mistake_is_found_like_an_early_one(mistake):
    def train(loop: Counted, good: int) -> None:
        torch.manual_seed(0)
        loop.model = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5), nn.Linear(2, 1))
        loop.optimizer = torch.optim.SGD(loop.model.parameters(), lr=1e-5)
        for _ in range(good):
            loop.clear()
            loop.backward()
            loop.step()
        for _ in range(6):
            mistake(loop)

    bare, loop = Counted(), Counted()
    with watch() as early:
        train(Counted(), 4)
    with watch() as late:
        train(loop, 120)
    train(bare, 120)
    places = [[(one.code, one.severity, one.file, one.line) for one in report.findings] for report in (early, late)]
    assert places[0] == places[1] != []
    torch.testing.assert_close(loop.model.state_dict(), bare.model.state_dict(), rtol=0, atol=0, equal_nan=True)


def test_two_optimizers_that_take_turns_are_counted_each():
    one, two = Counted(), Counted()
    with watch() as report:
        for _ in range(150):
            for loop in (one, two, one):
                loop.clear()
                loop.backward()
                loop.step()
    assert report.findings == []
    assert [history.steps for history in report.history] == [300, 150]
    assert "300 updates" in report.watched
    assert "150 updates" in report.watched


def test_the_picture_says_and_shows_what_was_stale():
    loop = Counted()
    with watch() as report:
        for _ in range(12):
            loop.backward()
            loop.step()
    picture = report.show()
    assert repr(picture) == (
        "self.optimizer, 12 steps: each step applied 1 fresh batch and 0 to 11 batches that an earlier step had "
        "applied, 11 at the end."
    )
    (drawing,) = picture.drawings
    boxes = [mark for mark in drawing.marks if mark.id.startswith(("fresh ", "stale "))]
    assert [mark.fill for mark in boxes] == ["fresh"] * 12 + ["stale"] * 11
    assert all(mark.hatch for mark in boxes if mark.fill == "stale")  # not told by its colour alone
    heights = [mark.points[5] - mark.points[1] for mark in boxes]
    assert heights == pytest.approx([heights[0] * share for share in [*[1] * 12, *range(1, 12)]])
    shown = picture._repr_mimebundle_()
    assert 'alt="self.optimizer, 12 steps' in shown["text/html"]
    assert picture.png().startswith(b"\x89PNG")
    assert "<svg" in picture.svg()


def test_nothing_to_show_is_said():
    with watch() as report:
        pass
    assert repr(report.show()) == "No optimizer took a step while it was watched."


def test_no_gap_is_claimed_where_batches_were_forgotten() -> None:
    w = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([w], lr=1e-6)
    with watch() as report:
        for _ in range(140):
            w.sum().backward()
            optimizer.step()
    assert "applied batches 1, \u2026, 139 again" in report.findings[0].evidence
