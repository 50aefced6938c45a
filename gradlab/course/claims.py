"""The claims that notebook 12 tries, and a log of the verdicts: which was judged how, on what evidence."""

from __future__ import annotations

import datetime
import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple

from ..formatting import html_box, inline_html

HOLDS, INSIDE, UNTIL, DEPENDS, NOT = KINDS = (
    "holds",
    "holds inside its condition",
    "held until",
    "depends",
    "does not hold",
)
SIGNS = dict(zip(KINDS, "\u2713\u2713\u25f7\u25d0\u2717", strict=True))
NOTEBOOK = "12_fact_check"
"""The notebook with the experiments."""


class Article(NamedTuple):
    """An article that makes claims."""

    title: str
    about: str
    """A few words."""
    date: datetime.date | None = None
    """When it appeared; None if it does not say."""
    not_before: datetime.date | None = None
    """For an article without a date: that of the newest thing that it names."""
    url: str = ""

    @property
    def dated(self) -> str:
        """Its date in words."""
        if self.date:
            return f"{self.date:%Y-%m-%d}"
        return f"undated, not before {self.not_before:%B %Y}" if self.not_before else "undated"


class Claim(NamedTuple):
    """What an article says, in our words, and the notebook of the series that is about it."""

    code: str
    """The article's letter and a number: ``"A6"``."""
    title: str
    """A few words, the heading of its experiment."""
    says: str
    """One to three sentences with every hedge that the article has; code between backticks."""
    section: str
    """The article's heading above it."""
    home: str
    """``"04_zero_grad"``."""
    condition: str = ""
    """The case or the hedge that the article names; "" if it names none."""
    in_code: bool = False
    """Whether the article does not say this, but its program does it."""
    cited: Mapping[str, bool] = {}
    """Facts about other software, from its documentation, that no cell can try."""

    @property
    def article(self) -> Article:
        """The article that makes the claim."""
        return ARTICLES[self.code[0]]

    @property
    def anchor(self) -> str:
        """Where notebook 12 tries it: the end of an address, from ``#`` on."""
        return f"#{self.code}-\u00b7-{self.title.replace(' ', '-')}"

    @property
    def words(self) -> str:
        """What the article says, and its condition, as the notebook prints it above the experiment."""
        who = f"**Article {self.code[0]}'s program**" if self.in_code else f"**Article {self.code[0]}**"
        condition = f" **Its condition:** {self.condition}." if self.condition else ""
        return f"{who}, *{self.section}*: {self.says}{condition}"


_DATA = tomllib.loads(files("gradlab.course").joinpath("claims.toml").read_text(encoding="utf-8"))
ARTICLES = {letter: Article(**article) for letter, article in _DATA["articles"].items()}
CLAIMS = {code: Claim(code, **claim) for code, claim in _DATA["claims"].items()}
_RELEASES: dict[str, datetime.date] = _DATA["releases"]


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim with its verdict and what it rests on."""

    claim: Claim
    kind: str
    """One of ``KINDS``."""
    inside: Mapping[str, bool | None]
    """Facts inside the claim's condition, which decide; None: could not be tried here."""
    beyond: Mapping[str, bool | None] = field(default_factory=dict)
    """Facts beyond what the article says, which do not."""
    note: str = ""
    until: str = ""
    """The version of PyTorch with which the claim stopped being true, if it did."""

    @property
    def verdict(self) -> str:
        """The verdict in words: ``"held until 2.4"``."""
        return f"{self.kind} {self.until}" if self.kind == UNTIL else self.kind

    @property
    def evidence(self) -> str:
        """What the verdict rests on, in words, without what is beyond the article."""
        parts = [*_told(self.inside), self.note, self._history(), *_told(self.inside, untried=True)]
        return " ".join(f"{part[:1].upper()}{part[1:].rstrip('.')}." for part in parts if part)

    @property
    def beyond_words(self) -> str:
        """The facts beyond the article, in words; "" without any."""
        parts = [*_told(self.beyond), *_told(self.beyond, untried=True)]
        return " ".join(f"{part}." for part in parts)

    def _history(self) -> str:
        if not self.until:
            return ""
        changed = f"{_RELEASES[self.until]:%B %Y}"
        if self.kind == UNTIL:
            return f"it was right when the article appeared; PyTorch {self.until} ({changed}) changed it"
        return f"it was true until PyTorch {self.until} ({changed}), which came out before the article"

    def __repr__(self) -> str:
        beyond = f"Beyond the article: {self.beyond_words}" if self.beyond else ""
        return f"{self.claim.code:3} {SIGNS[self.kind]} {self.verdict}. {self.evidence} {beyond}".rstrip()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from .figures.mosaic import VERDICT_STYLES

        words = f"<b>{self.claim.code} {SIGNS[self.kind]} {self.verdict}.</b> {inline_html(self.evidence)}"
        if self.beyond:
            words += f"<br><i>Beyond the article:</i> {inline_html(self.beyond_words)}"
        return {"text/plain": repr(self), "text/html": html_box(words, VERDICT_STYLES[self.kind].edge)}


class ClaimLog:
    """The verdicts so far; a notebook shows it as a table of all claims, and ``mosaic()`` as a picture."""

    def __init__(self, version: str = "", device: str = "") -> None:
        """Begin a log for this version of PyTorch on this device; both are only shown."""
        self.version, self.device = version, device
        self._verdicts: dict[str, ClaimVerdict] = {}

    def record(
        self,
        code: str,
        facts: object,
        beyond: Mapping[str, object] | None = None,
        evidence: str = "",
        until: str = "",
    ) -> ClaimVerdict:
        """Turn facts into a verdict, keep it in place of an earlier one and return it.

        facts: what was found inside the claim's condition, a single fact or facts by their words. All true: "holds",
            or "holds inside its condition" if the claim names one. None true: "does not hold". Some: "depends". A
            fact that is None was not tried, because something is missing here.
        beyond: facts outside of the condition; they are shown and do not decide.
        until: the version of PyTorch with which the claim stopped being true. If none of the facts is true any more,
            and the article is older than that version, the verdict is "held until" this version.

        Raises KeyError for a code that does not exist, ValueError for facts of which none is known, or for a version
        whose date is not in claims.toml.
        """
        claim = _known(code)
        inside = _as_facts(facts)
        known = set(inside.values()) - {None}
        if not known:
            raise ValueError(f"record: {code} needs at least one fact that is True or False, got {facts!r}")
        if until and until not in _RELEASES:
            raise ValueError(f"record: until must be one of {', '.join(_RELEASES)}, got {until!r}")
        kind = DEPENDS if len(known) == 2 else HOLDS if True in known else NOT
        if kind == HOLDS and claim.condition:
            kind = INSIDE
        appeared = claim.article.date or claim.article.not_before
        if kind != NOT:
            until = ""
        elif until and appeared and appeared < _RELEASES[until]:
            kind = UNTIL
        self._verdicts[code] = ClaimVerdict(claim, kind, inside, _as_facts(beyond or {}), evidence, until)
        return self._verdicts[code]

    def cite(self, code: str, evidence: str = "cited, not tried") -> ClaimVerdict:
        """Judge a claim about other software by the documented facts that come with it."""
        return self.record(code, _known(code).cited, evidence=evidence)

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
    def total(self) -> str:
        """All counts in one line."""
        return f"{len(self)} claims: " + ", ".join(f"{kind} {count}" for kind, count in self.counts.items())

    def mosaic(self) -> ClaimMosaic:
        """Draw a tile for each claim."""
        from .figures.mosaic import mosaic_figure

        rows = {
            f"{letter} {article.about} ({article.dated})": [
                (v.claim.code, v.kind, v.until if v.kind == UNTIL else "") for v in self if v.claim.code[0] == letter
            ]
            for letter, article in ARTICLES.items()
        }
        where = ", ".join(word for word in (f"PyTorch {self.version}".strip(), self.device) if word)
        return ClaimMosaic(mosaic_figure(rows, self.counts, f"{len(self)} claims, {where}"), self.total)

    def markdown(self) -> str:
        """Return the table as Markdown."""
        from .claims_table import markdown_table

        return markdown_table(self)

    def json(self) -> str:
        """Return everything as JSON: the versions, the articles, and each claim with its verdict and facts."""
        from .claims_table import as_data

        return json.dumps(as_data(self), indent=2, ensure_ascii=False)

    def __repr__(self) -> str:
        return "\n".join([*(f"{verdict!r}  [{verdict.claim.home[:2]}]" for verdict in self), self.total])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from .claims_table import html_table

        return {"text/plain": repr(self), "text/html": html_table(self)}


@dataclass(frozen=True)
class ClaimMosaic:
    """A picture with the words that stand for it where it is not seen."""

    png: bytes
    words: str

    def __repr__(self) -> str:
        return self.words

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return {"text/plain": self.words, "image/png": self.png}, {"image/png": {"width": 980}}


def _known(code: str) -> Claim:
    if code not in CLAIMS:
        last = next(reversed(CLAIMS))
        raise KeyError(f"record: code must be one of A1 to {last}, got {code!r}")
    return CLAIMS[code]


def _as_facts(facts: object) -> dict[str, bool | None]:
    given = facts if isinstance(facts, Mapping) else {"": facts}
    return {name: None if fact is None else bool(fact) for name, fact in given.items()}


def _told(facts: Mapping[str, bool | None], untried: bool = False) -> list[str]:
    """Write facts as "Yes: ..." and "No: ...", or those that could not be tried."""
    heads = {"Not tried here: ": None} if untried else {"Yes: ": True, "No: ": False}
    names = {head: [name for name, fact in facts.items() if name and fact is kept] for head, kept in heads.items()}
    return [head + " \u00b7 ".join(listed) for head, listed in names.items() if listed]
