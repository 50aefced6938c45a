"""Point badges, set-up cells, install lines and links to lessons at a copy of the repository, or at another release.

``python tests/set_repository.py https://github.com/YOU/NAME main`` names the branch or tag that Binder, Colab and pip
take; without it the one that stands there stays. Address and tag are kept in pyproject.toml, under ``[project.urls]``;
everything else that names them is rewritten from there. Binder's and Colab's links are made for GitHub, so the address
is one of GitHub's.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
WHERE = (
    "pyproject.toml",
    "CITATION.cff",
    "*.md",
    "notebooks/*.md",
    "notebooks/*.ipynb",
    "gradlab/formatting.py",
    ".github/**/*.yml",
)
ADDRESS = re.compile(r"https://github\.com/([A-Za-z0-9-]+/[A-Za-z0-9._-]+?)(?:\.git)?/?")
REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def urls(root: Path = ROOT) -> dict[str, str]:
    """Return the addresses in pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]


def owner_and_name(root: Path = ROOT) -> str:
    """Return what pyproject.toml says: ``"owner/name"``."""
    return urls(root)["Homepage"].removeprefix("https://github.com/")


def tag(root: Path = ROOT) -> str:
    """Return what pyproject.toml says: the tag or branch that is installed and opened, such as ``"v0.2.0"``."""
    return urls(root)["Changelog"].split("/")[-2]


def rewrite(address: str, ref: str = "", root: Path = ROOT) -> list[Path]:
    """Write the address, and the tag or branch, wherever the old ones stand; return the files that changed.

    Raises ValueError, before anything is written, for an address or a tag that is none.
    """
    found = ADDRESS.fullmatch(address)
    if found is None:
        raise ValueError(f"the address must look like https://github.com/OWNER/NAME, got {address!r}")
    if ref and REF.fullmatch(ref) is None:
        raise ValueError(f"the tag or branch must be of letters, digits, '.', '_' and '-', got {ref!r}")
    old = re.escape(owner_and_name(root)), re.escape(tag(root))
    places = re.compile(
        r"(?P<host>(?:github\.com|/v2/gh|colab\.research\.google\.com/github)/)"
        rf"{old[0]}(?![\w.-])(?:(?P<way>/blob/|/tree/|/|@){old[1]}(?![\w-]|\.\w))?"
    )

    def new(place: re.Match[str]) -> str:
        there = f"{place['host']}{found[1]}"
        return f"{there}{place['way']}{ref or tag(root)}" if place["way"] else there

    written = {}
    for path in (path for pattern in WHERE for path in sorted(root.glob(pattern))):
        text = path.read_text(encoding="utf-8")
        if (changed := places.sub(new, text)) != text:
            written[path] = changed
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    return list(written)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("which address? python tests/set_repository.py https://github.com/OWNER/NAME [TAG_OR_BRANCH]")
    try:
        print(*rewrite(*sys.argv[1:]), sep="\n")
    except ValueError as error:
        sys.exit(str(error))
