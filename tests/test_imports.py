"""What an import brings along: ``import gradlab`` next to nothing, the core no pictures, the pictures no torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gradlab

HEAVY = ("torch", "matplotlib", "ipywidgets", "numpy", "PIL", "IPython")
HOME = Path(gradlab.__file__).parent
CORE = {
    *("recipe", "source", "stepper", "entry", "provenance", "record", "recorder", "loop", "engine", "snapshot"),
    *("batches", "footprint", "holdings", "looking", "run", "scene", "tasks"),
    *("timeline", "tally", "storages", "saving", "places", "counting", "kernels", "ledger"),
    *("forecast", "foretold"),
    *("nodes", "graph"),
}


def loaded_after(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after running the code."""
    program = f"{code}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    return set(result.stdout.split())


def test_a_bare_import_loads_nothing_heavy() -> None:
    loaded = loaded_after("import gradlab; dir(gradlab); gradlab.__version__")
    assert "gradlab" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_a_recipe_and_its_source_need_no_torch() -> None:
    code = "import gradlab\ntext = gradlab.Recipe(amp='fp16', clip=1.0).source()\nfrom gradlab import scene, stepper"
    assert loaded_after(code).isdisjoint(HEAVY)


def test_the_core_brings_torch_but_no_pictures() -> None:
    code = (
        "import gradlab\nrun = gradlab.Run(gradlab.tasks.bowl(), gradlab.Recipe(optimizer='adam'))\n"
        + "run.watch_memory = True\nrun.advance(updates=2)\nrun.provenance.holdings()"
    )
    loaded = loaded_after(code)
    assert "torch" in loaded
    assert loaded.isdisjoint({"matplotlib", "ipywidgets", "IPython", "PIL"})


def test_views_never_load_torch() -> None:
    names = sorted(path.stem for path in (HOME / "views").glob("*.py") if path.stem != "__init__")
    assert names
    code = "import gradlab.views\n" + "".join(f"import gradlab.views.{name}\n" for name in names)
    loaded = loaded_after(code)
    assert "matplotlib" in loaded
    assert loaded.isdisjoint({"torch", "ipywidgets", "IPython"})


def imports_of(path: Path) -> set[str]:
    """The top-level names of all imports in a file, wherever they stand; ours with the part of gradlab: gradlab.run."""
    found = set()
    package = path.relative_to(HOME.parent).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{module}.{alias.name}" for alias in node.names} if module == "gradlab" else {module}
    return {".".join(name.split(".")[:2]) if name.startswith("gradlab.") else name.split(".")[0] for name in found}


def files(*names: str) -> list[Path]:
    """The files of these modules and folders of gradlab."""
    found = [path for name in names for path in (HOME / f"{name}.py", *(HOME / name).rglob("*.py")) if path.exists()]
    assert len(found) >= len(names)
    return sorted(found)


@pytest.mark.parametrize("path", files(*CORE), ids=lambda p: str(p.relative_to(HOME)))
def test_core_imports_point_upward(path: Path) -> None:
    found = imports_of(path)
    assert found.isdisjoint({"matplotlib", "ipywidgets", "IPython", "PIL", "gradlab.views", "gradlab.widgets"})
    ours = {name.split(".")[1] for name in found if name.startswith("gradlab.")}
    assert ours <= CORE


@pytest.mark.parametrize("path", files("views"), ids=lambda p: str(p.relative_to(HOME)))
def test_views_import_neither_torch_nor_widgets_nor_pyplot(path: Path) -> None:
    assert imports_of(path).isdisjoint({"torch", "ipywidgets", "IPython", "gradlab.widgets", "gradlab.run"})
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert "pyplot" not in names
    assert "matplotlib.pyplot" not in path.read_text(encoding="utf-8")


def test_an_unknown_name_is_refused_with_those_that_exist() -> None:
    with pytest.raises(AttributeError, match=r"Recipes.*Recipe, Run") as caught:
        gradlab.Recipes  # noqa: B018
    assert all(name in str(caught.value) for name in gradlab.__all__)
    assert not hasattr(gradlab, "torch")
    with pytest.raises(ImportError):
        from gradlab import nothing  # noqa: F401


def test_every_public_name_loads_and_is_listed() -> None:
    assert len(gradlab.__all__) <= 12
    assert set(gradlab.__all__) <= set(dir(gradlab))
    for name in ("Recipe", "Run", "tasks"):
        assert getattr(gradlab, name) is getattr(gradlab, name)
    assert gradlab.Recipe.__module__ == "gradlab.recipe"
