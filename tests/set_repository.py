"""Point badges, set-up cells and install lines at a copy: ``python tests/set_repository.py https://github.com/YOU/NAME``.

The address is kept in pyproject.toml, under ``[project.urls]``; everything else that names it is rewritten from there.
Binder's and Colab's links are made for GitHub, so the address is one of GitHub's.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
WHERE = ("pyproject.toml", "README.md", "CITATION.cff", "notebooks/README.md", "notebooks/*.ipynb")
ADDRESS = re.compile(r"https://github\.com/([A-Za-z0-9-]+/[A-Za-z0-9._-]+?)(?:\.git)?/?")


def owner_and_name(root: Path = ROOT) -> str:
    """Return what pyproject.toml says: ``"owner/name"``."""
    address = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Homepage"]
    return address.removeprefix("https://github.com/")


def rewrite(address: str, root: Path = ROOT) -> list[Path]:
    """Write the address wherever the old one stands; return the files that changed.

    Raises ValueError, before anything is written, for an address that is none.
    """
    found = ADDRESS.fullmatch(address)
    if found is None:
        raise ValueError(f"the address must look like https://github.com/OWNER/NAME, got {address!r}")
    old, new = owner_and_name(root), found[1]
    places = re.compile(rf"((?:github\.com|/v2/gh|colab\.research\.google\.com/github)/){re.escape(old)}(?![\w.-])")
    changed = []
    for path in (path for pattern in WHERE for path in sorted(root.glob(pattern))):
        text = path.read_text(encoding="utf-8")
        written = places.sub(rf"\g<1>{new}", text)
        if written != text:
            path.write_text(written, encoding="utf-8")
            changed.append(path)
    return changed


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("which address? python tests/set_repository.py https://github.com/OWNER/NAME")
    try:
        print(*rewrite(sys.argv[1]), sep="\n")
    except ValueError as error:
        sys.exit(str(error))
