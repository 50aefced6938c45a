"""The log of verdicts: the rule, what is shown, and the picture."""

from __future__ import annotations

from typing import Any

import pytest

from gradlab.course.claims import ARTICLES, CLAIMS, KINDS, ClaimLog
from gradlab.course.figures.mosaic import VERDICT_STYLES
from gradlab.formatting import lesson_address, link_html

PNG = b"\x89PNG"


def full() -> ClaimLog:
    log = ClaimLog("2.13.0", "cpu")
    facts: tuple[Any, ...] = (True, {"here": True, "there": False}, False, {"here": True, "elsewhere": None})
    for at, code in enumerate(CLAIMS):
        log.record(code, facts[at % 4], "counted", since="1.7" if at % 8 == 0 else "")
    return log


def test_every_claim_is_there_once() -> None:
    counts = {letter: sum(code[0] == letter for code in CLAIMS) for letter in ARTICLES}
    assert counts == {"A": 22, "B": 8, "C": 8, "D": 5}
    assert list(CLAIMS) == [f"{letter}{n}" for letter, count in counts.items() for n in range(1, count + 1)]
    assert len({claim.text for claim in CLAIMS.values()}) == 43


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        (True, "holds"),
        (False, "does not hold"),
        ({"a": True, "b": True}, "holds"),
        ({"a": False, "b": False}, "does not hold"),
        ({"a": True, "b": False}, "depends"),
        ({"a": True, "b": None}, "holds"),
        ({"a": False, "b": None}, "does not hold"),
    ],
)
def test_the_rule(facts: Any, verdict: str) -> None:
    assert ClaimLog().record("A1", facts).verdict == verdict


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("1.7.0", "holds since 1.7"), ("2.13.0+cpu", "holds since 1.7"), ("1.13", "holds since 1.7"), ("1.6.1", "holds")],
)
def test_since_asks_for_the_version(version: str, verdict: str) -> None:
    log = ClaimLog(version)
    assert log.record("A1", True, since="1.7").verdict == verdict
    assert log.record("A1", False, since="1.7").verdict == "does not hold"


def test_evidence_says_where() -> None:
    judged = ClaimLog().record("A6", {"all": True, "a part": False, "a GPU": None}, "two tensors")
    assert judged.evidence == "Yes: all. No: a part. Two tensors. Not judged here: a GPU."
    assert repr(judged) == f"A6  \u25d0 depends. {judged.evidence}"


def test_facts_that_are_none() -> None:
    with pytest.raises(ValueError, match="A1 needs at least one fact"):
        ClaimLog().record("A1", {"a GPU": None})
    with pytest.raises(KeyError, match="A23"):
        ClaimLog().record("A23", True)


def test_the_table_has_all_and_counts_them() -> None:
    log = full()
    assert log.missing == []
    assert sum(log.counts.values()) == len(log) == 43
    assert tuple(log.counts) == KINDS == tuple(VERDICT_STYLES)
    page, text = (log._repr_mimebundle_()[f"text/{kind}"] for kind in ("html", "plain"))
    for code, claim in CLAIMS.items():
        assert f"<b>{code}</b>" in page
        assert f">{link_html(lesson_address(claim.home), claim.home[:2])}</td>" in page
    assert text.splitlines()[-1].startswith("43 claims: holds ")
    assert page.count("\u2713") == log.counts["holds"] + log.counts["holds since"]


def test_judging_again_writes_over_it() -> None:
    log = ClaimLog()
    log.record("A1", True)
    log.record("A1", False)
    assert [judged.kind for judged in log] == ["does not hold"]
    assert log["A1"].kind == "does not hold"
    assert len(log.missing) == 42


def test_pictures_of_a_full_and_of_an_empty_log() -> None:
    for log in (full(), ClaimLog()):
        data, size = log.mosaic()._repr_mimebundle_()
        assert data["image/png"].startswith(PNG)
        assert data["text/plain"].startswith(f"{len(log)} claims: holds")
        assert size["image/png"]["width"] > 900
