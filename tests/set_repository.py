"""Write the address of a repository wherever one belongs, or take it out again.

``python tests/set_repository.py https://github.com/YOU/NAME TAG`` names the repository, and the tag or branch that
Binder, Colab and pip take; without TAG the one that stands there stays, and ``main`` if there is none. ``--clear``
takes all of it out. Each place that changes is listed.

The setting stands in ``gradlab/formatting.py``, because an installed gradlab has to know it and has no other file of
the repository. What follows from it stands between two marks, ``address: NAME`` and ``/address``, or is the set-up
cell of a notebook. Both texts of each place, with an address and without, are in this file. Binder's and Colab's links
are made for GitHub, so the address is one of GitHub's.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SETTING = "gradlab/formatting.py"
WHERE = ("pyproject.toml", "CITATION.cff", "*.md", "notebooks/*.md", "notebooks/*.ipynb", SETTING, ".github/**/*.yml")
ADDRESS = re.compile(r"https://github\.com/([A-Za-z0-9-]+/[A-Za-z0-9._-]+?)(?:\.git)?/?")
REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MARKED = re.compile(r"(^(?:<!--|#) address: ([\w-]+)(?: -->)?\n)(.*?)(?=^(?:<!--|#) /address)", re.M | re.S)

BINDER = "https://mybinder.org/v2/gh/{at}/{tag}?urlpath=lab/tree/notebooks/{notebook}"
COLAB = "https://colab.research.google.com/github/{at}/blob/{tag}/notebooks/{notebook}"

# For each mark: the text with an address, and the text without.
PLACES = {
    "setting": ('REPOSITORY = "{address}"\nTAG = "{tag}"\n', 'REPOSITORY = ""\nTAG = ""\n'),
    "links": (f"\n[Open on Binder]({BINDER}) · [Open in Colab]({COLAB})\n\n", ""),
    "badges": (
        f"\n[![Open on Binder](https://mybinder.org/badge_logo.svg)]({BINDER})\n"
        f"[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({COLAB})\n\n",
        "",
    ),
    "without-installing": (
        f"""
You can also run it without installing anything: [Binder]({BINDER})
opens the whole lab in your browser (give it a few minutes the first time), and
[Colab]({COLAB}) adds a GPU.
In a notebook of your own on Colab, run this first; it keeps the PyTorch and the widgets that Colab ships:

```
!pip install -q --no-deps "torch-gradlab @ git+{{address}}@{{tag}}" anywidget psygnal
```

""",
        "",
    ),
    "install": (
        """
For [your own loop](#use-it-on-your-own-loop), without the notebooks, install the release. The distribution is called
torch-gradlab, and you import `gradlab`:

```bash
pip install "torch-gradlab @ git+{address}@{tag}"
```

""",
        """
For [your own loop](#use-it-on-your-own-loop), without the notebooks, install the clone. The distribution is called
torch-gradlab, and you import `gradlab`:

```bash
pip install .
```

""",
    ),
    "tell-us": ("\nIf you try another place, please [tell us]({address}/issues) how it went.\n\n", ""),
    "report": (
        "\nPlease report it privately, with [a security advisory]({address}/security/advisories/new).\n\n",
        "\nPlease report it privately, to whoever gave you this copy.\n\n",
    ),
    "nbgitpuller": (
        "\n```\nhttps://YOUR-HUB/hub/user-redirect/git-pull?repo={address}&branch=main"
        "&urlpath=lab/tree/{name}/notebooks/00_start_here.ipynb\n```\n\n",
        "\n```\nhttps://YOUR-HUB/hub/user-redirect/git-pull?repo=https://github.com/YOU/NAME&branch=main"
        "&urlpath=lab/tree/NAME/notebooks/00_start_here.ipynb\n```\n\n",
    ),
    "urls": (
        '[project.urls]\nHomepage = "{address}"\nChangelog = "{address}/blob/{tag}/CHANGELOG.md"\n'
        'Issues = "{address}/issues"\n',
        "",
    ),
    "citation": ("repository-code: {address}\n", ""),
    "security-link": (
        "contact_links:\n  - name: A security problem\n    url: {address}/security/advisories/new\n"
        "    about: Please report it privately. SECURITY.md says what counts as one.\n",
        "",
    ),
}

SET_UP = """\
# Finds gradlab in the clone around this notebook, or where it is installed.{comment}
import {modules}sys
from pathlib import Path

for clone in (Path.cwd().parent, Path.cwd().parent / "gradlab", Path.cwd() / "gradlab"):
    if (clone / "gradlab" / "course").is_dir():
        sys.path.insert(0, str(clone))
        break
{install}try:
    from gradlab import check_torch
except ImportError:
    raise ImportError("No gradlab is here, or another package of that name: open this notebook in the folder "
                      "notebooks of a clone, or run %pip install PATH_OF_A_CLONE in a cell, restart the kernel, "
                      "and run this cell again.") from None

check_torch()  # prints one sentence if PyTorch is missing or too old"""
INSTALL = """\
if importlib.util.find_spec("gradlab") is None:  # --no-deps: the PyTorch and the widgets that are here stay as they are
    needed = ["torch-gradlab @ git+{address}@{tag}", "anywidget", "psygnal"]
    print("Installing", *needed)
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", *needed], check=True)
    importlib.invalidate_caches()
"""


def setting(root: Path = ROOT) -> tuple[str, str]:
    """Return the address and the tag or branch; ``("", "")`` as long as there is none."""
    text = (root / SETTING).read_text(encoding="utf-8")
    address, tag = re.findall(r'^(?:REPOSITORY|TAG) = "(.*)"', text, re.M)
    return address, tag


def set_up_cell(address: str, tag: str) -> str:
    """Return the set-up cell of all notebooks."""
    if not address:
        return SET_UP.format(comment="", modules="", install="")
    return SET_UP.format(
        comment=" If there is none, installs its release.",
        modules="importlib.util, subprocess, ",
        install=INSTALL.format(address=address, tag=tag),
    )


def clear(root: Path = ROOT) -> list[str]:
    """Take the address out wherever it stands; return the places that changed."""
    return _write("", "", root)


def rewrite(address: str, tag: str = "", root: Path = ROOT) -> list[str]:
    """Write the address, and the tag or branch, wherever they belong; return the places that changed.

    Raises ValueError, before anything is written, for an address or a tag that is none.
    """
    found = ADDRESS.fullmatch(address)
    if found is None:
        raise ValueError(f"the address must look like https://github.com/OWNER/NAME, got {address!r}")
    if tag and REF.fullmatch(tag) is None:
        raise ValueError(f"the tag or branch must be of letters, digits, '.', '_' and '-', got {tag!r}")
    return _write(f"https://github.com/{found[1]}", tag or setting(root)[1] or "main", root)


def _write(address: str, tag: str, root: Path) -> list[str]:
    places = []
    for path in (path for pattern in WHERE for path in sorted(root.glob(pattern))):
        changed = []

        def text_of(name: str, path: Path = path) -> str:
            notebook = path.name if path.suffix == ".ipynb" else "00_start_here.ipynb"
            at = address.removeprefix("https://github.com/")
            fields = {"address": address, "tag": tag, "at": at, "name": at.partition("/")[2], "notebook": notebook}
            return PLACES[name][0 if address else 1].format(**fields)

        before = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            after = _in_notebook(before, text_of, set_up_cell(address, tag), changed)
        else:
            after = _between_marks(before, text_of, changed)
        if after != before:
            path.write_text(after, encoding="utf-8")
        places += [f"{path.relative_to(root).as_posix()}: {name}" for name in changed]
    return places


def _between_marks(text: str, text_of: Callable[[str], str], changed: list[str]) -> str:
    def new(place: re.Match[str]) -> str:
        written = text_of(place[2])
        if written != place[3]:
            changed.append(place[2])
        return place[1] + written

    return MARKED.sub(new, text)


def _in_notebook(text: str, text_of: Callable[[str], str], set_up: str, changed: list[str]) -> str:
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        before = "".join(cell["source"])
        if cell["id"] == "setup":
            after = set_up
            changed += ["set-up cell"] * (after != before)
        else:
            after = _between_marks(before, text_of, changed) if cell["cell_type"] == "markdown" else before
        if after != before:
            cell["source"] = after.splitlines(keepends=True)
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"  # as nbformat writes it


def marks(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Yield the file and the name of each place between marks."""
    for path in (path for pattern in WHERE for path in sorted(root.glob(pattern))):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
        for place in MARKED.finditer(text):
            yield path.relative_to(root).as_posix(), place[2]


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(
            "which address? python tests/set_repository.py https://github.com/OWNER/NAME [TAG_OR_BRANCH], or --clear"
        )
    try:
        print(*(clear() if sys.argv[1:] == ["--clear"] else rewrite(*sys.argv[1:])), sep="\n")
    except ValueError as error:
        sys.exit(str(error))
