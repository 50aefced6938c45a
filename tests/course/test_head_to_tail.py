"""Gradients head to tail: each arrow begins where the one before it ends, and old ones are as long as was kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gradlab.course import head_to_tail
from gradlab.drawing import Drawing

EIGHT = torch.tensor([[1.0, 0.0]] * 4 + [[0.0, 1.0]] * 4)


def tips(drawing: Drawing) -> np.ndarray:
    """Return the tips of the arrows, the oldest first."""
    return np.array([drawing.find(f"arrow {at}").points.reshape(-1, 2)[3] for at in range(1, 9)])


def test_the_sum_ends_at_the_last_tip_and_only_the_newest_is_fresh() -> None:
    for drawing in head_to_tail(EIGHT, {"not cleared": 1.0, "buffer": 0.9}).drawings:
        assert drawing.find("sum").points.reshape(-1, 2)[3] == pytest.approx(tips(drawing)[-1])
        assert [drawing.find(f"arrow {at}").fill for at in range(1, 9)] == ["stale"] * 7 + ["fresh"]


def test_old_arrows_are_as_long_as_was_kept_at_one_scale() -> None:
    whole, faded = (tips(drawing) for drawing in head_to_tail(EIGHT, {"not cleared": 1.0, "buffer": 0.8}).drawings)
    step = whole[-1] - whole[-2]
    assert np.diff(whole[3:], axis=0) == pytest.approx(np.tile(step, (4, 1)))
    assert np.diff(faded[3:], axis=0) == pytest.approx(step * 0.8 ** np.arange(3, -1, -1)[:, None])


def test_its_words_tell_the_length_and_the_share() -> None:
    figure = head_to_tail(EIGHT, {"not cleared": 1.0})
    assert repr(figure).splitlines() == [
        "gradients head to tail",
        "not cleared: 8 gradients, a sum of length 5.66, the newest is 12% of it.",
    ]
    data, _ = figure._repr_mimebundle_()
    assert set(data) == {"image/png", "text/plain"}


def test_bad_input_is_named() -> None:
    for gradients in (torch.ones(3), torch.ones(0, 2), torch.ones(2, 3), torch.tensor([[torch.nan, 1.0]])):
        with pytest.raises(ValueError, match="of two weights, got the shape"):
            head_to_tail(gradients, {"a": 1.0})
    with pytest.raises(ValueError, match="must name one sum or more"):
        head_to_tail(EIGHT, {})
