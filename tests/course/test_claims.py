"""The log of verdicts: the rule, its output, and the claims that the notebook leaves out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradlab.course import experiments
from gradlab.course.claims import ARTICLES, CLAIMS, VERDICT_STYLES, ClaimLog

FREE, BOUND, HALVES, NO_CLAIM = "A1", "A6", "B10", "D3"
TRUE, FALSE, BOTH = {"a": True}, {"a": False}, {"a": True, "b": False}
# What the notebook does not tell, as PyTorch from 2.11 on does it on a CPU.
OTHERS = {
    "holds": "A1 A3 A4 A10 A11 A17 A18 A25 B1 B2 B4 B8 C4 C8 D4 D5",
    "holds inside its condition": "A2 A5 A6 A9 A22 B6 C1 C2 C3 C5 C7 C10",
    "held until 2.4": "A19",
    "half true": "A12 A21 A24 B5",
    "depends": "A26",
    "does not hold": "A8 B9 C11",
}


def full() -> ClaimLog:
    log = ClaimLog("2.13.0", "cpu")
    for number, code in enumerate(CLAIMS):
        facts = (TRUE, BOTH, FALSE, {"here": True, "elsewhere": None})[number % 4]
        log.record(code, facts, {"far away": number % 3 == 0})
    return log


@pytest.fixture(scope="module")
def others() -> ClaimLog:
    log = ClaimLog(torch.__version__)
    log.try_others()
    return log


def test_every_claim_is_there_once() -> None:
    counts = {letter: sum(code[0] == letter for code in CLAIMS) for letter in ARTICLES}
    assert counts == {"A": 26, "B": 10, "C": 11, "D": 5}
    assert list(CLAIMS) == [f"{letter}{n}" for letter, count in counts.items() for n in range(1, count + 1)]
    assert len({claim.says for claim in CLAIMS.values()}) == len({c.title for c in CLAIMS.values()}) == len(CLAIMS)


def test_kinds_of_sentences_are_marked() -> None:
    assert {code for code, claim in CLAIMS.items() if claim.in_code} == {"A16", "A19", "D2", "D3"}
    assert {code for code, claim in CLAIMS.items() if claim.form == "no claim"} == {"D3"}
    halves = {code for code, claim in CLAIMS.items() if claim.form == "halves"}
    assert halves == {"A12", "A21", "A23", "A24", "B5", "B10"}
    assert {claim.form for claim in CLAIMS.values()} == {"", "halves", "no claim"}


@pytest.mark.parametrize(
    ("code", "facts", "verdict"),
    [
        (FREE, TRUE, "holds"),
        (BOUND, TRUE, "holds inside its condition"),
        (FREE, FALSE, "does not hold"),
        (BOUND, FALSE, "does not hold"),
        (FREE, {"a": False, "b": False}, "does not hold"),
        (BOUND, BOTH, "depends"),
        (HALVES, BOTH, "half true"),
        (HALVES, TRUE, "holds"),
        (HALVES, FALSE, "does not hold"),
        (FREE, {"a": True, "b": None}, "holds"),
        (FREE, {"a": False, "b": None}, "does not hold"),
        (NO_CLAIM, {}, "not a claim"),
        (NO_CLAIM, TRUE, "not a claim"),
        (NO_CLAIM, FALSE, "not a claim"),
    ],
)
def test_only_facts_inside_decide(code: str, facts: Any, verdict: str) -> None:
    for beyond in (None, {"elsewhere": True}, {"elsewhere": False}, {"elsewhere": None}):
        assert ClaimLog().record(code, facts, beyond).verdict == verdict


@pytest.mark.parametrize(
    ("code", "facts", "verdict", "history"),
    [
        ("A19", FALSE, "held until 2.4", "It was right when the article appeared; PyTorch 2.4 (July 2024) changed it."),
        (
            "A7",
            FALSE,
            "does not hold",
            "It was true until PyTorch 2.0 (March 2023), which came out before the article.",
        ),
        (
            "B9",
            FALSE,
            "does not hold",
            "It was true until PyTorch 2.0 (March 2023), which came out before the article.",
        ),
        (
            "C11",
            FALSE,
            "does not hold",
            "It was true until PyTorch 2.0 (March 2023), which came out before the article.",
        ),
        ("A19", TRUE, "holds", ""),
        ("D1", FALSE, "does not hold", ""),
    ],
)
def test_outdated_is_told_from_wrong_when_published(code: str, facts: Any, verdict: str, history: str) -> None:
    judged = ClaimLog().record(code, facts)
    assert judged.verdict == verdict
    assert judged.evidence.partition(" a.")[2].strip() == history


def test_facts_have_marks() -> None:
    judged = ClaimLog().record("A6", {"a GPU": None, "all": True, "a part": False}, {"a head": False, "a tail": None})
    assert judged.evidence == "\u2713 all \u00b7 \u2717 a part \u00b7 Not tried here: a GPU."
    assert judged.beyond_words == "\u2717 a head \u00b7 Not tried here: a tail."
    assert repr(judged) == f"A6  \u25d0 depends. {judged.evidence} Beyond the article: {judged.beyond_words}"


def test_bad_input_is_named() -> None:
    log = ClaimLog()
    with pytest.raises(ValueError, match="at least one True or False for A1"):
        log.record("A1", {"a GPU": None})
    with pytest.raises(KeyError, match="A27"):
        log.record("A27", TRUE)
    assert len(log) == 0


def test_the_table_has_all_and_counts() -> None:
    log = full()
    assert log.missing == []
    assert len(log) == len(CLAIMS)
    counts = [int(count) for count in re.findall(r" (\d+)(?:,|$)", log.total)]
    assert counts == [sum(verdict.kind == kind for verdict in log) for kind in VERDICT_STYLES]
    page, text = (log._repr_mimebundle_()[f"text/{kind}"] for kind in ("html", "plain"))
    assert all(f"<b>{code}</b>" in page for code in CLAIMS)
    assert page.count("<tr>") == len(CLAIMS) + 1
    assert text.splitlines()[-1].startswith(f"{len(CLAIMS)} claims: holds ")
    assert text.splitlines()[-1] in page


def test_markdown_and_json_say_the_same() -> None:
    log = full()
    data, rows = json.loads(log.json()), [row for row in log.markdown().splitlines() if re.match(r"\| [A-D]\d", row)]
    assert (data["torch"], data["device"], data["missing"]) == ("2.13.0", "cpu", [])
    assert [claim["code"] for claim in data["claims"]] == [row.split(" | ")[0][2:] for row in rows] == list(CLAIMS)
    for claim, row, verdict in zip(data["claims"], rows, log, strict=True):
        assert claim["verdict"] == verdict.verdict
        assert f" {verdict.verdict} | {verdict.evidence} |" in row
    assert data["claims"][1]["inside"] == BOTH
    assert data["claims"][1]["beyond"] == {"far away": False}


@pytest.mark.slow
def test_the_others_are_judged_by_what_pytorch_does(others: ClaimLog) -> None:
    kinds: dict[str, list[str]] = {}
    for verdict in others:
        kinds.setdefault(verdict.verdict, []).append(verdict.claim.code)
    assert {kind: " ".join(codes) for kind, codes in kinds.items()} == OTHERS
    assert others.failures == {}
    assert len(others.missing) == 15


@pytest.mark.slow
def test_each_subject_says_which_claims_it_tries() -> None:
    for subject in experiments.SUBJECTS:
        assert re.findall(r"\b[A-D]\d+\b", subject.__doc__ or "") == sorted(
            (code for code, _, _ in subject()), key=list(CLAIMS).index
        )


@pytest.mark.slow
def test_no_fact_is_a_double_negative(others: ClaimLog) -> None:
    for verdict in others:
        for name, fact in (*verdict.inside.items(), *verdict.beyond.items()):
            assert fact is not False or not re.search(
                r"\b(?:not|no|never|without)\b(?! (?:an?|the) (?:arg|warn))", name
            ), name


def replacing(backward: Callable[..., None]) -> Callable[..., None]:
    """A backward that writes over what is in ``.grad``."""

    def leaves(node: Any, visited: set[Any]) -> None:
        if node is None or node in visited:
            return
        visited.add(node)
        if hasattr(node, "variable"):
            node.variable.grad = None
        for below, _ in node.next_functions:
            leaves(below, visited)

    def replace(loss: Tensor, *args: Any, **kwargs: Any) -> None:
        leaves(loss.grad_fn, set())
        backward(loss, *args, **kwargs)

    return replace


@pytest.mark.slow
def test_if_backward_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tensor, "backward", replacing(Tensor.backward))
    log = ClaimLog()
    log.try_others()
    assert {log[code].verdict for code in ("A3", "A5", "B2", "C8", "D4", "D5")} == {"does not hold"}


@pytest.mark.slow
def test_with_the_default_of_old(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (torch.optim.Optimizer, nn.Module):

        def zero_grad(self: Any, set_to_none: bool = False, real: Callable[..., None] = kind.zero_grad) -> None:
            real(self, set_to_none=set_to_none)

        monkeypatch.setattr(kind, "zero_grad", zero_grad)
    log = ClaimLog()
    log.try_others()
    assert log["B9"].verdict == log["C11"].verdict == "holds"
    assert all(log["C1"].beyond.values())


def test_a_subject_that_fails_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_nothing() -> Iterator[experiments.ClaimFacts]:
        yield "A1", TRUE, {}
        raise SystemError("no such thing\nsecond line")

    monkeypatch.setattr(experiments, "SUBJECTS", (on_nothing, experiments.on_filling))
    log = ClaimLog()
    log.try_others()
    assert log.failures == {"on_nothing": "SystemError: no such thing"}
    assert [verdict.claim.code for verdict in log] == ["A1", "C2", "C3", "C4"]
