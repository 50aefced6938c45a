"""The claims that notebook 12 tries, the verdict on each, and the log of verdicts as a table, Markdown or JSON."""

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
from urllib.parse import quote

from ..drawing import colour
from ..formatting import html_box, html_table, inline_html, lesson_address, link_html

FRESH, INK, OPTIMIZER, REUSED = map(colour, ("fresh", "ink", "optimizer", "reused"))

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
    NOT: VerdictStyle("\u2717", REUSED, "#FFFFFF", REUSED),
}


class Article(NamedTuple):
    """An article that makes claims."""

    title: str
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


_HEADS = ("claim", "what the article says", "verdict", "evidence", "beyond the article", "more in")
_CELL = "text-align:left;padding:4px 10px;vertical-align:top;border-top:1px solid #D8D8D8"


class ClaimLog:
    """The verdicts so far; a notebook shows it as a table."""

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
            or "holds inside its condition". None true: "does not hold". Some: "depends". None: it was not tried.
        beyond: facts outside of the condition; they are shown and do not decide.
        until: the version of PyTorch with which the claim stopped being true. If none of the facts is true any more,
            and the article is older than that version, the verdict is "held until" this version.

        Raises KeyError for an unknown code, ValueError for facts of which none is known, or for an unknown version.
        """
        claim = _known(code)
        inside = _as_facts(facts)
        known = set(inside.values()) - {None}
        if not known:
            raise ValueError(f"record: {code} needs at least one fact that is True or False, got {facts!r}")
        if until and until not in RELEASES:
            raise ValueError(f"record: until must be one of {', '.join(RELEASES)}, got {until!r}")
        kind = DEPENDS if len(known) == 2 else HOLDS if True in known else NOT
        if kind == HOLDS and claim.condition:
            kind = INSIDE
        appeared = claim.article.date or claim.article.not_before
        if kind != NOT:
            until = ""
        elif until and appeared and appeared < RELEASES[until]:
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
    def missing(self) -> list[str]:
        """Codes of the claims that are not judged yet."""
        return [code for code in CLAIMS if code not in self._verdicts]

    @property
    def total(self) -> str:
        """All counts in one line."""
        counts = Counter(verdict.kind for verdict in self)
        return f"{len(self)} claims: " + ", ".join(f"{kind} {counts[kind]}" for kind in KINDS)

    def markdown(self) -> str:
        """Return the table as Markdown, with the articles above it and the counts below."""
        where = ", ".join(word for word in (f"PyTorch {self.version}".strip(), self.device) if word)
        lines = [f"# Fact check, {where}", ""]
        for letter, article in ARTICLES.items():
            title = f"[{article.title}]({article.url})" if article.url else article.title
            lines.append(f"- Article {letter}: *{title}*, {article.dated}")
        lines += ["", f"| {' | '.join(_HEADS)} |", "|---" * len(_HEADS) + "|"]
        for verdict in self:
            claim = verdict.claim
            parts = (claim.code, claim.statement, verdict.marked, verdict.evidence, verdict.beyond_words, claim.home)
            lines.append(f"| {' | '.join(part.replace('|', chr(92) + '|') for part in parts)} |")
        return "\n".join([*lines, "", self.total, ""])

    def json(self) -> str:
        """Return the versions, and the verdict on each claim with its facts, as JSON."""
        claims = [
            {
                "code": verdict.claim.code,
                "verdict": verdict.verdict,
                "inside": dict(verdict.inside),
                "beyond": dict(verdict.beyond),
                "evidence": verdict.evidence,
            }
            for verdict in self
        ]
        contents = {"torch": self.version, "device": self.device, "claims": claims, "missing": self.missing}
        return json.dumps(contents, indent=2, ensure_ascii=False)

    def __repr__(self) -> str:
        return "\n".join([*(f"{verdict!r}  [{verdict.claim.home[:2]}]" for verdict in self), self.total])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._html()}

    def _html(self) -> str:
        """Return the table without a style sheet, so that it looks the same wherever it is read."""
        # Pressing a heading sorts by it. Where the script does not run, the rows stay in the order of the articles.
        script = files("gradlab.course").joinpath("claim_table.js").read_text(encoding="utf-8")
        sortable = ("claim", "verdict", "more in")
        heads = [f"<span data-sorts>{head}</span>" if head in sortable else head for head in _HEADS]
        rows = []
        for place, verdict in enumerate(self):
            claim = verdict.claim
            home = link_html(lesson_address(claim.home), claim.home[:2])
            rows.append(
                [
                    _sorted_by(place, f'<a href="{html.escape(claim.anchor)}"><b>{claim.code}</b></a>'),
                    inline_html(claim.statement),
                    _sorted_by(KINDS.index(verdict.kind), verdict.badge),
                    inline_html(verdict.evidence),
                    inline_html(verdict.beyond_words),
                    _sorted_by(int(claim.home[:2]), home),
                ]
            )
        table = html_table(heads, rows, "font-size:14px;line-height:1.35", _CELL)
        articles = "<br>".join(
            f"Article {letter}: {link_html(article.url, article.title)}, {article.dated}"
            for letter, article in ARTICLES.items()
        )
        return f"<div><p>{articles}</p>{table}<script>\n{script}</script><p><b>{html.escape(self.total)}</b></p></div>"


def _known(code: str) -> Claim:
    if code not in CLAIMS:
        last = next(reversed(CLAIMS))
        raise KeyError(f"record: code must be one of A1 to {last}, got {code!r}")
    return CLAIMS[code]


def _as_facts(facts: object) -> dict[str, bool | None]:
    given = facts if isinstance(facts, Mapping) else {"": facts}
    return {name: None if fact is None else bool(fact) for name, fact in given.items()}


def _sorted_by(key: int, cell: str) -> str:
    return f'<span data-key="{key}">{cell}</span>'
