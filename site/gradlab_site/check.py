"""Checks of the written site for dead links, files that are too large, and content that the security policy blocks."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from bs4 import BeautifulSoup, Tag

from .pages import html_soup

MAX_REPLAY_BYTES = 500_000  # maximum size of a recording, compressed
MAX_PAGE_BYTES = 3_000_000  # maximum compressed size of a page with the files that it loads, without recordings
_LOADS = {"img": "src", "script": "src", "link": "href"}


def problems_of(site: Path) -> list[str]:
    """Return the problems of the site in the folder ``site``, one sentence each."""
    pages = {path: html_soup(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    ids = {path: {str(each["id"]) for each in page.find_all(id=True)} for path, page in pages.items()}
    problems: list[str] = []
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        problems += [f"{name}: {problem}" for problem in _link_problems(path, page, ids)]
        problems += [f"{name}: {problem}" for problem in _policy_problems(page)]
        size = page_size(path, page)
        if size > MAX_PAGE_BYTES:
            problems.append(f"{name}: {size:,} bytes over the wire, more than {MAX_PAGE_BYTES:,}")
    for path in sorted(site.glob("replays/*.js")):
        if (size := wire_size(path)) > MAX_REPLAY_BYTES:
            problems.append(f"{path.name}: {size:,} bytes over the wire, more than {MAX_REPLAY_BYTES:,}")
    return problems


def _link_problems(path: Path, page: BeautifulSoup, ids: dict[Path, set[str]]) -> Iterator[str]:
    for link in page.find_all("a", href=True):
        address, _, fragment = str(link["href"]).partition("#")
        if re.match(r"(https?|mailto):", address):
            continue
        target = (path.parent / unquote(address.partition("?")[0])).resolve() if address else path
        if not target.is_file():
            yield f"the link to {address} leads nowhere"
        elif fragment and target in ids and unquote(fragment.split("&")[0]) not in ids[target]:
            yield f"the link to {address}#{fragment} leads to no element there"


def _policy_problems(page: BeautifulSoup) -> Iterator[str]:
    for tag in page.find_all(True):
        assert isinstance(tag, Tag)
        if tag.get("style") is not None or tag.name == "style":
            yield f"<{tag.name}> has an inline style, which the policy refuses"
        if any(name.startswith("on") for name in tag.attrs):
            yield f"<{tag.name}> has an inline event handler, which the policy refuses"
        if tag.name == "script" and not tag.get("src"):
            yield "the page has an inline script, which the policy refuses"
        address = str(tag.get(_LOADS.get(tag.name, ""), ""))
        if re.match(r"(https?:)?//", address):
            yield f"the page loads {address} from another host"


def page_size(path: Path, page: BeautifulSoup) -> int:
    """Return the number of bytes sent for a page and the files that it loads, without recordings."""
    files = {path}
    for name, attribute in _LOADS.items():
        for tag in page.find_all(name):
            address = str(tag.get(attribute) or "")
            if address and not re.match(r"(data|https?):", address):
                files.add((path.parent / address).resolve())
    return sum(wire_size(each) for each in files if each.is_file())


def wire_size(path: Path) -> int:
    """Return the number of bytes that a server sends for a file; text is compressed."""
    content = path.read_bytes()
    return len(gzip.compress(content, 6)) if path.suffix in (".html", ".css", ".js", ".svg", ".json") else len(content)
