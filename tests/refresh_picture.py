"""Write the README's picture: ``python tests/refresh_picture.py``; it needs Chromium.

It is a screenshot of a lab in a notebook when a forgotten ``zero_grad`` visibly hurts. The numbers in the picture are
printed, for the README's text.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from browser.driving import browsing, serving
from PIL import Image
from PIL.PngImagePlugin import PngInfo

PICTURE = Path(__file__).parents[1] / "notebooks" / "images" / "lab.png"
CELLS = (
    "import torch; torch.set_num_threads(1); from gradlab import Lab, Recipe",
    """lab = Lab(
    "digits",
    Recipe(lr=0.2),
    controls=["zero_grad", "accumulate", "amp", "optimizer", "lr", "edit", "speed"],
    panels=["held-out loss", "gradient", "picture", "memory"],
).run(200).switch(zero_grad=False).run(87)
lab""",
)


def main() -> None:
    """Write the picture, with the texts of its panels as metadata, and print them."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder)) as jupyter,
        browsing(jupyter, Path(folder) / "profile", "picture.ipynb") as notebook,
    ):
        notebook.side_bar(False)
        notebook.show(*CELLS, width=1366, height=900)
        notebook.page.mouse.move(1, 1)
        notebook.wait_until_painted()
        photograph = notebook.root.screenshot()
        text = "\n".join(notebook.ask("[drawing.words for drawing in lab.model.drawings()]"))
    metadata = PngInfo()
    metadata.add_text("Description", text.encode("ascii", "replace").decode())
    Image.open(io.BytesIO(photograph)).save(PICTURE, pnginfo=metadata, optimize=True)
    print(text)


if __name__ == "__main__":
    main()
