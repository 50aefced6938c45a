"""The claims that notebook 12 tries, and the verdict on one of them."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import quote

from ..drawing import colour
from ..formatting import html_box, inline_html

FRESH, INK, OPTIMIZER, STALE = map(colour, ("fresh", "ink", "optimizer", "stale"))

HOLDS, INSIDE, UNTIL, DEPENDS, NOT = KINDS = (
    "holds",
    "holds inside its condition",
    "held until",
    "depends",
    "does not hold",
)


class VerdictStyle(NamedTuple):
    """How a kind of verdict is shown; the sign is there for those who do not see the colour."""

    sign: str
    colour: str
    ink: str
    edge: str
    """A colour that stands out on white."""


VERDICT_STYLES = {
    HOLDS: VerdictStyle("\u2713", OPTIMIZER, "#FFFFFF", OPTIMIZER),
    INSIDE: VerdictStyle("\u2713", "#A8DCCB", INK, OPTIMIZER),
    UNTIL: VerdictStyle("\u25f7", "#D9D9D9", INK, "#767676"),
    DEPENDS: VerdictStyle("\u25d0", FRESH, INK, "#B8AC00"),
    NOT: VerdictStyle("\u2717", STALE, "#FFFFFF", STALE),
}


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
    """The article's heading above it, or our name for a part without a heading."""
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
    def statement(self) -> str:
        """What the article says, and its condition, as the table has it."""
        condition = f" Condition: {self.condition}." if self.condition else ""
        return f"{'In its program: ' if self.in_code else ''}{self.says}{condition}"

    @property
    def anchor(self) -> str:
        """Where notebook 12 tries it: the end of an address, from ``#`` on."""
        return f"#{self.code}:-{quote(self.title.replace(' ', '-'))}"


_DATA = tomllib.loads(files("gradlab.course").joinpath("claims.toml").read_text(encoding="utf-8"))
ARTICLES = {letter: Article(**article) for letter, article in _DATA["articles"].items()}
CLAIMS = {code: Claim(code, **claim) for code, claim in _DATA["claims"].items()}
RELEASES: dict[str, datetime.date] = _DATA["releases"]
"""When versions of PyTorch came out that ended something."""


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
    def marked(self) -> str:
        """The verdict after its sign."""
        return f"{VERDICT_STYLES[self.kind].sign} {self.verdict}"

    @property
    def badge(self) -> str:
        """The same as HTML, on the colour of its kind."""
        style = VERDICT_STYLES[self.kind]
        return (
            f'<span style="background:{style.colour};color:{style.ink};border:1px solid #222222;border-radius:4px;'
            f'padding:0 6px;display:inline-block">{style.sign}&nbsp;{self.verdict}</span>'
        )

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
        changed = f"{RELEASES[self.until]:%B %Y}"
        if self.kind == UNTIL:
            return f"it was right when the article appeared; PyTorch {self.until} ({changed}) changed it"
        return f"it was true until PyTorch {self.until} ({changed}), which came out before the article"

    def __repr__(self) -> str:
        beyond = f"Beyond the article: {self.beyond_words}" if self.beyond else ""
        return f"{self.claim.code:3} {self.marked}. {self.evidence} {beyond}".rstrip()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        words = f"<b>{self.claim.code} {self.marked}.</b> {inline_html(self.evidence)}"
        if self.beyond:
            words += f"<br><i>Beyond the article:</i> {inline_html(self.beyond_words)}"
        return {"text/plain": repr(self), "text/html": html_box(words, VERDICT_STYLES[self.kind].edge)}


def _told(facts: Mapping[str, bool | None], untried: bool = False) -> list[str]:
    """Write facts as "Yes: ..." and "No: ...", or those that could not be tried."""
    heads = {"Not tried here: ": None} if untried else {"Yes: ": True, "No: ": False}
    names = {head: [name for name, fact in facts.items() if name and fact is kept] for head, kept in heads.items()}
    return [head + " \u00b7 ".join(listed) for head, listed in names.items() if listed]
