"""The rooms of the package: allowed imports, modules that an import loads, and one meaning for each name."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradlab

HEAVY = ("torch", "matplotlib", "ipywidgets", "numpy", "PIL", "IPython")
HOME = Path(gradlab.__file__).parent


STAGES = {
    "import": "import gradlab; dir(gradlab); gradlab.__version__",
    "recipe": (
        "gradlab.Recipe(amp='fp16', clip=1.0).source()\n"
        "from gradlab.scenes import Memory\nfrom gradlab.loop import Program"
    ),
    "drawing": "".join(
        f"import gradlab.drawing.{path.stem}\n" for path in sorted((HOME / "drawing").glob("[a-z]*.py"))
    ),
}
CORE = """import gradlab
run = gradlab.Run(gradlab.tasks.bowl(), gradlab.Recipe(optimizer='adam'))
run.watch_memory = True
run.advance(updates=2)
run.provenance.contents()"""


def loaded_after(*codes: str) -> list[set[str]]:
    """Return the top-level modules loaded in a new interpreter after each of the codes."""
    show = "import sys\nprint(*{name.split('.')[0] for name in sys.modules})"
    program = "\n".join(f"{code}\n{show}" for code in codes)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    return [set(line.split()) for line in result.stdout.splitlines()]


def test_an_import_loads_no_more_than_it_needs() -> None:
    bare, recipe, drawing = loaded_after(*STAGES.values())
    assert "gradlab" in bare
    assert bare.isdisjoint(HEAVY)
    assert recipe.isdisjoint(HEAVY)
    assert "matplotlib" in drawing
    assert drawing.isdisjoint({"torch", "ipywidgets", "IPython"})


@pytest.mark.slow
def test_the_core_brings_torch_but_no_pictures() -> None:
    (loaded,) = loaded_after(CORE)
    assert "torch" in loaded
    assert loaded.isdisjoint({"matplotlib", "ipywidgets", "IPython", "PIL"})


@functools.cache
def rooms() -> dict[str, set[str]]:
    """Return the rooms that each room may import, from the table in ARCHITECTURE.md."""
    text = (HOME.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", text, re.MULTILINE)
    return {room: set(re.findall(r"`(\w+)`", allowed)) for room, allowed in rows}


def room_of(module: str) -> str:
    """Return the room of a module of the package; "gradlab" for modules at the top."""
    first = module.split(".")[1] if "." in module else "gradlab"
    return first if first in rooms() else "gradlab"


def module_of(path: Path) -> str:
    parts = path.relative_to(HOME.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for path in sorted(HOME.rglob("*.py"))}
ROOMS = sorted({room_of(module) for module in FILES})


@functools.cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


@functools.cache
def imported(module: str, *, for_types: bool = True) -> set[tuple[str, str]]:
    """Return the imports from gradlab anywhere in a module as (module, name), the name "" for a whole module.

    Imports below ``if TYPE_CHECKING`` count only with ``for_types``.
    """
    path, tree, imports = FILES[module], tree_of(module), set()
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for_checking = {id(inner) for block in blocks for inner in ast.walk(block)}
    nodes = [node for node in ast.walk(tree) if for_types or id(node) not in for_checking]
    package = module.split(".") if path.stem == "__init__" else module.split(".")[:-1]
    for node in nodes:
        if isinstance(node, ast.Import):
            imports |= {(alias.name, "") for alias in node.names if alias.name.split(".")[0] == "gradlab"}
        elif isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == "gradlab"):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{origin}.{alias.name}"
                module_itself = whole in FILES and (origin == "gradlab" or not public(origin, alias.name))
                imports.add((whole, "") if module_itself else (origin, alias.name))
    return imports


def public(package: str, name: str) -> bool:
    """Return whether a package lists this name."""
    return name in getattr(importlib.import_module(package), "__all__", ())


def test_the_table_lists_the_rooms_that_there_are() -> None:
    assert sorted(rooms()) == ROOMS
    assert len(ROOMS) <= 19  # 14 folders, 4 shared modules, and the top: more would be hard to survey
    assert all(allowed < set(ROOMS) for allowed in rooms().values())


@pytest.mark.parametrize("room", ROOMS)
def test_imports_are_allowed_and_public(room: str) -> None:
    for module, origin, name in ((m, *each) for m in FILES if room_of(m) == room for each in imported(m)):
        target = room_of(origin)
        if target == room:
            continue
        assert target in rooms()[room], f"{module} imports {origin}.{name}: {room} may not import {target}"
        one_file = FILES[f"gradlab.{target}"].stem != "__init__"
        if target != "gradlab" and not one_file:
            whole = (origin == "gradlab" and name == target) or (origin == f"gradlab.{target}" and not name)
            listed = whole or (origin.count(".") == 1 and public(origin, name))
            is_exempt = target == "course" and room == "gradlab"
            assert listed or is_exempt, f"{module} imports {origin}.{name}, which {target} does not list"


@pytest.mark.parametrize("room", ROOMS)
def test_what_a_room_may_import_it_does_import(room: str) -> None:
    used = {room_of(origin) for module in FILES if room_of(module) == room for origin, _ in imported(module)}
    assert rooms()[room] == used - {room}


def test_each_arrow_of_the_picture_stands_in_the_table() -> None:
    text = (HOME.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    arrows = re.findall(r"^    (\w+) -(?:->|\. .* \.->) (\w+)$", text, re.MULTILINE)
    assert arrows
    for room, target in arrows:
        assert (target if target in ROOMS else f"_{target.strip('_')}") in rooms()[room], f"{room} --> {target}"


def circles(arrows: dict[str, set[str]]) -> list[str]:
    """Return the points of the graph that are on a cycle."""
    looping = []
    for start in arrows:
        visited: set[str] = set()
        pending = list(arrows[start])
        while pending:
            if (point := pending.pop()) not in visited:
                visited.add(point)
                pending += arrows.get(point, ())
        if start in visited:
            looping.append(start)
    return looping


def test_no_circle_of_files_and_none_of_rooms() -> None:
    files = {module: {origin for origin, _ in imported(module, for_types=False)} - {module} for module in FILES}
    files = {
        m: {o for o in others if FILES[o].stem != "__init__" or not m.startswith(o)} for m, others in files.items()
    }
    assert circles(files) == []
    assert circles(rooms()) == []


def top_level_names(module: str) -> set[str]:
    """Return the public classes, functions and constants of a file."""
    names = set()
    for node in tree_of(module).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


# exercise() returns an Exercise; a Text and a Line are marks, text and line are tasks.
SHARED = {"exercise", "Text", "Line"}


def test_one_word_has_one_meaning() -> None:
    homes: dict[str, set[str]] = {}
    for module in FILES:
        # The modules of exercises are scripts: only their Definitions are used elsewhere.
        if ".nb" in module:
            continue
        for name in top_level_names(module) - SHARED:
            homes.setdefault(name.lower(), set()).add(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


@pytest.mark.parametrize("room", [room for room in ROOMS if FILES.get(f"gradlab.{room}", HOME).stem == "__init__"])
def test_a_room_says_what_it_is_for_and_lists_its_names(room: str) -> None:
    package = importlib.import_module(f"gradlab.{room}")
    assert package.__doc__
    assert package.__all__
    for name in package.__all__:
        assert getattr(package, name) is not None


def test_the_core_draws_nothing_and_drawing_needs_no_torch() -> None:
    for module in FILES:
        if room_of(module) in ("tasks", "memory", "gradients", "loop", "scenes"):
            assert imported_packages(module).isdisjoint({"matplotlib", "ipywidgets", "IPython", "PIL"}), module
        elif room_of(module) == "drawing":
            assert imported_packages(module).isdisjoint({"torch", "ipywidgets", "IPython"}), module


def test_nothing_uses_pyplot() -> None:
    assert [module for module, path in FILES.items() if "pyplot" in path.read_text(encoding="utf-8")] == []


def imported_packages(module: str) -> set[str]:
    """Return the top-level names of other packages that a module imports."""
    imports = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            imports |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imports.add((node.module or "").split(".")[0])
    return imports


def test_private_names_of_pytorch_stand_in_one_module() -> None:
    private = re.compile(r"\b(torch(?!\.ops)|nn|optim|F)(\.\w+)*\._(?!_)\w+|from torch[\w.]* import .*\b_\w+")
    for module, path in FILES.items():
        if module != "gradlab._torch":
            code = re.sub(r'"""[\s\S]*?"""|"[^"\n]*"|#.*', "", path.read_text(encoding="utf-8"))
            assert not private.search(code), f"{module}: {private.search(code)}"


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
    assert gradlab.Recipe.__module__ == "gradlab.loop.recipe"
