"""Run the notebooks from top to bottom and store their pictures: ``python tests/refresh_notebooks.py [names]``.

A stored notebook is read where no kernel runs: on GitHub, in nbviewer, in a pull request. So the live widgets are taken
out (without a kernel they show as an error), and what stands beside them stays: the picture and the words. Outputs that
follow a question are folded.

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
HEADING = re.compile(r"^#{1,3} ", re.MULTILINE)


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
    """Have JupyterLab and Notebook 7 open the notebook with every output folded that follows a question, and no other.

    An output follows a question up to the next heading, as in ``gradlab/front/outcome.js``, which covers outputs and
    texts in a running notebook and in pages that are made of it.
    """
    follows = False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            follows = follows and not HEADING.search(cell.source)
            continue
        asks = bool(QUESTION.search(cell.source))
        if cell.cell_type == "code":
            _fold(cell, follows and not asks and bool(cell.outputs))
        follows = follows or asks


def _fold(cell: Any, folded: bool) -> None:
    settings = dict(cell.metadata.get("jupyter", {}))
    settings.pop("outputs_hidden", None)
    if folded:
        settings["outputs_hidden"] = True
    if settings:
        cell.metadata["jupyter"] = settings
    else:
        cell.metadata.pop("jupyter", None)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # small models: a second thread only waits for the first
    for name in sys.argv[1:] or sorted(str(path) for path in (ROOT / "notebooks").glob("*.ipynb")):
        print(f"{name}: {refresh(Path(name)):.1f} s")
