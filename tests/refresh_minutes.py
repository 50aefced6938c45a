"""Write the minutes of each notebook, as ``notebooks/reading.py`` counts them, and its prerequisites.

``python tests/refresh_minutes.py`` writes both into the notebooks' headers and the map in notebooks/README.md, and the
minutes into series.toml, which holds the prerequisites.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "notebooks")]

from reading import Reading, builds_on, header, reading, total  # noqa: E402 - it is in the folder of the tests

from gradlab.course.series import series_notebooks  # noqa: E402 - from this clone


def write(path: Path, pattern: str, text: str) -> None:
    """Replace the only match of a pattern."""
    before = path.read_text(encoding="utf-8")
    after, count = re.subn(pattern, lambda match: text, before, flags=re.M)
    if count != 1:
        raise SystemExit(f"{path.relative_to(ROOT)}: expected one match of {pattern}, found {count}")
    path.write_text(after, encoding="utf-8")


def main() -> None:
    """Write all of them, and print the table."""
    readings: list[Reading] = []
    print("notebook                      core  deeper  exercises  words")
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        times = reading(path)
        readings.append(times)
        name = path.stem.partition("_")[2]
        write(path, r"\*\*Time\*\* core \d+ minutes, deeper \d+, exercises \d+", header(times))
        entry = next(each for each in series_notebooks() if each.name == name)
        write(path, r"\*\*Builds on\*\*[^.]*(?:\.ipynb[^.]*)*\.", builds_on(entry))
        cells = f"{times.core} + {times.deeper} + {times.exercises}"
        write(
            ROOT / "notebooks" / "README.md",
            rf"(?<=\({re.escape(path.name)}\) \| ).*$",
            re.sub(r"\d+(?: \+ \d+)+ .*", f"{cells} | {entry.needs_text} |", row(path.name)),
        )
        listed = f"minutes = [{times.core}, {times.deeper}, {times.exercises}]"
        write(ROOT / "gradlab/course/series.toml", rf'(?<=name = "{name}"\n)minutes = \[.*\]', listed)
        print(f"{path.stem:28}{times.core:6}{times.deeper:8}{times.exercises:11}{times.word_count:7}")
    write(ROOT / "notebooks" / "README.md", r"^\*\*All together\*\*: .*$", f"**All together**: {total(readings)}")
    print(total(readings))


def row(name: str) -> str:
    """Return a notebook's row of the map without its link."""
    text = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    return text.partition(f"]({name}) | ")[2].partition("\n")[0]


if __name__ == "__main__":
    main()
