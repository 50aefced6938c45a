"""Recordings of the labs and instruments of a notebook: its cells run again, and what they show is recorded.

Which switches can be turned at which updates is chosen for each lesson in ``site/replays.toml``.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import io
import json
import linecache
import os
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .slices import needed_cells

_SHOWN = "_shown_by_the_last_line"
HOME = "home"
"""The recording of the first page: it belongs to no notebook."""


@dataclass(frozen=True)
class Replay:
    """A recording as the site keeps it: a file of its own, and what stands in its place until it is there."""

    name: str
    """``"03-1"``: notebook, and number of the lab or instrument in it; the name of its file, too."""
    kind: str
    """``"replay"`` of a lab, or ``"instrument"``."""
    title: str
    caption: str
    words: str
    """What is seen, in words, when it opens."""
    png: bytes
    """The picture when it opens, of the first page's only: the others are stored in their notebooks."""
    script: str
    """The text of its file."""

    @property
    def file(self) -> str:
        """The name of its file, from the top of the site."""
        return f"replays/{self.name}.js"

    @property
    def place(self) -> dict[str, str]:
        """What its place on a page has to know."""
        about = {"name": self.name, "kind": self.kind, "title": self.title, "caption": self.caption}
        return {**about, "src": self.file}


def replay_settings(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what is chosen for each recording, by its name."""
    return tomllib.loads((folder / "replays.toml").read_text(encoding="utf-8"))


def live_cells(notebook: Any) -> list[int]:
    """Return the indices of the cells whose stored output is the still picture of something live."""
    return [
        at
        for at, cell in enumerate(notebook["cells"])
        if any(each.get("metadata", {}).get("image/png", {}).get("live") for each in cell.get("outputs", ()))
    ]


def record_notebook(path: Path, settings: Mapping[str, Mapping[str, Any]]) -> list[tuple[int, Replay]]:
    """Run the cells of a notebook that its labs and instruments need; return their recordings, each with its cell.

    Raises ValueError that names the notebook and the cell where one fails. It is made for a process of its own: it
    changes the working directory, and the threads and the random numbers of PyTorch.
    """
    notebook = json.loads(path.read_text(encoding="utf-8"))  # to import nbformat takes as long as to import torch
    number = path.name.partition("_")[0]
    live = live_cells(notebook)
    code = ["".join(cell["source"]) if cell["cell_type"] == "code" else "" for cell in notebook["cells"]]
    names = {at: f"{number}-{order}" for order, at in enumerate(live, 1)}
    found: list[tuple[int, Replay]] = []
    space: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        for at in needed_cells(code, live):
            try:
                shown = _run_cell(f"<cell {at}>", code[at], space)
                if at in names:
                    replay = _recorded(names[at], shown, settings.get(names[at], {}))
                    found += [(at, replay)] if replay else []
                    for line in notebook["cells"][at]["metadata"].get("gradlab", {}).get("stored_after", ()):
                        exec(line, space)
            except Exception as error:
                raise ValueError(f"{path.name}, cell {at}: {type(error).__name__}: {error}") from error
    return found


def record_home(settings: Mapping[str, Mapping[str, Any]]) -> Replay:
    """Return the recording of the first page: the digits, with one switch."""
    from gradlab import Lab, Recipe

    panels = ["picture", "gradient", "held-out loss"]
    lab = Lab("digits", Recipe(lr=0.2), controls=["line"], panels=panels, speed="10 updates/s")
    lab.run(updates=settings[HOME]["marks"][0])  # which its still shows, and where the recording opens
    replay = _recorded(HOME, lab, settings[HOME])
    assert replay is not None
    return replay


def _run_cell(name: str, source: str, space: dict[str, Any]) -> Any:
    """Run a cell; return what its last line shows, None if it shows nothing. Its functions know their source.

    Lines that only print are left out: nobody reads them here, and what they print may need files of other cells.
    """
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    tree = ast.parse(source)
    tree.body = [each for each in tree.body if not ast.unparse(each).startswith("print(")]
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        shown = ast.Assign([ast.Name(_SHOWN, ast.Store())], last.value)
        tree.body[-1] = ast.fix_missing_locations(ast.copy_location(shown, last))
    exec(compile(tree, name, "exec"), space)
    return space.pop(_SHOWN, None)


def _recorded(name: str, shown: Any, chosen: Mapping[str, Any]) -> Replay | None:
    """Record a lab or an instrument; None for what cannot be recorded."""
    from gradlab import Lab
    from gradlab.drawing import to_png

    if isinstance(shown, Lab):
        packed = shown.record(**{"updates": max(shown.runner.updates, 1), **chosen}).packed()
    else:
        try:
            packed = shown.packed()
        except (AttributeError, NotImplementedError):
            return None
    script = f'gradlabRecording("{name}", "{packed.packed}");\n'
    png = to_png(packed.still) if name == HOME else b""
    return Replay(name, packed.kind, packed.title, packed.caption, packed.alt, png, script)


def record_all(
    notebooks: list[Path], settings: Mapping[str, Mapping[str, Any]], workers: int, home: bool = True
) -> Iterator[tuple[Path | None, list[tuple[int, Replay]]]]:
    """Record all notebooks, in so many processes; yield each as it is done, the first page's with None for a path.

    Without ``home`` the first page's is not recorded.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")  # a fork of a process that has used threads may hang
    pool = ProcessPoolExecutor(workers, context, initializer=_begin_worker)
    try:
        asked: dict[Any, Path | None] = {pool.submit(record_home, settings): None} if home else {}
        asked |= {pool.submit(record_notebook, path, settings): path for path in notebooks}
        for done in as_completed(asked):
            path, result = asked[done], done.result()
            yield path, result if isinstance(result, list) else [(0, result)]
    except BrokenProcessPool as error:  # it has ended the others
        raise ValueError("a process that records was killed, as the system does when memory runs out") from error
    except BaseException:  # also Ctrl-C: the pool would wait until every notebook is recorded
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    from gradlab._process import end_with_parent
    from gradlab._torch import delay_dynamo

    end_with_parent()
    gc.set_threshold(50_000)  # a recording is millions of small parts that stay; looking through them took 5 %
    delay_dynamo()  # an instrument's optimizer would import it, which a Lab's does not
