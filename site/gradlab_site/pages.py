"""A page as it is written: what every page shares around it, and nothing in it that a strict policy would refuse."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup, Tag
from jinja2 import Environment, FileSystemLoader, StrictUndefined

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'"
)
"""The Content-Security-Policy of every page but that of the search, which also runs WebAssembly."""
_WHOLE = 4000  # letters of a picture as base64 from which it becomes a file of its own
_KINDS = {"image/png": "png", "image/jpeg": "jpg", "image/svg+xml": "svg"}
_DATA = re.compile(r"data:(image/[\w+]+);base64,(.*)", re.DOTALL)

Resolve = Callable[[str], str | None]
"""From the address of a link to the one on the site, or None for a link that leads nowhere."""


@dataclass
class PageWriter:
    """Writes pages into a folder, and gathers what they share: pictures, and styles that were written in elements."""

    out: Path
    templates: Path
    shared: Mapping[str, Any]
    """What every template may use."""
    written: dict[str, str] = field(default_factory=dict)
    """Page to its title, in the order in which they were written."""
    _rules: dict[str, str] = field(default_factory=dict)
    _sheets: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        loader = FileSystemLoader(self.templates)
        self._templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)

    def write(
        self, name: str, template: str, resolve: Resolve, *, title: str, policy: str = POLICY, **about: Any
    ) -> None:
        """Write a page: ``about`` is for its template, ``resolve`` for the links in it."""
        root = "../" * name.count("/")
        given = {**self.shared, "title": title, "policy": policy, "root": root, "page": name, **about}
        page = html_soup(self._templates.get_template(template).render(given))
        self._take_out(page, root)
        _set_links(page, resolve)
        for link in page.select(
            "a.anchor-link"
        ):  # its sign is in site.css, or it were a word of the heading in the search
            link.string = ""
            link["aria-label"] = "Link to this heading"
        target = self.out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(str(page), encoding="utf-8")
        self.written[name] = title

    def styles(self) -> str:
        """Return the styles that outputs had in their elements, as a sheet: they are the same on every page."""
        rules = "".join(f".{name} {{ {style} }}\n" for style, name in self._rules.items())
        return "\n".join([*self._sheets, rules])

    def picture(self, content: bytes, kind: str = "png") -> str:
        """Keep a picture as a file; return its address from the top of the site. The same one is kept once."""
        name = f"images/{hashlib.sha256(content).hexdigest()[:16]}.{kind}"
        target = self.out / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        return name

    def _take_out(self, page: BeautifulSoup, root: str) -> None:
        """Move styles, scripts of outputs and large pictures out of the page."""
        for style in page.find_all("style"):
            self._sheets[style.get_text()] = None
            style.decompose()
        for script in page.find_all("script"):
            if not script.get("src"):
                script.decompose()  # that of a question: the page's own front end serves all of them
        for note in page.select(".gl-bet-note"):
            note.decompose()  # it sends a reader without a kernel to the notebook: here the page has the buttons
        for element in page.select("[style]"):
            look = str(element["style"]).strip()
            del element["style"]
            if ":" in look:
                name = self._rules.setdefault(look, f"style-{len(self._rules)}")
                add_class(element, name)
        for place in page.select("[data-src]"):
            place["data-src"] = f"{root}{place['data-src']}"
        for image in page.find_all("img"):
            if (found := _DATA.match(str(image.get("src", "")))) and len(found[2]) > _WHOLE:
                content = base64.b64decode(found[2])
                image["src"] = root + self.picture(content, _KINDS[found[1]])
                if found[1] == "image/png":
                    _reserve(image, content)
            image["loading"] = "lazy"
            image["decoding"] = "async"


def add_class(element: Tag, *names: str) -> None:
    """Give an element more classes."""
    element["class"] = " ".join([*filter(None, element.get_attribute_list("class")), *names])


def png_size(content: bytes) -> tuple[int, int]:
    """Return width and height of a PNG in pixels."""
    return int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")


def _reserve(image: Tag, content: bytes) -> None:
    """Say how large a picture will be, so that nothing moves when it comes."""
    width, height = png_size(content)
    shown = int(str(image.get("width") or width))
    image["width"], image["height"] = str(shown), str(round(shown * height / width))


def _set_links(page: BeautifulSoup, resolve: Resolve) -> None:
    """Have every link of the text lead to a page of the site or to the web; the words of all others stay."""
    for link in page.find_all("a", href=True):
        address = str(link["href"])
        if address.startswith("#") or link.get("data-kept") is not None:
            del link["data-kept"]
            continue
        target = resolve(address)
        if target is None:
            link.unwrap()
            continue
        link["href"] = target
        if re.match(r"https?:", target):
            link["rel"] = "noopener"


def html_soup(text: str) -> BeautifulSoup:
    """Parse a piece of HTML; in code, text that is only spaces stays as it is: it is the indentation."""
    return BeautifulSoup(text, "html.parser", preserve_whitespace_tags={"pre", "textarea", "code"})


def heading_words(heading: Tag) -> str:
    """Return the words of a heading; the sign of its link is taken out of it."""
    for link in heading.find_all(class_="anchor-link"):
        link.extract()
    return heading.get_text().strip()
