"""Lines to copy from the page for hubs name existing files and settings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.serverapp import ServerApp
from jupyter_server.services.kernels.kernelmanager import MappingKernelManager
from traitlets.config import Config

from gradlab.widgets.question import find_question, question_names

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "notebooks/README.md", "notebooks/CLASSROOM.md")]
TEACHERS, HUB = (page.read_text(encoding="utf-8") for page in PAGES[1:])
# Arguments of lines to copy: files and folders.
NAMED = re.compile(r"(?:-r|--file|--requirement|cp -r|jupyter lab) ([\w./-]+)")


def written(name: str) -> Config:
    """Return the settings that a block of the page sets."""
    (block,) = re.findall(rf"<!-- config: {name} -->\n```python\n(.*?)```", HUB, re.S)
    scope: dict[str, Any] = {"c": Config()}
    exec(block, scope)
    return scope["c"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lines_to_copy_name_files_that_exist(page: Path) -> None:
    lines = "\n".join(re.findall(r"```bash\n(.*?)```", page.read_text(encoding="utf-8"), re.S))
    named = NAMED.findall(lines)
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert page.name == "README.md" or {"binder/requirements.txt", ".devcontainer/Dockerfile"} <= set(named)


def test_the_image_copies_what_is_there() -> None:
    steps = (ROOT / ".devcontainer" / "Dockerfile").read_text(encoding="utf-8")
    copied = [path for line in re.findall(r"^COPY (?:--\S+ )*(.+)", steps, re.M) for path in line.split()[:-1]]
    assert "binder/requirements.txt" in copied
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_settings_of_the_server_are_settings_of_jupyter_server() -> None:
    classes = {each.__name__: each for each in (MappingKernelManager, ServerApp)}
    for section, values in written("jupyter_server").items():
        for name, value in values.items():
            classes[section].class_traits(config=True)[name].validate(classes[section](), value)


def test_the_setting_of_jupyterlab_is_one_of_its_notebook() -> None:
    from jupyterlab.commands import get_app_dir

    (block,) = re.findall(r"```json\n(.*?)```", HUB, re.S)
    for plugin, values in json.loads(block).items():
        extension, _, name = plugin.partition(":")
        schema = json.loads((Path(get_app_dir()) / "schemas" / extension / f"{name}.json").read_text(encoding="utf-8"))
        for key, value in values.items():
            assert type(value) is type(schema["properties"][key]["default"])


def test_guesses_to_expect_are_wrong_options_of_notebooks() -> None:
    (table,) = re.findall(r"^## Wrong guesses, and what to say\n(.*?)^Some stumbling", TEACHERS, re.M | re.S)
    expected = re.findall(r'^\| (\d\d) \| [^|]+ \| "([^|]+)" \| [^|]+ \|$', table, re.M)
    assert [number for number, _ in expected] == [f"{number:02}" for number in range(14)]
    for number, guess in expected:
        questions = [find_question(name) for name in question_names() if name.startswith(number)]
        wrong = [
            option.text
            for question in questions
            for index, option in enumerate(question.options)
            if index != question.answer
        ]
        assert guess in wrong
