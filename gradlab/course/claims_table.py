"""The log of verdicts as a table: HTML whose columns sort, Markdown, and data for other programs."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from ..formatting import inline_html, lesson_address, link_html
from .claims import ARTICLES, KINDS, NOTEBOOK, VERDICT_SIGNS, Article, ClaimVerdict

if TYPE_CHECKING:
    from .claim_log import ClaimLog

_HEADS = ("claim", "what the article says", "verdict", "evidence", "beyond the article", "more in")
_SORTABLE = ("claim", "verdict", "more in")
# Pressing a heading sorts by it, and pressing it again turns the order round. The script is of no use where a page
# shows the table without running it: the rows then stay in the order of the articles.
_SORT = """<script>
(() => {
  const table = document.currentScript.previousElementSibling;
  const body = table.tBodies[0];
  for (const head of table.querySelectorAll("th[data-sort]")) {
    const button = document.createElement("button");
    button.textContent = head.textContent + " \u21c5";
    button.style = "font:inherit;cursor:pointer;background:none;border:0;padding:0;color:inherit";
    head.replaceChildren(button);
    button.onclick = () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      const key = (row) => Number(row.cells[head.cellIndex].dataset.key);
      const rows = [...body.rows].sort((a, b) => (up ? 1 : -1) * (key(a) - key(b)));
      for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...rows);
    };
  }
})();
</script>"""


def html_table(log: ClaimLog) -> str:
    """Return the table as HTML without a style sheet, so that it looks the same wherever it is read."""
    cell = "text-align:left;padding:4px 10px;vertical-align:top;border-top:1px solid #D8D8D8"
    heads = "".join(
        f'<th scope="col" style="text-align:left;padding:4px 10px"{" data-sort" * (head in _SORTABLE)}>{head}</th>'
        for head in _HEADS
    )
    rows = []
    for place, verdict in enumerate(log):
        claim = verdict.claim
        keys = {"claim": place, "verdict": KINDS.index(verdict.kind), "more in": int(claim.home[:2])}
        parts = (
            f'<a href="{html.escape(claim.anchor)}"><b>{claim.code}</b></a>',
            inline_html(_said(verdict)),
            _mark(verdict),
            inline_html(verdict.evidence),
            inline_html(verdict.beyond_words),
            link_html(lesson_address(claim.home), claim.home[:2]),
        )
        row = ""
        for head, part in zip(_HEADS, parts, strict=True):
            key = f' data-key="{keys[head]}"' if head in keys else ""
            row += f'<td style="{cell}"{key}>{part}</td>'
        rows.append(f"<tr>{row}</tr>")
    articles = "<br>".join(_article_html(letter, article) for letter, article in ARTICLES.items())
    table = (
        f'<table style="font-size:14px;line-height:1.35"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
    return f"<div><p>{articles}</p>{table}{_SORT}<p><b>{html.escape(log.total)}</b></p></div>"


def markdown_table(log: ClaimLog) -> str:
    """Return the table as Markdown, with the articles above it and the counts below."""
    where = ", ".join(word for word in (f"PyTorch {log.version}".strip(), log.device) if word)
    lines = [f"# Fact check, {where}", ""]
    for letter, article in ARTICLES.items():
        title = f"[{article.title}]({article.url})" if article.url else article.title
        lines.append(f"- Article {letter}: *{title}*, {article.dated}")
    lines += ["", f"| {' | '.join(_HEADS)} |", "|---" * len(_HEADS) + "|"]
    for verdict in log:
        mark = f"{VERDICT_SIGNS[verdict.kind]} {verdict.verdict}"
        parts = (verdict.claim.code, _said(verdict), mark, verdict.evidence, verdict.beyond_words, verdict.claim.home)
        lines.append(f"| {' | '.join(part.replace('|', chr(92) + '|') for part in parts)} |")
    return "\n".join([*lines, "", log.total, ""])


def as_data(log: ClaimLog) -> dict[str, Any]:
    """Return what the log holds in plain types."""
    return {
        "torch": log.version,
        "device": log.device,
        "articles": {
            letter: {"title": article.title, "date": article.dated, "url": article.url}
            for letter, article in ARTICLES.items()
        },
        "counts": log.counts,
        "claims": [
            {
                "code": verdict.claim.code,
                "title": verdict.claim.title,
                "section": verdict.claim.section,
                "says": verdict.claim.says,
                "in_code": verdict.claim.in_code,
                "condition": verdict.claim.condition,
                "verdict": verdict.verdict,
                "inside": dict(verdict.inside),
                "beyond": dict(verdict.beyond),
                "evidence": verdict.evidence,
                "experiment": f"{NOTEBOOK}.ipynb{verdict.claim.anchor}",
                "home": verdict.claim.home,
            }
            for verdict in log
        ],
        "missing": log.missing,
    }


def _said(verdict: ClaimVerdict) -> str:
    claim = verdict.claim
    condition = f" Condition: {claim.condition}." if claim.condition else ""
    return f"{'In its program: ' if claim.in_code else ''}{claim.says}{condition}"


def _mark(verdict: ClaimVerdict) -> str:
    from .figures.mosaic import VERDICT_STYLES

    look = VERDICT_STYLES[verdict.kind]
    return (
        f'<span style="background:{look.colour};color:{look.ink};border:1px solid #222222;border-radius:4px;'
        f'padding:0 6px;display:inline-block">{VERDICT_SIGNS[verdict.kind]}&nbsp;{verdict.verdict}</span>'
    )


def _article_html(letter: str, article: Article) -> str:
    return f"Article {letter}: {link_html(article.url, article.title)}, {article.dated}"
