"""A rule is one class: its codes are its own, each leads to a notebook, and each has loops in the corpus."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import torch

from gradlab.doctor import watch
from gradlab.doctor.events import Clear, GradEdited
from gradlab.doctor.finding import Code
from gradlab.doctor.rules import RULES, Rule
from gradlab.doctor.rules.accumulation import leaks
from gradlab.doctor.rules.known_errors import KnownErrors
from gradlab.doctor.runner import RuleRunner
from gradlab.doctor.state.grad_state import GradState
from gradlab.formatting import lesson_words

ROOT = Path(__file__).resolve().parents[2]
CODES = sorted({code for rule in (*RULES, KnownErrors) for code in rule.codes}, key=lambda code: code.name)
CORPUS = {path.name for path in (ROOT / "tests" / "corpus" / "bad").iterdir() if path.is_dir()}


def test_every_code_leads_to_a_notebook() -> None:
    for code in CODES:
        assert code.lesson == lesson_words(code.notebook, code.section)
        assert (ROOT / "notebooks" / f"{code.notebook}.ipynb").is_file(), code.name


def test_a_code_has_other_words_at_the_most() -> None:
    assert len({code.name for code in CODES}) == len({(code.name, code.lesson) for code in CODES})


def test_every_code_has_its_loops() -> None:
    names = {code.name for code in CODES}
    assert names >= CORPUS
    assert names - CORPUS == {"raised-by-pytorch"}  # test_doctor_words.py has its loops


def test_unscaling_twice_is_explained() -> None:
    model, scaler = torch.nn.Linear(2, 1), torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    scaler.scale(model(torch.ones(3, 2)).sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="unscale_"), watch() as report:
        scaler.unscale_(optimizer)
    (finding,) = report.findings
    assert (finding.code, Path(finding.file).name) == ("raised-by-pytorch", Path(__file__).name)
    assert "called twice" in finding.message


@pytest.mark.parametrize(("rests", "codes"), [(True, ["optimizer-params-frozen"]), (False, [])])
def test_a_frozen_norm_is_told_where_its_part_was_to_rest(rests: bool, codes: list[str]) -> None:
    body = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.BatchNorm1d(4)).requires_grad_(requires_grad=False)
    model = torch.nn.Sequential(body, torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model[1].parameters(), lr=0.01)
    with watch() as report:
        (body if rests else model).eval()
        model.train()
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(8, 2)).pow(2).mean().backward()
            optimizer.step()
    assert report.codes == codes


def test_a_single_clear_that_is_left_out_is_no_mistake() -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch() as report:
        for number in range(24):
            if number != 12:
                optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    assert report.codes == []


def test_one_longer_window_counts_only_in_a_whole_epoch() -> None:
    assert not leaks([2, 2, 2, 3, 2])  # it may be an exception
    assert leaks([2, 2, 2, 3, 2, 2])
    assert leaks([2, 2, 2, 3, 2, 2, 3])


def test_the_fix_names_the_module_that_is_in_no_optimizer() -> None:
    with watch() as report:
        runpy.run_path(str(ROOT / "tests/corpus/bad/params-missing-from-optimizer/head_without_bias.py"))
    assert [bug.fix for bug in report.findings] == ['optimizer.add_param_group({"params": net.head.parameters()})']


def test_rules_are_found_by_being_there() -> None:
    folder = ROOT / "gradlab" / "doctor" / "rules"
    written = [
        line.split("(")[0].removeprefix("class ")
        for path in sorted(folder.glob("*.py"))
        for line in path.read_text().splitlines()
        if re.match(r"class [A-Z]\w+\(_?\w*Rule\):", line)
    ]
    assert [rule.__name__ for rule in RULES] == written


def test_a_rule_can_report_its_own_codes_alone() -> None:
    class Own(Rule):
        OWN = Code("own-code")

    runner = RuleRunner()
    Own(runner.context).report(Own.OWN, ("train.py", 3), "evidence")
    (finding,) = runner.findings()
    assert (finding.code, finding.lesson) == ("own-code", lesson_words("10_loop_doctor"))
    with pytest.raises(ValueError, match=r"^Own: code must be one of own-code, got other-code$"):
        Own(runner.context).report(Code("other-code"), ("train.py", 3), "evidence")


def test_gradients_edited_to_zeros_were_cleared() -> None:
    state = GradState()
    for norms, parts in (([2.0, 3.0], [GradEdited]), ([0.0, 0.0], [Clear, GradEdited]), ([0.0, 0.0], [GradEdited])):
        assert [type(part) for part in state.parts(GradEdited(params=0b11, norms=norms))] == parts


def test_a_place_that_cannot_be_looked_for_costs_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise IndexError("no such line")

    monkeypatch.setattr("gradlab.doctor.rules.clearing.MissingZeroGrad._edit", fails)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with watch() as report:
        for _ in range(4):
            model(torch.ones(3, 2)).sum().backward()
            optimizer.step()
    (finding,) = report.findings
    assert (finding.code, finding.cause, finding.fix_is_line) == ("missing-zero-grad", None, False)
    assert report.judged
    assert "missing-zero-grad: IndexError: no such line" in report.watched
