"""The README: its example runs, its commands are where CI looks for them, and its numbers are the picture's."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_examples_run_as_they_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = "\n".join(re.findall(r"```python\n(.*?)```", README, re.S))  # the second continues the first
    (tmp_path / "train.py").write_text(example, encoding="utf-8")
    runpy.run_path(str(tmp_path / "train.py"))
    printed = capsys.readouterr().out
    assert "optimizer.zero_grad()" in printed  # print(run.source)
    assert "error: missing-zero-grad" in printed
    assert "at the peak" in printed


@pytest.mark.parametrize("marker", ["open", "test"])
def test_each_command_is_one_line_behind_its_marker(marker: str) -> None:
    (block,) = re.findall(rf"<!-- ci: {marker} -->\n```bash\n(.*?)```", README, re.S)
    assert len(block.splitlines()) == 1
    assert "requirements.txt" in block


def test_every_public_name_is_in_the_table() -> None:
    import gradlab

    for name in gradlab.__all__:
        assert re.search(rf"^\| `{name}\b", README, re.M), name


def test_numbers_around_the_picture_equal_its_numbers() -> None:
    with Image.open(ROOT / "notebooks" / "images" / "lab.png") as picture:
        loss, gradient, digits, memory = picture.text["Description"].splitlines()  # of its panels
    text = README[README.index("![The lab") : README.index("The code you see")]
    losses = re.findall(r"(?:at|is) (\d+\.\d+)(?: now|;)", text)
    assert len(losses) == 2
    assert all(f"The held-out loss is {now} now." in loss for now in losses)
    unswitched = re.findall(r"would be (\d+\.\d+)", text)
    assert len(unswitched) == 2
    assert all(f"the held-out loss would be {now} now." in loss for now in unswitched)
    first, last = map(int, re.search(r"holds batches (\d+)\D(\d+)", gradient).groups())
    count = last - first + 1
    assert f"those of the {count - 1} batches before it are orange" in text
    assert f"`.grad` holds {count} batches." in text
    assert re.search(rf"batch {first} has been applied\s+{count} times", text)
    assert re.search(r"\d+% of the held-out digits", text)[0] in digits
    assert re.findall(r"peaks at (\S+ KiB)", text) == 2 * [re.search(r"Peak (\S+ KiB)", memory)[1]]
