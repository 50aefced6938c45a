"""The book of verdicts of notebook 12: which claim was judged how, and on what evidence."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .claimed import ARTICLES, CLAIMS, Claim
from .prose import prose

HOLDS, SINCE, DEPENDS, NOT = "holds", "holds since", "depends", "does not hold"
KINDS = (HOLDS, SINCE, DEPENDS, NOT)


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict and what it rests on."""

    claim: Claim
    kind: str
    """``"holds"``, ``"holds since"``, ``"depends"`` or ``"does not hold"``."""
    evidence: str
    since: str = ""
    """With "holds since": the first version of PyTorch in which it does."""

    @property
    def verdict(self) -> str:
        """The verdict in words: ``"holds since 1.7"``."""
        return f"{self.kind} {self.since}".rstrip()

    def __repr__(self) -> str:
        return f"{self.claim.code:3} {_sign(self.kind)} {self.verdict}. {self.evidence}".rstrip()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from .course.exercises.verdict import html_box
        from .views.mosaic import LOOKS

        head = f"<b>{self.claim.code} {_sign(self.kind)} {self.verdict}.</b> "
        return {"text/plain": repr(self), "text/html": html_box(head + prose(self.evidence), LOOKS[self.kind].edge)}


class Book:
    """The verdicts so far; a notebook shows it as a table of all claims, and ``mosaic()`` as a picture."""

    def __init__(self, version: str = "", device: str = "") -> None:
        """Open a book for this version of PyTorch on this device; both are only told."""
        self.version, self.device = version, device
        self._judged: dict[str, Judged] = {}

    def judge(self, code: str, facts: Any, evidence: str = "", since: str = "") -> Judged:
        """Turn facts into a verdict, write it down and return it; who judges again writes over it.

        A single fact is true ("holds") or not ("does not hold"). Facts by case: true in all, "holds"; in none, "does
        not hold"; in some, "depends", and the evidence says where. A case that is None was not judged, because
        something is missing here. ``since`` is the first version that has what the claim is about. Raises KeyError
        for a code that is none, ValueError for facts of which none is known.
        """
        if code not in CLAIMS:
            raise KeyError(f"judge: code must be one of A1 to D5, got {code!r}")
        cases = facts if isinstance(facts, Mapping) else {"": facts}
        known = {name: bool(fact) for name, fact in cases.items() if fact is not None}
        if not known:
            raise ValueError(f"judge: {code} needs at least one fact that is True or False, got {facts!r}")
        kind = HOLDS if all(known.values()) else DEPENDS if any(known.values()) else NOT
        if kind == HOLDS and since and _at_least(self.version, since):
            kind = SINCE
        parts = []
        for word, good in (("Yes", True), ("No", False)):
            names = [name for name, fact in known.items() if name and fact is good]
            parts += [f"{word}: {' · '.join(names)}."] if names else []
        missing = [name for name, fact in cases.items() if fact is None]
        parts += [f"{evidence[0].upper()}{evidence[1:]}."] if evidence else []
        parts += [f"Not judged here: {' · '.join(missing)}."] if missing else []
        judged = Judged(CLAIMS[code], kind, " ".join(parts), since if kind == SINCE else "")
        self._judged[code] = judged
        return judged

    def __getitem__(self, code: str) -> Judged:
        return self._judged[code]

    def __iter__(self) -> Iterator[Judged]:
        return (self._judged[code] for code in CLAIMS if code in self._judged)

    def __len__(self) -> int:
        return len(self._judged)

    @property
    def counts(self) -> dict[str, int]:
        """How many claims got each kind of verdict."""
        counted = Counter(judged.kind for judged in self)
        return {kind: counted[kind] for kind in KINDS}

    @property
    def missing(self) -> list[str]:
        """Codes of the claims that are not judged yet."""
        return [code for code in CLAIMS if code not in self._judged]

    def mosaic(self) -> Picture:
        """Draw a tile for each claim."""
        from .views.mosaic import mosaic_figure

        rows = {
            f"{letter} {words}": [(j.claim.code, j.kind, j.since) for j in self if j.claim.code[0] == letter]
            for letter, words in ARTICLES.items()
        }
        where = ", ".join(word for word in (f"PyTorch {self.version}".strip(), self.device) if word)
        counts = self.counts
        words = ", ".join(f"{kind} {counts[kind]}" for kind in KINDS)
        return Picture(mosaic_figure(rows, counts, f"{len(self)} claims, {where}"), f"{len(self)} claims: {words}")

    def __repr__(self) -> str:
        lines = []
        for judged in self:
            lines.append(f"{judged!r}  [{judged.claim.home[:2]}]")
        counts = ", ".join(f"{kind} {count}" for kind, count in self.counts.items())
        return "\n".join([*lines, f"{len(self)} claims: {counts}"])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": _page(self)}


@dataclass(frozen=True)
class Picture:
    """A picture with the words that stand for it where it is not seen."""

    png: bytes
    words: str

    def __repr__(self) -> str:
        return self.words

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return {"text/plain": self.words, "image/png": self.png}, {"image/png": {"width": 980}}


def _sign(kind: str) -> str:
    return {HOLDS: "\u2713", SINCE: "\u2713", DEPENDS: "\u25d0", NOT: "\u2717"}[kind]


def _at_least(version: str, since: str) -> bool:
    """Whether a version such as "2.13.0+cpu" is not older than one such as "1.7"."""
    mine, theirs = ([int(part) for part in re.findall(r"\d+", text.partition("+")[0])[:2]] for text in (version, since))
    return mine >= theirs


def _page(book: Book) -> str:
    """Return the table as HTML: no style sheet, so that it looks the same wherever it is read."""
    from .views.mosaic import LOOKS

    cell = "text-align:left;padding:4px 10px;vertical-align:top;border-top:1px solid #D8D8D8"
    heads = "".join(
        f'<th scope="col" style="text-align:left;padding:4px 10px">{head}</th>'
        for head in ("claim", "what is said", "verdict here", "evidence", "more in")
    )
    rows, letter = [], ""
    for judged in book:
        claim, look = judged.claim, LOOKS[judged.kind]
        if claim.code[0] != letter:
            letter = claim.code[0]
            words = f"Article {letter}: {ARTICLES[letter]}"
            rows.append(f'<tr><th colspan="5" scope="rowgroup" style="{cell};padding-top:14px">{words}</th></tr>')
        mark = (
            f'<span style="background:{look.colour};color:{look.ink};border:1px solid #222222;border-radius:4px;'
            f'padding:0 6px;white-space:nowrap">{_sign(judged.kind)} {judged.verdict}</span>'
        )
        link = f'<a href="{claim.home}.ipynb">{claim.home[:2]}</a>'
        parts = (f"<b>{claim.code}</b>", prose(claim.text), mark, prose(judged.evidence), link)
        rows.append("<tr>" + "".join(f'<td style="{cell}">{part}</td>' for part in parts) + "</tr>")
    counts = " · ".join(f"{html.escape(kind)}: {count}" for kind, count in book.counts.items())
    total = f'<tr><td colspan="5" style="{cell}"><b>{len(book)} claims</b> · {counts}</td></tr>'
    return f'<table style="font-size:14px;line-height:1.35"><tr>{heads}</tr>{"".join(rows)}{total}</table>'
