"""The table of who keeps ``.grad``: against what PyTorch leaves in ``.grad``, and without a warning."""

from __future__ import annotations

import pytest
import torch

from gradlab.course import grad_table


def test_each_column_is_what_pytorch_says(recwarn: pytest.WarningsRecorder) -> None:
    w, unused, data = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True), torch.ones(3)
    h = w * data
    k = torch.tanh(h)
    k.retain_grad()
    loss = (k * k).sum()
    names = {"w": w, "unused": unused, "data": data, "h": h, "k": k, "apart": k.detach(), "loss": loss}
    before = {row[0]: row[1:] for row in grad_table(loss, **names).rows}
    assert {row[-1] for row in before.values()} == {"None"}
    loss.backward()
    after = {row[0]: row[1:] for row in grad_table(loss, **names).rows}
    assert after == {
        "w": ("True", "True", "False", "True", "kept"),
        "unused": ("True", "True", "False", "False", "None"),
        "data": ("True", "False", "False", "False", "None"),
        "h": ("False", "True", "False", "True", "None"),
        "k": ("False", "True", "True", "True", "kept"),
        "apart": ("True", "False", "False", "False", "None"),
        "loss": ("False", "True", "False", "True", "None"),
    }
    assert not recwarn.list


def test_its_text_is_in_columns() -> None:
    w = torch.ones(2, requires_grad=True)
    head, row = repr(grad_table(w.sum(), w=w)).splitlines()
    for word, value in zip(
        ("is_leaf", "requires_grad", "in the graph", ".grad"), ("True", "True", "True", "None"), strict=True
    ):
        at = head.index(word)
        assert row[at : at + len(value)] == value


def test_a_result_without_a_graph_is_refused() -> None:
    with pytest.raises(ValueError, match="no graph"):
        grad_table(torch.ones(2))
