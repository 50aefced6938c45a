"""The claims that notebook 12 puts to the test, and a log of the verdicts: which was judged how, on what evidence."""

from __future__ import annotations

import html
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

from ..formatting import html_box, inline_html, lesson_address, link_html

HOLDS, SINCE, DEPENDS, NOT = KINDS = ("holds", "holds since", "depends", "does not hold")
_SIGNS = dict(zip(KINDS, "\u2713\u2713\u25d0\u2717", strict=True))


class Claim(NamedTuple):
    """What an article says, in our words, and the notebook of the series that is about it."""

    code: str
    """The article's letter and a number: ``"A6"``."""
    text: str
    """One sentence; code between backticks."""
    home: str
    """``"04_zero_grad"``."""


_DATA = tomllib.loads(files("gradlab.course").joinpath("claims.toml").read_text(encoding="utf-8"))
ARTICLES: dict[str, str] = _DATA["articles"]
CLAIMS = {code: Claim(code, **claim) for code, claim in _DATA["claims"].items()}


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim with its verdict and what it rests on."""

    claim: Claim
    kind: str
    """One of ``KINDS``."""
    evidence: str
    since: str = ""
    """With "holds since": the first version of PyTorch in which it does."""

    @property
    def verdict(self) -> str:
        """The verdict in words: ``"holds since 1.7"``."""
        return f"{self.kind} {self.since}".rstrip()

    def __repr__(self) -> str:
        return f"{self.claim.code:3} {_SIGNS[self.kind]} {self.verdict}. {self.evidence}".rstrip()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from .figures.mosaic import VERDICT_STYLES

        head = f"<b>{self.claim.code} {_SIGNS[self.kind]} {self.verdict}.</b> "
        return {
            "text/plain": repr(self),
            "text/html": html_box(head + inline_html(self.evidence), VERDICT_STYLES[self.kind].edge),
        }


class ClaimLog:
    """The verdicts so far; a notebook shows it as a table of all claims, and ``mosaic()`` as a picture."""

    def __init__(self, version: str = "", device: str = "") -> None:
        """Begin a log for this version of PyTorch on this device; both are only shown."""
        self.version, self.device = version, device
        self._verdicts: dict[str, ClaimVerdict] = {}

    def record(self, code: str, facts: object, evidence: str = "", since: str = "") -> ClaimVerdict:
        """Turn facts into a verdict, keep it in place of an earlier one and return it.

        A single fact is true ("holds") or not ("does not hold"). Facts by case: true in all, "holds"; in none, "does
        not hold"; in some, "depends", and the evidence says where. A case that is None was not judged, because
        something is missing here. ``since`` is the first version that has what the claim is about. Raises KeyError
        for a code that does not exist, ValueError for facts of which none is known.
        """
        if code not in CLAIMS:
            raise KeyError(f"record: code must be one of A1 to D5, got {code!r}")
        given = facts if isinstance(facts, Mapping) else {"": facts}
        cases = {name: None if fact is None else bool(fact) for name, fact in given.items()}
        known = set(cases.values()) - {None}
        if not known:
            raise ValueError(f"record: {code} needs at least one fact that is True or False, got {facts!r}")
        kind = DEPENDS if len(known) == 2 else HOLDS if True in known else NOT
        if kind == HOLDS and since and _numbers(self.version) >= _numbers(since):
            kind = SINCE
        names = {kept: [name for name, fact in cases.items() if name and fact is kept] for kept in (True, False, None)}
        said = [evidence[:1].upper() + evidence[1:]] if evidence else []
        parts = (("Yes: ", names[True]), ("No: ", names[False]), ("", said), ("Not judged here: ", names[None]))
        words = " ".join(f"{head}{' · '.join(part)}." for head, part in parts if part)
        self._verdicts[code] = ClaimVerdict(CLAIMS[code], kind, words, since if kind == SINCE else "")
        return self._verdicts[code]

    def __getitem__(self, code: str) -> ClaimVerdict:
        return self._verdicts[code]

    def __iter__(self) -> Iterator[ClaimVerdict]:
        return (self._verdicts[code] for code in CLAIMS if code in self._verdicts)

    def __len__(self) -> int:
        return len(self._verdicts)

    @property
    def counts(self) -> dict[str, int]:
        """How many claims got each kind of verdict."""
        return dict.fromkeys(KINDS, 0) | Counter(verdict.kind for verdict in self)

    @property
    def missing(self) -> list[str]:
        """Codes of the claims that are not judged yet."""
        return [code for code in CLAIMS if code not in self._verdicts]

    @property
    def _total(self) -> str:
        return f"{len(self)} claims: " + ", ".join(f"{kind} {count}" for kind, count in self.counts.items())

    def mosaic(self) -> ClaimMosaic:
        """Draw a tile for each claim."""
        from .figures.mosaic import mosaic_figure

        rows = {
            f"{letter} {words}": [(v.claim.code, v.kind, v.since) for v in self if v.claim.code[0] == letter]
            for letter, words in ARTICLES.items()
        }
        where = ", ".join(word for word in (f"PyTorch {self.version}".strip(), self.device) if word)
        return ClaimMosaic(mosaic_figure(rows, self.counts, f"{len(self)} claims, {where}"), self._total)

    def __repr__(self) -> str:
        return "\n".join([*(f"{verdict!r}  [{verdict.claim.home[:2]}]" for verdict in self), self._total])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": _table(self)}


@dataclass(frozen=True)
class ClaimMosaic:
    """A picture with the words that stand for it where it is not seen."""

    png: bytes
    words: str

    def __repr__(self) -> str:
        return self.words

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return {"text/plain": self.words, "image/png": self.png}, {"image/png": {"width": 980}}


def _numbers(version: str) -> list[int]:
    """Return [2, 13] for "2.13.0+cpu"."""
    return [int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:2]]


def _table(log: ClaimLog) -> str:
    """Return the table as HTML: no style sheet, so that it looks the same wherever it is read."""
    from .figures.mosaic import VERDICT_STYLES

    cell = "text-align:left;padding:4px 10px;vertical-align:top;border-top:1px solid #D8D8D8"
    heads = "".join(
        f'<th scope="col" style="text-align:left;padding:4px 10px">{head}</th>'
        for head in ("claim", "what is said", "verdict here", "evidence", "more in")
    )
    rows, letter = [], ""
    for verdict in log:
        claim, look = verdict.claim, VERDICT_STYLES[verdict.kind]
        if claim.code[0] != letter:
            letter = claim.code[0]
            words = f"Article {letter}: {ARTICLES[letter]}"
            rows.append(f'<tr><th colspan="5" scope="rowgroup" style="{cell};padding-top:14px">{words}</th></tr>')
        mark = (
            f'<span style="background:{look.colour};color:{look.ink};border:1px solid #222222;border-radius:4px;'
            f'padding:0 6px;white-space:nowrap">{_SIGNS[verdict.kind]} {verdict.verdict}</span>'
        )
        link = link_html(lesson_address(claim.home), claim.home[:2])
        parts = (f"<b>{claim.code}</b>", inline_html(claim.text), mark, inline_html(verdict.evidence), link)
        rows.append("<tr>" + "".join(f'<td style="{cell}">{part}</td>' for part in parts) + "</tr>")
    counts = " · ".join(f"{html.escape(kind)}: {count}" for kind, count in log.counts.items())
    total = f'<tr><td colspan="5" style="{cell}"><b>{len(log)} claims</b> · {counts}</td></tr>'
    return f'<table style="font-size:14px;line-height:1.35"><tr>{heads}</tr>{"".join(rows)}{total}</table>'
