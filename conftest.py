"""Selection and order of tests: ``pytest`` runs those done within a minute, ``pytest --all`` all of them."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# One thread a process: the models are small, and the workers share the cores (addopts in pyproject.toml). Set before
# torch is imported; kernels inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Without bytecode files, each worker would rewrite the assertions of all tests again, and each process compile gradlab.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Importing nbval imports nbformat and jsonschema, which would compile the grammar of addresses for two seconds.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # not importable
pytest_plugins = ["nbval.plugin"]  # after that line, so pyproject.toml turns off the automatic import
settings.register_profile("untimed", deadline=None)  # how long an example takes depends on the machine
settings.load_profile("untimed")

_ALL_ONLY = ("slow", "browser", "notebook")
"""Markers of the tests that only ``--all`` runs."""
_BROWSER = "tests/browser"
_SITE = "tests/web/test_web_whole.py"
_SLOWEST = (_BROWSER, _SITE, "notebooks", "tests/course", "tests/commands")
"""Folders with the longest files: started last, one would keep a worker busy while the others idle."""
_BROWSER_LIMIT_S = 300.0
"""Timeout of a test in which a browser may hang."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--all``."""
    parser.addoption("--all", action="store_true", help="run slow tests, the browser and every notebook, too")


def pytest_configure(config: pytest.Config) -> None:
    """With ``--all`` and no path, also collect the notebooks; keep all temporary files in one folder."""
    if "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit it
        # nbval kills its kernels, and tests kill processes: the files that these leave are removed with the folder.
        os.environ["TMPDIR"] = tempfile.tempdir = folder = tempfile.mkdtemp(prefix="gradlab-")
        # After multiprocessing's own folder in it, which has -100; a TemporaryDirectory would go before that.
        Finalize(None, shutil.rmtree, [folder], {"ignore_errors": True}, exitpriority=-200)
    if config.getoption("--all") and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        config.args.append("notebooks")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Start a worker for each core, from two to six (each takes about 800 MB), and one more for the browser."""
    return min(max(2, os.cpu_count() or 2), 6) + bool(config.getoption("--all"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each worker a file at a time, and all browser tests to one worker: a second browser is too slow."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _BROWSER if nodeid.startswith(f"{_BROWSER}/") else super()._split_scope(nodeid)

    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests for ``--all`` or the nightly run unless the command line names them, by path or marker."""
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.notebook)
        if _is_in(item, _BROWSER):
            item.add_marker(pytest.mark.browser)
        if item.get_closest_marker("browser") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_BROWSER_LIMIT_S))
    items.sort(key=lambda item: next((i for i, folder in enumerate(_SLOWEST) if _is_in(item, folder)), len(_SLOWEST)))
    paths = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    tests = [argument for argument in config.args if "::" in argument]
    later = () if config.getoption("--all") or config.getoption("markexpr") else _ALL_ONLY
    named = {path.resolve() for path in paths}
    if not os.environ.get("GRADLAB_NIGHTLY"):
        later = (*later, "nightly", "sampled") if config.rootpath / "notebooks" in named else (*later, "nightly")
    selected: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    for item in items:
        (deselected if _is_deselected(item, later, named, tests) else selected).append(item)
    config.hook.pytest_deselected(items=deselected)
    items[:] = selected


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Exempt modules and tests from garbage collection, which would visit half a million objects each time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Lower the priority of workers without the browser, which waits for a kernel, a server and a page."""
    if "PYTEST_XDIST_WORKER" in os.environ and not _is_in(item, _BROWSER) and os.name == "posix" and os.nice(0) < 3:
        os.nice(3)  # half as much of a core as the browser; with 10, programs beside the tests starve them


def _is_in(item: pytest.Item, folder: str) -> bool:
    return item.nodeid.startswith((f"{folder}/", f"{folder}::"))


def _is_deselected(item: pytest.Item, later: tuple[str, ...], named: set[Path], tests: list[str]) -> bool:
    markers = {marker for marker in later if item.get_closest_marker(marker)}
    if not markers or any(item.nodeid.startswith(test) for test in tests):
        return False
    return bool({"slow", "nightly", "sampled"} & markers) or named.isdisjoint({item.path, item.path.parent})


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Name the markers of deselected tests."""
    return [] if config.getoption("--all") else [f"without {', '.join(_ALL_ONLY)} tests: --all runs everything"]
