"""Compare a wheel and a source archive with the repository: ``python tests/check_archives.py dist``.

The wheel holds only the files of ``gradlab/``. The source archive holds every file of the repository, so its tests run.
Exit code 1 if a file is missing, unexpected, or not identical.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ADDED = ("PKG-INFO", "setup.cfg")  # by setuptools, as are *.egg-info and *.dist-info


def repository() -> dict[str, bytes]:
    """Return the tracked files, by path."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name: (ROOT / name).read_bytes() for name in names.split("\0") if name}


def wheel(path: Path) -> dict[str, bytes]:
    """Return the files of a wheel, except its metadata."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}


def source(path: Path) -> dict[str, bytes]:
    """Return the files of a source archive, except those that setuptools adds."""
    contents = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            name = member.name.partition("/")[2]
            opened = archive.extractfile(member)
            if opened is not None and name not in ADDED and ".egg-info/" not in name:
                contents[name] = opened.read()
    return contents


def differences(archive: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    """Return the differences, a line for each file."""
    missing = [f"missing: {name}" for name in sorted(expected.keys() - archive.keys())]
    others = [f"not in the repository: {name}" for name in sorted(archive.keys() - expected.keys())]
    both = sorted(archive.keys() & expected.keys())
    return missing + others + [f"not the same: {name}" for name in both if archive[name] != expected[name]]


def main(folder: Path) -> int:
    """Check the one wheel and the one source archive in a folder."""
    (built,), (packed,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    tracked = repository()
    package = {name: text for name, text in tracked.items() if name.startswith("gradlab/")}
    faults = 0
    for path, lines in (
        (built, differences(wheel(built), package)),
        (packed, differences(source(packed), tracked)),
    ):
        print(f"{path.name}: {'; '.join(lines) or 'as the repository'}")
        faults += len(lines)
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("which folder? python tests/check_archives.py dist")
    sys.exit(main(Path(sys.argv[1])))
