"""A log of verdicts on the claims of notebook 12: which was judged how, on what evidence."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .claims import ARTICLES, CLAIMS, DEPENDS, HOLDS, INSIDE, KINDS, NOT, RELEASES, UNTIL, Claim, ClaimVerdict
from .claims_table import as_data, html_table, markdown_table


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
        return markdown_table(self)

    def json(self) -> str:
        """Return everything as JSON: the versions, the articles, and each claim with its verdict and facts."""
        return json.dumps(as_data(self), indent=2, ensure_ascii=False)

    def __repr__(self) -> str:
        return "\n".join([*(f"{verdict!r}  [{verdict.claim.home[:2]}]" for verdict in self), self.total])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
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
