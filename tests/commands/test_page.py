"""``gradlab page``: formulas, pictures and questions of a stored notebook in one file, and nothing from elsewhere."""

from __future__ import annotations

import base64
import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from loaded import loaded_addresses

from gradlab import Lab, formatting
from gradlab.__main__ import main
from gradlab.commands.page import formula_html, markdown_html, notebook_page, outside_addresses

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$", re.DOTALL)


class Reader(HTMLParser):
    """Collects tags with their attributes, and the text outside of code, styles and scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag in ("pre", "code", "style", "script"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attrs for name, attrs in self.tags if name == tag]


def cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def formulas(path: Path) -> list[tuple[str, str]]:
    """Display and inline formulas of a notebook's text, code left out."""
    texts = ["".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "markdown"]
    return FORMULA.findall(re.sub(r"```.*?```|`[^`]*`", "", "\n\n".join(texts), flags=re.DOTALL))


def write(path: Path, *cells: dict[str, Any]) -> Path:
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"metadata": {}, **it} for it in cells]}
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"cell-{number}"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def words(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": text}


def code(source: str, *outputs: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "source": source,
        "metadata": metadata,
        "outputs": list(outputs),
        "execution_count": None,
    }


@pytest.mark.parametrize("path", [NOTEBOOKS[at] for at in (3, 6, 9)], ids=lambda path: path.stem)
def test_a_notebook_is_one_page_with_all_its_formulas_and_pictures(path: Path) -> None:
    source = notebook_page(path)
    page = Reader(source)
    written = formulas(path)
    assert len(page.all("math")) == len(written)
    assert sum(attrs["display"] == "block" for attrs in page.all("math")) == sum(bool(block) for block, _ in written)
    assert "$" not in page.text
    assert "\\" not in page.text

    stored = [output.get("data", {}) for cell in cells(path) for output in cell.get("outputs", [])]
    pictures = [data["image/png"] for data in stored if "image/png" in data and "text/html" not in data]
    shown = [attrs for attrs in page.all("img") if attrs["src"].startswith("data:image/png;base64,")]
    assert {base64.b64decode("".join(picture)) for picture in pictures} <= {
        base64.b64decode(attrs["src"].partition(",")[2]) for attrs in shown
    }
    assert all(attrs["alt"] and not attrs["alt"].startswith("No description") for attrs in page.all("img"))

    assert loaded_addresses(source) == []
    folded = [cell for cell in cells(path) if cell["metadata"].get("jupyter", {}).get("source_hidden")]
    assert len([attrs for attrs in page.all("details") if attrs.get("class") == "code"]) == len(folded)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_formula_is_mathml_without_a_command_left(path: Path) -> None:
    for block, inline in formulas(path):
        tree = ElementTree.fromstring(formula_html(block or inline))
        assert tree.tag == "{http://www.w3.org/1998/Math/MathML}math"
        assert not re.search(r"[\\$_^{}]", "".join(tree.itertext()).replace("^", "", (block + inline).count(r"\hat")))


def test_a_formula_keeps_its_letters_in_their_order() -> None:
    tree = ElementTree.fromstring(formula_html(r"\hat m = \frac{m}{1-\beta_1^t}"))
    assert "".join(tree.itertext()) == "m^=m1\N{MINUS SIGN}\N{GREEK SMALL LETTER BETA}1t"
    names = [element.tag.rpartition("}")[2] for element in tree.iter()]
    assert [names.count(name) for name in ("mover", "mfrac", "msubsup")] == [1, 1, 1]


def test_what_cannot_be_translated_stays_readable() -> None:
    assert formula_html(r"a < \nonsense{b}") == r"<code>$a &lt; \nonsense{b}$</code>"
    assert "<math" in markdown_html("is $x_1$ here", Path())


@pytest.mark.parametrize("address", ["", "https://github.com/YOU/NAME"], ids=["empty", "filled"])
def test_links_lead_to_the_pages_that_are_written_too(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formatting, "REPOSITORY", address)
    lesson = "https://github.com/YOU/NAME/blob/main/notebooks"
    links = (
        f"[a](two.ipynb#There) [b](three.ipynb) [the *ring*](04_zero_grad.ipynb#Recap) [c]({lesson}/two.ipynb) "
        f"[d](https://x.org/{lesson}/two.ipynb) [e](https://github.com/OWNER/NAME/blob/main/two.ipynb) [f](/two.ipynb)"
    )
    one = write(tmp_path / "one.ipynb", words(f"# Title & more\n\n{links}"))
    two = write(tmp_path / "two.ipynb", words("nothing"))
    out = tmp_path / "new" / "pages"
    assert main(["page", str(one), str(two), "-o", str(out)]) == 0
    assert capsys.readouterr().out.split() == [str(out / "one.html"), str(out / "two.html")]
    page = (out / "one.html").read_text(encoding="utf-8")
    targets = [attrs["href"] for attrs in Reader(page).all("a") if not attrs["href"].startswith("#")]
    assert targets == [
        "two.html#There",
        "three.ipynb",
        *[f"{lesson}/04_zero_grad.ipynb#Recap"] * bool(address),
        "two.html" if address else f"{lesson}/two.ipynb",  # a repository that is not this one's
        f"https://x.org/{lesson}/two.ipynb",
        "https://github.com/OWNER/NAME/blob/main/two.ipynb",
        "/two.ipynb",
    ]
    assert "the <em>ring</em>" in page  # words stay where a link would lead nowhere
    assert "<title>Title &amp; more</title>" in page


def test_a_star_is_understood_where_the_shell_leaves_it(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write(tmp_path / f"{name}.ipynb", words(name))
    assert main(["page", str(tmp_path / "*.ipynb"), "-o", str(tmp_path / "pages")]) == 0
    assert sorted(path.name for path in (tmp_path / "pages").iterdir()) == ["a.html", "b.html"]


@pytest.mark.parametrize("live", [True, False])
def test_a_still_of_what_plays_in_the_notebook_says_so(tmp_path: Path, live: bool) -> None:
    data, metadata = {"image/png": base64.b64encode(b"\x89PNG").decode(), "text/plain": "a\nb"}, {"width": 760}
    if live:
        data, told = Lab("line").run(2)._repr_mimebundle_()
        del data["application/vnd.jupyter.widget-view+json"]  # as in a stored notebook
        metadata = told["image/png"]
    output = {"output_type": "display_data", "metadata": {"image/png": metadata}, "data": data}
    page = notebook_page(write(tmp_path / "a.ipynb", code("x", output)))
    assert page.count("In the notebook it plays") == live


def test_folded_code_is_folded_and_a_picture_has_its_words(tmp_path: Path) -> None:
    png = base64.b64encode(b"\x89PNG and so on").decode()
    output = {
        "output_type": "display_data",
        "metadata": {"image/png": {"width": 760}},
        "data": {
            "image/png": png,
            "text/plain": "first <line>\n\nmore\nand more",
            "application/vnd.jupyter.widget-view+json": {},
        },
    }
    path = write(tmp_path / "a.ipynb", code("hidden()", jupyter={"source_hidden": True}), code("seen()", output))
    page = notebook_page(path)
    folded = re.findall(r"<details class=\"code\">.*?</details>", page, re.DOTALL)
    assert [("hidden" in part, "seen" in part) for part in folded] == [(True, False)]
    assert Reader(page).all("img") == [{"src": f"data:image/png;base64,{png}", "alt": "first <line>", "width": "760"}]
    assert "<figcaption>first &lt;line&gt;</figcaption>" in page
    assert "<pre>more\nand more</pre>" in page


def test_what_still_needs_the_network_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    html = "<script src='https://cdn.example/a.js'></script><a href='https://example.org'>a link</a>"
    output = {"output_type": "display_data", "metadata": {}, "data": {"text/html": html, "text/plain": ""}}
    path = write(tmp_path / "a.ipynb", code("plot()", output))
    assert main(["page", str(path), "-o", str(tmp_path / "a.html")]) == 0
    assert capsys.readouterr().err == f"{tmp_path / 'a.html'} needs the network for https://cdn.example/a.js\n"
    style = "<style>@import '//x.org/a.css'; p { background: url(https://x.org/b.png) }</style>"
    assert outside_addresses(f"<img src='data:,a'>{style}") == ["//x.org/a.css", "https://x.org/b.png"]


CELL = {"cell_type": "code", "id": "a", "metadata": {}, "source": "1", "outputs": [], "execution_count": None}


@pytest.mark.parametrize(
    "cells", [5, [5], [{}], [{**CELL, "source": 5}], [{**CELL, "outputs": 3}], [{**CELL, "outputs": [{}]}]]
)
def test_json_that_is_no_notebook_is_named(
    cells: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    for text in (json.dumps(notebook), json.dumps(cells)):
        (tmp_path / "broken.ipynb").write_text(text, encoding="utf-8")
        assert main(["page", "broken.ipynb"]) == 2
        assert capsys.readouterr().err.endswith(": broken.ipynb is not a Jupyter notebook\n")
    assert [path.name for path in tmp_path.iterdir()] == ["broken.ipynb"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.ipynb"], "none.ipynb cannot be read: No such file or directory"),
        (["broken.ipynb"], "broken.ipynb is not a Jupyter notebook"),
        (["a.ipynb", "b.ipynb", "-o", "c.html"], "-o must be a folder for 2 notebooks, got 'c.html'"),
        (["good.ipynb", "-o", "broken.ipynb/in.html"], "broken.ipynb/in.html cannot be written: "),
    ],
)
def test_bad_input_is_told_in_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.ipynb").write_text("[1, 2", encoding="utf-8")
    write(tmp_path / "good.ipynb", words("good"))
    assert main(["page", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
