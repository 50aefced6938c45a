"""The log of verdicts: the rule, and what is shown."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from gradlab.course.claims import ARTICLES, CLAIMS, KINDS, VERDICT_STYLES, ClaimLog

BOUND = next(code for code, claim in CLAIMS.items() if claim.condition)
FREE = next(code for code, claim in CLAIMS.items() if not claim.condition)
OF_2023, OF_2025 = "A19", "B9"


def full() -> ClaimLog:
    log = ClaimLog("2.13.0", "cpu")
    facts: tuple[Any, ...] = (True, {"here": True, "there": False}, False, {"here": True, "elsewhere": None})
    for at, code in enumerate(CLAIMS):
        log.record(code, facts[at % 4], {"far away": at % 3 == 0}, "counted", until="2.4" if at % 8 == 2 else "")
    return log


def test_every_claim_is_there_once() -> None:
    counts = {letter: sum(code[0] == letter for code in CLAIMS) for letter in ARTICLES}
    assert counts == {"A": 26, "B": 10, "C": 11, "D": 5}
    assert list(CLAIMS) == [f"{letter}{n}" for letter, count in counts.items() for n in range(1, count + 1)]
    assert len({claim.says for claim in CLAIMS.values()}) == len({c.title for c in CLAIMS.values()}) == len(CLAIMS)


def test_what_only_a_program_does_is_marked() -> None:
    assert {code for code, claim in CLAIMS.items() if claim.in_code} == {"A16", "A19", "D2", "D3"}


@pytest.mark.parametrize(
    ("code", "facts", "verdict"),
    [
        (FREE, True, "holds"),
        (BOUND, True, "holds inside its condition"),
        (FREE, False, "does not hold"),
        (BOUND, False, "does not hold"),
        (FREE, {"a": True, "b": True}, "holds"),
        (FREE, {"a": False, "b": False}, "does not hold"),
        (BOUND, {"a": True, "b": False}, "depends"),
        (FREE, {"a": True, "b": None}, "holds"),
        (FREE, {"a": False, "b": None}, "does not hold"),
    ],
)
def test_only_facts_inside_decide(code: str, facts: Any, verdict: str) -> None:
    for beyond in (None, {"elsewhere": True}, {"elsewhere": False}, {"elsewhere": None}):
        assert ClaimLog().record(code, facts, beyond).verdict == verdict


@pytest.mark.parametrize(
    ("code", "fact", "until", "verdict", "said"),
    [
        (OF_2023, False, "2.4", "held until 2.4", "It was right when the article appeared"),
        (OF_2023, False, "2.0", "does not hold", "which came out before the article"),
        (OF_2025, False, "2.4", "does not hold", "which came out before the article"),
        ("C11", False, "2.0", "does not hold", "which came out before the article"),
        (OF_2023, True, "2.4", "holds", ""),
        ("D1", False, "2.4", "does not hold", "came out before the article"),
    ],
)
def test_outdated_is_told_from_wrong_when_published(code: str, fact: bool, until: str, verdict: str, said: str) -> None:
    judged = ClaimLog().record(code, fact, until=until)
    assert judged.verdict == verdict
    assert said in judged.evidence
    assert bool(judged.evidence) == bool(said)


def test_evidence_says_where() -> None:
    judged = ClaimLog().record(
        "A6", {"all": True, "a part": False, "a GPU": None}, {"a head": False, "a tail": None}, "two tensors"
    )
    assert judged.evidence == "Yes: all. No: a part. Two tensors. Not tried here: a GPU."
    assert judged.beyond_words == "No: a head. Not tried here: a tail."
    assert repr(judged) == f"A6  \u25d0 depends. {judged.evidence} Beyond the article: {judged.beyond_words}"


def test_bad_input_is_named() -> None:
    log = ClaimLog()
    assert "cited, not tried" in ClaimLog().cite("A24").evidence.lower()
    with pytest.raises(ValueError, match="A1 needs"):
        log.cite("A1")  # it is not about other software
    with pytest.raises(ValueError, match="A1 needs at least one fact"):
        log.record("A1", {"a GPU": None})
    with pytest.raises(KeyError, match="A27"):
        log.record("A27", True)
    with pytest.raises(ValueError, match=r"until must be one of 2\.0, 2\.4, got '1\.7'"):
        log.record("A1", False, until="1.7")
    assert len(log) == 0


def test_the_table_has_all_links_to_the_experiments_and_counts() -> None:
    log = full()
    assert log.missing == []
    assert len(log) == len(CLAIMS)
    assert tuple(VERDICT_STYLES) == KINDS
    counts = [int(count) for count in re.findall(r" (\d+)(?:,|$)", log.total)]
    assert counts == [sum(verdict.kind == kind for verdict in log) for kind in KINDS]
    page, text = (log._repr_mimebundle_()[f"text/{kind}"] for kind in ("html", "plain"))
    for code, claim in CLAIMS.items():
        assert f'href="{claim.anchor}"><b>{code}</b>' in page
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
    assert data["claims"][1]["inside"] == {"here": True, "there": False}
    assert data["claims"][1]["beyond"] == {"far away": False}
