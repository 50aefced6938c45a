"""Copy titles, aims and the core's bets from the notebooks into the worksheets: ``python tests/refresh_worksheets.py``.

The exit tickets are written by hand.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
WORKSHEETS = ROOT / "site" / "worksheets"


def read_off(notebook: Path) -> dict[str, Any]:
    """Return ``title``, ``can`` and ``bets`` of a notebook."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    title = re.search(r"# \d\d \u00b7 (.+)", texts[0])
    opening = re.search(r"\*\*Afterwards you can\*\* ((?:.+\n)+)", "\n".join(texts))
    if title is None or opening is None:
        raise SystemExit(f"{notebook.name}: no title or no **Afterwards you can**")
    can = [each.strip().rstrip(".") for each in " ".join(opening[1].split()).split("\u00b7")]
    core = texts[: next(index for index, text in enumerate(texts) if text.startswith("## Deeper"))]
    bets = [name for text in core for name in re.findall(r'^(?:\w+ = )?predict\("([^"]+)"\)', text)]
    return {"title": title[1].strip(), "can": can, "bets": bets}


def main() -> None:
    """Replace the text above the first question of each exit ticket."""
    for path in sorted(WORKSHEETS.glob("*.toml")):
        read = read_off(next((ROOT / "notebooks").glob(f"{path.stem}_*.ipynb")))
        head = [f"title = {json.dumps(read['title'], ensure_ascii=False)}"]
        for name in ("can", "bets"):
            lines = "".join(f"  {json.dumps(each, ensure_ascii=False)},\n" for each in read[name])
            head.append(f"{name} = [\n{lines}]")
        text = path.read_text(encoding="utf-8")
        note = "# What stands above the exit ticket is read off the notebook: python tests/refresh_worksheets.py"
        path.write_text("\n".join([note, *head]) + "\n\n" + text[text.index("[[ticket]]") :], encoding="utf-8")
        print(f"{path.stem}: {len(read['bets'])} bets")


if __name__ == "__main__":
    sys.exit(main())
