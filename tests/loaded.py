"""The addresses that a page loads: those in its tags, styles and scripts, without links."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_NAMES = "www.w3.org"  # namespaces are names; nothing is loaded from there


class _Tags(HTMLParser):
    """Collects the addresses in attributes, styles and scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.code_tag = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.code_tag = tag if tag in ("style", "script") else ""
        for name, value in attrs:
            if name in ("src", "srcset", "poster", "action", "formaction") or (name == "href" and tag != "a"):
                self.addresses.append(value or "")
            elif name == "style" or name.startswith("on"):
                self.handle_code(value or "")

    def handle_endtag(self, tag: str) -> None:
        self.code_tag = ""

    def handle_data(self, data: str) -> None:
        if self.code_tag:
            self.handle_code(data)

    def handle_code(self, code: str) -> None:
        pairs = re.findall(r"((?:https?:|wss?:)//[^\s'\"`)]+)|url\(\s*['\"]?([^)'\"]+)", code)
        self.addresses += [address or url for address, url in pairs]


def loaded_addresses(page: str) -> list[str]:
    """Return the addresses that a page loads, without those of data in the page."""
    tags = _Tags()
    tags.feed(page)
    own_prefixes = ("data:", "#", "about:")
    return [
        address
        for address in tags.addresses
        if address and not address.startswith(own_prefixes) and _NAMES not in address
    ]
