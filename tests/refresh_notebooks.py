"""Run the notebooks from top to bottom and store their pictures: ``python tests/refresh_notebooks.py [names]``.

``--fold`` runs nothing and only folds what follows a question.

A stored notebook is read where no kernel runs: on GitHub, in nbviewer, in a pull request. So the live widgets are taken
out (without a kernel they show as an error), and what stands beside them stays: the picture and the words. Outputs that
follow a question are folded, and so are the texts that tell what they show.

A lab that a learner plays by hand starts at update 0. Its cell's metadata say what to do before its picture is stored:
``{"gradlab": {"stored_after": ["lab.run(updates=200)"]}}``.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
VIEW = "application/vnd.jupyter.widget-view+json"
QUESTION = re.compile(r"\bpredict\(\"([^\"]+)\"\)")
HEADING = re.compile(r"^(?=#{1,3} )", re.MULTILINE)
OPENS = '<details class="after-bet"><summary>After your bet</summary>'
NO_TEXT = {"output_type": "display_data", "data": {}, "metadata": {}}


def refresh(path: Path) -> float:
    """Execute a notebook in its folder and write it back; return the seconds it took."""
    began = time.perf_counter()
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    with client.setup_kernel():
        for at, cell in enumerate(notebook.cells):
            client.execute_cell(cell, at)
            if lines := cell.metadata.get("gradlab", {}).get("stored_after"):
                last = cell.source.splitlines()[-1]  # what the cell shows
                played = nbformat.v4.new_code_cell("\n".join([*lines, last]))
                client.execute_cell(played, at)  # which puts it in the notebook
                cell.outputs, notebook.cells[at] = played.outputs, cell
    clean(notebook)
    nbformat.write(notebook, path)
    return time.perf_counter() - began


def clean(notebook: Any) -> None:
    """Take out widget state, live views, progress bars and what tells of this machine; pictures and texts stay."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for number, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), 1):
        cell.execution_count = number
        cell.metadata.pop("execution", None)
        if QUESTION.search(cell.source):  # the question is to be read, not its name
            cell.metadata["jupyter"] = {"source_hidden": True}  # for JupyterLab and Notebook 7
            cell.metadata["cellView"] = "form"  # for Colab
        kept = []
        for output in cell.outputs:
            if VIEW in output.get("data", {}):
                output["data"].pop(VIEW)
                if output["output_type"] == "display_data" and "image/png" not in output["data"]:
                    continue  # a progress bar that has come to its end
            if output["output_type"] == "stream" and output["name"] == "stderr":
                continue
            before = kept[-1] if kept else None
            if before and output["output_type"] == before["output_type"] == "stream":
                before["text"] += output["text"]  # one piece, however the kernel cut it
                continue
            if "execution_count" in output:
                output["execution_count"] = number
            kept.append(output)
        cell.outputs = kept
    fold_outcomes(notebook)


def fold_outcomes(notebook: Any) -> None:
    """Have a notebook open with all folded that tells the answer of a question: code, outputs, texts after one.

    It follows a question up to the next heading, as in ``gradlab/front/outcome.js``, which covers outputs and texts in
    a running notebook and in pages that are made of it. Texts above the first output say what to do, and stay.
    """
    follows, cells = False, notebook.cells
    tells = False
    for at, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            above, *below = re.split(HEADING, cell.source, maxsplit=1)
            text = _unfolded(above)
            if follows and text and (tells or not _output_follows(cells[at + 1 :])):
                text = f"{OPENS}\n\n{text}\n\n</details>"
            cell.source = "\n\n".join([*filter(None, [text]), *below])
            follows = follows and not below
            continue
        asks = bool(QUESTION.search(cell.source))
        if cell.cell_type == "code":
            if not asks and cell.metadata.get("cellView") != "form":
                _fold(cell, follows)
            tells = not asks and (tells or bool(cell.outputs))
        follows = follows or asks


def _unfolded(text: str) -> str:
    return text.strip().removeprefix(OPENS).removesuffix("</details>").strip() if OPENS in text else text.strip()


def _output_follows(cells: list[Any]) -> bool:
    """Whether there is an output before the next question or heading."""
    for cell in cells:
        if cell.cell_type == "markdown" and HEADING.search(cell.source):
            break
        if cell.cell_type == "code" and cell.outputs:
            return not QUESTION.search(cell.source)
    return False


def _fold(cell: Any, folded: bool) -> None:
    """Fold code and outputs of a cell: JupyterLab shows the first text of the first output, so that one has none."""
    cell.outputs = [output for output in cell.outputs if output != NO_TEXT]
    settings = dict(cell.metadata.get("jupyter", {}))
    for name in ("source_hidden", "outputs_hidden"):
        settings.pop(name, None)
    if folded:
        settings["source_hidden"] = True
    if folded and cell.outputs:
        settings["outputs_hidden"] = True
        cell.outputs.insert(0, nbformat.from_dict(NO_TEXT))
    if settings:
        cell.metadata["jupyter"] = settings
    else:
        cell.metadata.pop("jupyter", None)


def fold(path: Path) -> None:
    """Fold what follows a question in a stored notebook."""
    notebook = nbformat.read(path, as_version=4)
    fold_outcomes(notebook)
    nbformat.write(notebook, path)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # small models: a second thread only waits for the first
    names = [name for name in sys.argv[1:] if name != "--fold"]
    for name in names or sorted(str(path) for path in (ROOT / "notebooks").glob("*.ipynb")):
        if "--fold" in sys.argv:
            fold(Path(name))
        else:
            print(f"{name}: {refresh(Path(name)):.1f} s")
