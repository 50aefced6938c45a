"""Run the notebooks from top to bottom and store their pictures: ``python tests/refresh_notebooks.py [names]``.

``--fold`` runs nothing and only folds the cells after a question.

Stored notebooks are read without a kernel: on GitHub, in nbviewer, in a pull request. So live widgets are removed
(without a kernel they show an error); their pictures and texts stay. Outputs after a question are folded, and so are
texts that give away what the outputs show.

A lab that learners play starts at update 0. Its cell's metadata have the lines to run before its picture is stored:
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
    start = time.perf_counter()
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
            if lines := cell.metadata.get("gradlab", {}).get("stored_after"):
                last = cell.source.splitlines()[-1]  # the lab
                played = nbformat.v4.new_code_cell("\n".join([*lines, last]))
                client.execute_cell(played, index)  # puts `played` into the notebook
                cell.outputs, notebook.cells[index] = played.outputs, cell
    clean(notebook)
    nbformat.write(notebook, path)
    return time.perf_counter() - start


def clean(notebook: Any) -> None:
    """Remove widget state, live views, progress bars and data about this machine; pictures and texts stay."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for number, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), 1):
        cell.execution_count = number
        cell.metadata.pop("execution", None)
        if QUESTION.search(cell.source):  # the question is to be read, not its name
            cell.metadata["jupyter"] = {"source_hidden": True}  # for JupyterLab and Notebook 7
            cell.metadata["cellView"] = "form"  # for Colab
        outputs = []
        for output in cell.outputs:
            if VIEW in output.get("data", {}):
                output["data"].pop(VIEW)
                if output["output_type"] == "display_data" and "image/png" not in output["data"]:
                    continue  # a progress bar that is complete
            if output["output_type"] == "stream" and output["name"] == "stderr":
                continue
            previous = outputs[-1] if outputs else None
            if previous and output["output_type"] == previous["output_type"] == "stream":
                previous["text"] += output["text"]  # one piece, wherever the kernel split it
                continue
            if "execution_count" in output:
                output["execution_count"] = number
            outputs.append(output)
        cell.outputs = outputs
    fold_outcomes(notebook)


def fold_outcomes(notebook: Any) -> None:
    """Fold all that gives away the answer to a question: code, outputs and texts from it to the next heading.

    ``gradlab/front/outcome.js`` covers the same outputs and texts in a running notebook and in pages made of it. Texts
    above the first output are instructions, and stay.
    """
    follows, cells = False, notebook.cells
    has_outputs = False
    for index, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            above, *below = re.split(HEADING, cell.source, maxsplit=1)
            text = _unfolded(above)
            if follows and text and (has_outputs or not _output_follows(cells[index + 1 :])):
                text = f"{OPENS}\n\n{text}\n\n</details>"
            cell.source = "\n\n".join([*filter(None, [text]), *below])
            follows = follows and not below
            continue
        is_question = bool(QUESTION.search(cell.source))
        if cell.cell_type == "code":
            if not is_question and cell.metadata.get("cellView") != "form":
                _fold(cell, follows)
            has_outputs = not is_question and (has_outputs or bool(cell.outputs))
        follows = follows or is_question


def _unfolded(text: str) -> str:
    return text.strip().removeprefix(OPENS).removesuffix("</details>").strip() if OPENS in text else text.strip()


def _output_follows(cells: list[Any]) -> bool:
    """Return whether there is an output before the next question or heading."""
    for cell in cells:
        if cell.cell_type == "markdown" and HEADING.search(cell.source):
            break
        if cell.cell_type == "code" and cell.outputs:
            return not QUESTION.search(cell.source)
    return False


def _fold(cell: Any, folded: bool) -> None:
    """Fold code and outputs of a cell; as JupyterLab shows the first output's text, an empty output is put first."""
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
    """Fold the cells after each question in a stored notebook."""
    notebook = nbformat.read(path, as_version=4)
    fold_outcomes(notebook)
    nbformat.write(notebook, path)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # small models: a second thread does not help
    names = [name for name in sys.argv[1:] if name != "--fold"]
    for name in names or sorted(str(path) for path in (ROOT / "notebooks").glob("*.ipynb")):
        if "--fold" in sys.argv:
            fold(Path(name))
        else:
            print(f"{name}: {refresh(Path(name)):.1f} s")
