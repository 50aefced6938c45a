"""The claims that notebook 12 tests, the verdicts on them, and the log of verdicts as a table, Markdown or JSON."""

from __future__ import annotations

import datetime
import html
import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple

import torch

from .._process import RandomStream
from ..drawing import colour
from ..formatting import html_box, html_table, inline_html, lesson_address, link_html

GREEN, YELLOW, GREY, RED = colour("optimizer"), "#B8AC00", "#767676", colour("reused")
VERDICT_STYLES = {
    "holds": ("\u2713", GREEN),
    "holds inside its condition": ("\u2713", GREEN),
    "held until": ("\u25f7", GREY),
    "half true": ("\u00bd", YELLOW),
    "depends": ("\u25d0", YELLOW),
    "does not hold": ("\u2717", RED),
    "not a claim": ("\u2205", GREY),
}
HOLDS, INSIDE, UNTIL, HALF, DEPENDS, NOT, NO_CLAIM = VERDICT_STYLES


class Article(NamedTuple):
    """An article whose claims notebook 12 tests."""

    title: str
    date: datetime.date | None = None
    """The date of publication; None if the article does not state it."""
    not_before: datetime.date | None = None
    """The earliest possible date of an undated article: the date of the newest release it mentions. None if unknown."""
    url: str = ""

    @property
    def dated(self) -> str:
        """The date as text, such as "2023-11-07" or "undated, not before July 2024"."""
        if self.date:
            return f"{self.date:%Y-%m-%d}"
        return f"undated, not before {self.not_before:%B %Y}" if self.not_before else "undated"


class Claim(NamedTuple):
    """A claim of an article, in our words, and the notebook of the series that covers it."""

    code: str
    """The article's letter and a number, such as ``"A6"``."""
    title: str
    """A short title, which is the heading of the claim's experiment."""
    says: str
    """The claim in one to three sentences, with every hedge of the article, and code between backticks."""
    section: str
    """The article's heading above the claim, or our name for a part without a heading."""
    home: str
    """The notebook that covers the claim, such as ``"04_zero_grad"``."""
    condition: str = ""
    """The case or hedge to which the article limits the claim; "" if it is not limited."""
    in_code: bool = False
    """Whether only the article's program makes the claim, and not its text."""
    form: str = ""
    """"halves" for a claim of two halves, "no claim" for a statement that cannot be false, or "" for others."""
    until: str = ""
    """The version of PyTorch that made the claim false; "" if none did."""
    note: str = ""
    """A sentence to show after the facts, or "" if there is none."""

    @property
    def article(self) -> Article:
        """The article that makes the claim."""
        return ARTICLES[self.code[0]]

    @property
    def statement(self) -> str:
        """The claim as the table shows it, with its condition, if any."""
        condition = f" Condition: {self.condition}." if self.condition else ""
        return f"{'In its program: ' if self.in_code else ''}{self.says}{condition}"


_DATA = tomllib.loads(files("gradlab.course").joinpath("claims.toml").read_text(encoding="utf-8"))
ARTICLES = {letter: Article(**article) for letter, article in _DATA["articles"].items()}
CLAIMS = {code: Claim(code, **claim) for code, claim in _DATA["claims"].items()}
RELEASES: dict[str, datetime.date] = _DATA["releases"]
"""Release dates of the PyTorch versions in ``Claim.until``."""


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim, the verdict on it, and the facts that were tested."""

    claim: Claim
    kind: str
    """A key of ``VERDICT_STYLES``."""
    inside: Mapping[str, bool | None]
    """Whether each fact inside the claim's condition is true, or None if untested; these facts decide the verdict."""
    beyond: Mapping[str, bool | None] = field(default_factory=dict)
    """Whether each fact beyond the article is true, or None if untested; these facts do not affect the verdict."""

    @property
    def verdict(self) -> str:
        """The verdict as text, such as ``"held until 2.4"``."""
        return f"{self.kind} {self.claim.until}" if self.kind == UNTIL else self.kind

    @property
    def marked(self) -> str:
        """The verdict as text, preceded by its symbol."""
        return f"{VERDICT_STYLES[self.kind][0]} {self.verdict}"

    @property
    def evidence(self) -> str:
        """Text with the facts that decide the verdict, the claim's note, and the release that made the claim false."""
        texts = {
            UNTIL: "It was right when the article appeared; PyTorch {} ({:%B %Y}) changed it.",
            NOT: "It was true until PyTorch {} ({:%B %Y}), which came out before the article.",
        }
        until = self.claim.until
        history = texts[self.kind].format(until, RELEASES[until]) if until and self.kind in texts else ""
        return " ".join(part for part in (_marked(self.inside), self.claim.note, history) if part)

    @property
    def beyond_words(self) -> str:
        """The facts beyond the article as text, or "" if there are none."""
        return _marked(self.beyond)

    @property
    def columns(self) -> tuple[str, ...]:
        """The cells of the verdict's row in the table."""
        claim = self.claim
        return claim.code, claim.statement, self.marked, self.evidence, self.beyond_words, claim.home

    def __repr__(self) -> str:
        beyond = f"Beyond the article: {self.beyond_words}" if self.beyond else ""
        return " ".join(part for part in (f"{self.claim.code:3} {self.marked}.", self.evidence, beyond) if part)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        content = f"<b>{self.claim.code} {self.marked}.</b> {inline_html(self.evidence)}"
        if self.beyond:
            content += f"<br><i>Beyond the article:</i> {inline_html(self.beyond_words)}"
        return {"text/plain": repr(self), "text/html": html_box(content, VERDICT_STYLES[self.kind][1])}


_MARKS = {True: "\u2713", False: "\u2717", None: "Not tried here:"}


def _marked(facts: Mapping[str, bool | None]) -> str:
    """Return the facts as text, each after a mark for true, false or untested, and the untested facts last."""
    marked = [f"{_MARKS[fact]} {name}" for name, fact in sorted(facts.items(), key=lambda each: each[1] is None)]
    return " \u00b7 ".join(marked) + "." if marked else ""


_HEADS = ("claim", "what the article says", "verdict", "evidence", "beyond the article", "more in")
_BADGE = "border-radius:4px;padding:0 6px;display:inline-block"
_CELL = "text-align:left;padding:4px 10px;vertical-align:top;border-top:1px solid #D8D8D8"


class ClaimLog:
    """The verdicts recorded so far, which a notebook shows as a table."""

    def __init__(self, version: str = "", device: str = "cpu") -> None:
        """Create an empty log; ``try_others`` uses ``device``, and PyTorch's ``version`` is only displayed."""
        self.version, self.device = version, device
        self.failures: dict[str, str] = {}
        self._verdicts: dict[str, ClaimVerdict] = {}

    def record(
        self, code: str, facts: Mapping[str, bool | None], beyond: Mapping[str, bool | None] | None = None
    ) -> ClaimVerdict:
        """Derive the verdict on the claim ``code``, replace any earlier verdict on that claim, and return the new one.

        facts: whether each fact inside the condition is true, by description; None marks an untested fact and is
            ignored. If all are True, the verdict is "holds" or "holds inside its condition". If all are False, it is
            "does not hold", or "held until" a version newer than the article. Otherwise it is "half true" or "depends".
        beyond: facts outside the condition, which are shown but do not affect the verdict.

        Raises KeyError for an unknown code, and ValueError if no fact is True or False, unless the form is "no claim".
        """
        if code not in CLAIMS:
            raise KeyError(f"record: code must be one of A1 to {next(reversed(CLAIMS))}, got {code!r}")
        claim = CLAIMS[code]
        outcomes = set(facts.values()) - {None}
        if not outcomes and claim.form != "no claim":
            raise ValueError(f"record: facts must have at least one True or False for {code}, got {facts!r}")
        self._verdicts[code] = ClaimVerdict(claim, _kind(claim, outcomes), dict(facts), dict(beyond or {}))
        return self._verdicts[code]

    def try_others(self) -> None:
        """Test the claims that notebook 12 leaves out; record the verdicts, and store errors in ``failures``."""
        from .experiments import SUBJECTS

        for subject in SUBJECTS:
            try:
                with torch.device(self.device), RandomStream(0, cuda=self.device == "cuda"):
                    for code, facts, beyond in subject():
                        self.record(code, facts, beyond)
            except Exception as error:  # the other experiments may still work
                self.failures[subject.__name__] = f"{type(error).__name__}: {error}".splitlines()[0]

    def __getitem__(self, code: str) -> ClaimVerdict:
        return self._verdicts[code]

    def __iter__(self) -> Iterator[ClaimVerdict]:
        return (self._verdicts[code] for code in CLAIMS if code in self._verdicts)

    def __len__(self) -> int:
        return len(self._verdicts)

    @property
    def missing(self) -> list[str]:
        """The codes of the claims that have no verdict yet."""
        return [code for code in CLAIMS if code not in self._verdicts]

    @property
    def total(self) -> str:
        """The number of verdicts of each kind, as a line of text."""
        counts = Counter(verdict.kind for verdict in self)
        return f"{len(self)} claims: " + ", ".join(f"{kind} {counts[kind]}" for kind in VERDICT_STYLES)

    def markdown(self) -> str:
        """Return the table as Markdown, with the articles above it and the counts below."""
        lines = [f"# Fact check, PyTorch {self.version}, {self.device}", ""]
        for letter, article in ARTICLES.items():
            title = f"[{article.title}]({article.url})" if article.url else article.title
            lines.append(f"- Article {letter}: *{title}*, {article.dated}")
        lines += ["", f"| {' | '.join(_HEADS)} |", "|---" * len(_HEADS) + "|"]
        lines += [f"| {' | '.join(part.replace('|', chr(92) + '|') for part in each.columns)} |" for each in self]
        return "\n".join([*lines, "", self.total, ""])

    def json(self) -> str:
        """Return JSON of PyTorch's version, the device, the verdicts with facts, and the codes without a verdict."""
        claims = []
        for each in self:
            facts = {"inside": each.inside, "beyond": each.beyond, "evidence": each.evidence}
            claims.append({"code": each.claim.code, "verdict": each.verdict, **facts})
        contents = {"torch": self.version, "device": self.device, "claims": claims, "missing": self.missing}
        return json.dumps(contents, indent=2, ensure_ascii=False)

    def __repr__(self) -> str:
        return "\n".join([*(f"{verdict!r}  [{verdict.claim.home[:2]}]" for verdict in self), self.total])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        rows = []
        for verdict in self:
            code, says, marked, *facts, home = map(inline_html, verdict.columns)
            badge = f'<span style="border:2px solid {VERDICT_STYLES[verdict.kind][1]};{_BADGE}">{marked}</span>'
            rows.append([f"<b>{code}</b>", says, badge, *facts, link_html(lesson_address(home), home[:2])])
        table = html_table(_HEADS, rows, "font-size:14px;line-height:1.35", _CELL)
        articles = "<br>".join(
            f"Article {letter}: {link_html(article.url, article.title)}, {article.dated}"
            for letter, article in ARTICLES.items()
        )
        page = f"<div><p>{articles}</p>{table}<p><b>{html.escape(self.total)}</b></p></div>"
        return {"text/plain": repr(self), "text/html": page}


def _kind(claim: Claim, outcomes: set[bool | None]) -> str:
    if claim.form == "no claim":
        return NO_CLAIM
    if len(outcomes) == 2:
        return HALF if claim.form == "halves" else DEPENDS
    if True in outcomes:
        return INSIDE if claim.condition else HOLDS
    appeared = claim.article.date or claim.article.not_before
    return UNTIL if claim.until and appeared and appeared < RELEASES[claim.until] else NOT
