"""Private names of PyTorch: all exist in the pinned version, and a missing one is reported and does no harm."""

from __future__ import annotations

import importlib
import json
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from gradlab import Recipe, Run, _torch, tasks
from gradlab._process import hooks
from gradlab.doctor import Report, watch

NEEDED_BY_TORCH = {
    "engine_run_backward", "make_grads", "clip_grads_with_norm", "group_tensors", "module_registration_hooks",
}  # fmt: skip
NAMES = [name for name, entry in _torch.PRIVATE_NAMES.items() if entry.used_by == "doctor"]


def test_nothing_is_missing_on_this_version() -> None:
    assert _torch.missing() == []


def test_a_name_that_is_not_in_the_table() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = _torch.nothing


def clipped_while_scaled(clips: bool = True) -> None:
    """Make a mistake that only the listener for clip_grad_norm_ sees, and omit zero_grad()."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Dropout(0.1), nn.Linear(4, 1))
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
    for _ in range(8):
        scaler.scale(model(torch.randn(8, 2)).square().mean()).backward()
        if clips:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def delete(name: str, patch: pytest.MonkeyPatch) -> str:
    """Remove a name from PyTorch, as in another version, and return its path."""
    path = _torch.PRIVATE_NAMES[name].path
    hooks._table.cache_clear()
    patch.delitem(vars(_torch), name, raising=False)  # as in a process that has not used it
    owner, _, attribute = path.rpartition(".")
    if owner == "Node":
        others = {
            entry.path.removeprefix("Node."): None for entry in _torch.PRIVATE_NAMES.values() if entry.path != path
        }
        patch.setattr(_torch, "_node", lambda: SimpleNamespace(**others))
        return path
    module, rest = owner, []
    while True:
        try:
            value = importlib.import_module(module)
            break
        except ImportError:
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
    for part in rest:
        value = getattr(value, part)
    patch.delattr(value, attribute)
    return path


def watched(name: str) -> Report:
    with pytest.MonkeyPatch.context() as patch:
        path = delete(name, patch)
        assert [path in message for message in _torch.missing("doctor")] == [True] * bool(
            _torch.PRIVATE_NAMES[name].lost_feature
        )
        with watch() as report:
            # PyTorch itself needs some of the removed names.
            if name in NEEDED_BY_TORCH:
                with torch.no_grad():
                    nn.Linear(2, 1)(torch.ones(1, 2))
            else:
                clipped_while_scaled(clips=name != "foreach_norm")
    vars(_torch).pop(name, None)  # its replacement
    return report


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_name_is_reported_and_the_loop_goes_on(name: str) -> None:
    report = watched(name)
    without = _torch.PRIVATE_NAMES[name].lost_feature
    assert "failed" not in report.watched, report.text
    assert report.missing == ([f"{without} (this PyTorch has no {_torch.PRIVATE_NAMES[name].path})"] if without else [])
    assert json.loads(json.dumps(report.as_dict()))["missing"] == report.missing
    assert ("Not available on this version of PyTorch: " in report.text) == bool(without)
    assert without in report.text
    assert without.replace("'", "&#x27;") in report._repr_html_()


def test_a_run_measures_the_same_norms_without_pytorchs_foreach(monkeypatch: pytest.MonkeyPatch) -> None:
    def norms() -> torch.Tensor:
        run = Run(tasks.digits(), Recipe(lr=0.1, zero_grad=False, optimizer="adam"))
        run.advance(updates=3)
        return torch.tensor(run.record.rows["norm"])

    expected = norms()
    delete("foreach_norm", monkeypatch)
    torch.testing.assert_close(norms(), expected, equal_nan=True)  # some updates are not measured


def test_a_report_without_the_clip_rules_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with watch() as whole:
        clipped_while_scaled()
    assert sorted(whole.codes) == ["clip-before-unscale", "missing-zero-grad"]
    assert "Not on this version" not in whole.text
    # As before PyTorch 2.6: clip_grad_norm_ does the work itself.
    clip = torch.nn.utils.clip_grad
    scale = clip._clip_grads_with_norm_

    def clip_grad_norm_(parameters, max_norm):
        scale(list(parameters), max_norm, torch.tensor(1.0))

    monkeypatch.setattr(nn.utils, "clip_grad_norm_", clip_grad_norm_)
    monkeypatch.delattr(clip, "_clip_grads_with_norm_")
    with watch() as report:
        clipped_while_scaled()
    assert report.codes == []  # unseen clipping looks like a manual change
    with watch() as report:
        clipped_while_scaled(clips=False)
    assert report.codes == ["missing-zero-grad"]
    assert "Not available on this version of PyTorch: the rules for clip_grad_norm_ are off" in report.text
    assert "torch.nn.utils.clip_grad._clip_grads_with_norm_" in report.text
