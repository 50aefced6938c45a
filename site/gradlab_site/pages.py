"""The writer of the site's pages, which fills templates and makes pages obey the Content-Security-Policy."""

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
"""The Content-Security-Policy of every page except the search page, which also runs WebAssembly."""
_MAX_INLINE_LENGTH = 4000  # maximum length in base64 of a picture in a page; longer pictures become files
_KINDS = {"image/png": "png", "image/jpeg": "jpg", "image/svg+xml": "svg"}
_DATA = re.compile(r"data:(image/[\w+]+);base64,(.*)", re.DOTALL)

Resolve = Callable[[str], str | None]
"""Maps the address in a link to an address on the site or the web, or to None if the link is dead."""


@dataclass
class PageWriter:
    """Writes pages into a folder, and collects the pictures and inline styles that they share."""

    out: Path
    templates: Path
    shared: Mapping[str, Any]  # variables of every template
    written: dict[str, str] = field(default_factory=dict)  # name of a page -> its title, in the order of writing
    _rules: dict[str, str] = field(default_factory=dict)
    _sheets: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        loader = FileSystemLoader(self.templates)
        self._templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)

    def write(
        self, name: str, template: str, resolve: Resolve, *, title: str, policy: str = POLICY, **about: Any
    ) -> None:
        """Fill ``template`` with ``about`` and write it as page ``name``; ``resolve`` maps the addresses of links."""
        root = "../" * name.count("/")
        context = {**self.shared, "title": title, "policy": policy, "root": root, "page": name, **about}
        page = html_soup(self._templates.get_template(template).render(context))
        self._take_out(page, root)
        _set_links(page, resolve)
        for link in page.select("a.anchor-link"):
            link.string = ""  # site.css draws the link's symbol, so that the search index does not contain it
            link["aria-label"] = "Link to this heading"
        target = self.out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(str(page), encoding="utf-8")
        self.written[name] = title

    def styles(self) -> str:
        """Return the inline styles and style elements of all pages written so far, as one style sheet."""
        rules = "".join(f".{name} {{ {style} }}\n" for style, name in self._rules.items())
        return "\n".join([*self._sheets, rules])

    def picture(self, content: bytes, kind: str = "png") -> str:
        """Write a picture to a file unless the file exists; return the file's path relative to the root of the site."""
        name = f"images/{hashlib.sha256(content).hexdigest()[:16]}.{kind}"
        target = self.out / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        return name

    def _take_out(self, page: BeautifulSoup, root: str) -> None:
        """Move styles and large pictures out of the page; remove inline scripts, and the notes of questions."""
        for style in page.find_all("style"):
            self._sheets[style.get_text()] = None
            style.decompose()
        for script in page.find_all("script"):
            if not script.get("src"):
                script.decompose()  # every inline script belongs to a question, and gradlab.js replaces all of them
        for note in page.select(".gl-bet-note"):
            note.decompose()  # the note asks the reader to run the notebook, but questions work on the page
        for element in page.select("[style]"):
            declarations = str(element["style"]).strip()
            del element["style"]
            if ":" in declarations:
                add_class(element, self._rules.setdefault(declarations, f"style-{len(self._rules)}"))
        for recording in page.select("[data-src]"):
            recording["data-src"] = f"{root}{recording['data-src']}"
        for image in page.find_all("img"):
            if (match := _DATA.match(str(image.get("src", "")))) and len(match[2]) > _MAX_INLINE_LENGTH:
                content = base64.b64decode(match[2])
                image["src"] = root + self.picture(content, _KINDS[match[1]])
                if match[1] == "image/png":  # width and height are set, so that nothing moves when the picture loads
                    width, height = png_size(content)
                    shown_width = int(str(image.get("width") or width))
                    image["width"], image["height"] = str(shown_width), str(round(shown_width * height / width))
            image.attrs.update(loading="lazy", decoding="async")


def add_class(element: Tag, *names: str) -> None:
    """Add classes to an element."""
    element["class"] = " ".join([*filter(None, element.get_attribute_list("class")), *names])


def png_size(content: bytes) -> tuple[int, int]:
    """Return the width and height of a PNG in pixels."""
    return int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")


def _set_links(page: BeautifulSoup, resolve: Resolve) -> None:
    """Set the address of each link to another page by ``resolve``; replace each dead link with its text."""
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
    """Return ``text`` parsed as HTML, with the whitespace in code preserved, because it may be indentation."""
    return BeautifulSoup(text, "html.parser", preserve_whitespace_tags={"pre", "textarea", "code"})


def heading_text(heading: Tag) -> str:
    """Remove the anchor link of a heading, and return the heading's text."""
    for link in heading.find_all(class_="anchor-link"):
        link.extract()
    return heading.get_text().strip()
