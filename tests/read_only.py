"""Run the notebooks as on a school's machine: ``python tests/read_only.py [--home-read-only] [names]``.

gradlab comes from a wheel in a new environment, the notebooks' folder is mounted read-only, there is no network, and no
clone is in reach. Linux only; the mounts need root, or sudo without a password. With ``--python``, that environment is
taken instead of a new one; gradlab must be installed in it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
INSIDE = "GRADLAB_READ_ONLY"
"""Set in the process that has the mounts; it runs a copy of this file, for the clone is out of its reach."""


def new_environment(place: Path) -> Path:
    """Build the wheel, install it with the pinned requirements but not those of the tests; return its Python."""
    python = place / "environment" / "bin" / "python"
    pinned = place / "requirements.txt"
    pinned.write_text((ROOT / "requirements.txt").read_text(encoding="utf-8").partition("\n# The tests")[0])
    # A copy, because setuptools builds in the folder that it is given.
    ignored = shutil.ignore_patterns(".git", ".venv", "build", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, place / "source", ignore=ignored)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "venv", str(place / "environment")], check=True)
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(place / "wheel"), str(place / "source")], check=True)
    (wheel,) = (place / "wheel").glob("*.whl")
    subprocess.run([*pip, "install", "-r", str(pinned), str(wheel)], check=True)
    shutil.rmtree(place / "source")
    return python


def go_inside(python: Path, place: Path, names: list[str], home_read_only: bool) -> int:
    """Run a copy of this file in a process with mounts and a network of its own; return how many notebooks failed."""
    for name in ("lessons", "home", "tmp", "runtime"):
        (place / name).mkdir()
    for name in names:
        shutil.copy(NOTEBOOKS / name, place / "lessons")
    shutil.copytree(NOTEBOOKS / "images", place / "lessons" / "images")
    shutil.copy(__file__, place / "inside.py")
    read_only = [place / "lessons"] + ([place / "home"] if home_read_only else [])
    lines = ["set -e", "ip link set lo up"]  # notebook 11 connects to its own machine
    lines += [f"mount --bind '{folder}' '{folder}' && mount -o remount,ro,bind '{folder}'" for folder in read_only]
    lines += [f"mount -t tmpfs none '{ROOT / 'gradlab'}'"]  # no clone is found by chance
    lines += [f"exec '{python}' '{place / 'inside.py'}' {' '.join(names)}"]
    variables = {
        "HOME": place / "home",
        "TMPDIR": place / "tmp",
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": 1,
        INSIDE: place / "lessons",
    }
    if home_read_only:
        variables["JUPYTER_RUNTIME_DIR"] = place / "runtime"  # Jupyter itself cannot start a kernel without one
    command = ["unshare", "--mount", "--net", "env", "-i", *(f"{name}={value}" for name, value in variables.items())]
    command = [*command, "bash", "-c", "\n".join(lines)]
    return subprocess.run(command if os.geteuid() == 0 else ["sudo", "-n", *command], cwd=place).returncode


def run_all(lessons: Path, names: list[str]) -> int:
    """Execute the notebooks one after the other; return how many failed."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    import gradlab

    assert Path(sys.prefix) in Path(gradlab.__file__).parents, f"gradlab is not the installed one: {gradlab.__file__}"
    for folder in {lessons} | ({Path.home()} if "JUPYTER_RUNTIME_DIR" in os.environ else set()):
        assert not can_write(folder), f"{folder} can be written to"
    failed = 0
    for name in names:
        began = time.perf_counter()
        notebook = nbformat.read(lessons / name, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = []
        client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(lessons)}})
        try:
            client.execute()
            said = "ran"
        except CellExecutionError as error:
            failed += 1
            said = f"FAILED\n{error}"
        print(f"{name}: {said}, {time.perf_counter() - began:.1f} s", flush=True)
    print(f"{len(names) - failed} of {len(names)} notebooks ran")
    left = [path.name for path in Path(tempfile.gettempdir()).iterdir()]
    print(f"left in the folder for temporary files: {', '.join(sorted(left)) or 'nothing'}")
    return failed


def can_write(folder: Path) -> bool:
    """Try it; a question about permissions would be answered for root, who may write everywhere else."""
    try:
        (folder / "tried").write_text("")
    except OSError:
        return False
    (folder / "tried").unlink()
    return True


def main() -> int:
    """Prepare, and run in the environment that was prepared."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, help="all of them, unless named")
    parser.add_argument("--python", type=Path, help="the Python of an environment that has gradlab and JupyterLab")
    parser.add_argument(
        "--home-read-only", action="store_true", help="nothing can be written to the home folder either"
    )
    options = parser.parse_args()
    names = [path.name for path in options.notebooks or sorted(NOTEBOOKS.glob("*.ipynb"))]
    with tempfile.TemporaryDirectory(prefix="gradlab-read-only-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        python = options.python.absolute() if options.python else new_environment(place)
        return go_inside(python, place, names, options.home_read_only)


if __name__ == "__main__":
    inside = os.environ.get(INSIDE)
    sys.exit(run_all(Path(inside), sys.argv[1:]) if inside else main())
