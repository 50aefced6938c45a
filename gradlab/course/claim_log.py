"""A log of verdicts on the claims of notebook 12, and the log as a table: HTML whose columns sort, Markdown, JSON."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from ..formatting import html_table, inline_html, lesson_address, link_html
from .claims import ARTICLES, CLAIMS, DEPENDS, HOLDS, INSIDE, KINDS, NOT, RELEASES, UNTIL, Claim, ClaimVerdict

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
