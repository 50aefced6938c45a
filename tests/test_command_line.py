"""The command ``gradlab``: what it prints, its exit codes, and one line for what it refuses."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import torch

import gradlab
from gradlab.__main__ import main
from gradlab.commands.forecast import CHOICES
from gradlab.forecasting import forecast
from gradlab.forecasting.optimizers import OTHER_OPTIMIZERS, WAYS
from gradlab.forecasting.sharding import SHARDINGS
from gradlab.forecasting.training import WEIGHT_TYPES, ZERO_GRAD_AT
from gradlab.loop.recipe import Recipe

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        code = main(arguments)
    except SystemExit as stop:  # argparse's way out
        code = int(stop.code or 0)
    return code, *capfd.readouterr()


def test_it_fits_or_it_does_not(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, "forecast", "digits", "--optimizer", "adam", "--on", "T4")
    assert code == 0
    assert out.rstrip().endswith("\nfits on T4")
    code, out, _ = run(capfd, "forecast", "digits", "--optimizer", "adam", "--on", "100000")
    assert code == 1
    assert out.rstrip().endswith("\ndoes not fit on 100000")
    code, out, _ = run(capfd, "forecast", "digits")
    assert code == 0
    assert forecast("digits").table() in out


def test_every_option_reaches_the_recipe(capfd: pytest.CaptureFixture[str]) -> None:
    options = "--batch 16 --window 2 --amp bf16 --optimizer adamw --clip 1 --no-zero-grad --no-set-to-none --checkpoint"
    recipe = Recipe(zero_grad=False, set_to_none=False, accumulate=2, amp="bf16", clip=1.0, optimizer="adamw")
    code, out, _ = run(capfd, "forecast", "text", *options.split(), "--on", "H100")
    assert code == 0
    assert forecast("text", recipe, batch=16, checkpoint=True, device="cuda").table() in out
    _, out, _ = run(capfd, "forecast", "bowl", "--no-set-to-none")
    kept, plain = (forecast("bowl", Recipe(set_to_none=value)).table() for value in (False, True))
    assert kept in out
    assert plain not in out


def test_a_size_with_a_context(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, *["forecast", "gpt2-1.5b", "--context", "128", "--amp", "bf16", "--on", "L4"])
    assert code == 0
    assert "gpt2-1.5b, batch 1, context 128, sgd, AMP bf16, window 1\n1,557,611,200 parameters" in out


def test_the_largest_that_fits(capfd: pytest.CaptureFixture[str]) -> None:
    for about, card, what in (
        ("digits", "670MB", "batch"),
        ("digits", "670MB", "window"),
        ("gpt2 --context 64", "H100", "context"),  # whose workspaces are larger than those of so many bytes
    ):
        code, out, _ = run(capfd, *f"forecast {about} --on {card} --largest {what}".split())
        assert code == 0
        found = forecast(about.split()[0], device="cuda").largest(what, on=card)
        assert found > 1
        assert f"\nlargest {what} on {card}: {found}" in out


def test_the_largest_is_the_last_with_exit_code_0(capfd: pytest.CaptureFixture[str]) -> None:
    most = forecast("digits", batch=64, device="cuda").largest("batch", on="670MB")
    codes = [run(capfd, *f"forecast digits --on 670MB --batch {batch}".split())[0] for batch in (most, most + 1)]
    assert codes == [0, 1]


def test_what_is_told_beside_the_recipe_reaches_the_forecast(capfd: pytest.CaptureFixture[str]) -> None:
    options = "--dtype bf16 --optimizer-as adafactor --zero-grad-at after-step --shard zero2 --cards 4 --margin 0.5"
    _, out, _ = run(capfd, "forecast", "text", "--on", "T4", *options.split())
    told: dict[str, Any] = {
        "dtype": "bf16",
        "optimizer": "adafactor",
        "zero_grad_at": "after step",
        "shard": "zero2",
        "cards": 4,
    }
    assert forecast("text", device="cuda", margin=0.5, **told).table() in out
    assert "50% more, by the allocator" in out


def test_the_choices_are_those_of_forecast() -> None:
    places = tuple(place.replace(" ", "-") for place in ZERO_GRAD_AT)
    known = {"--dtype": tuple(WEIGHT_TYPES), "--optimizer-as": (*WAYS, *OTHER_OPTIMIZERS), "--zero-grad-at": places}
    assert {**known, "--shard": SHARDINGS} == CHOICES


@pytest.mark.parametrize(("card", "row"), [("rtx4090", "RTX 4090"), ("24GB", "24GB"), ("L4", "L4")])
def test_the_card_that_was_asked_about_has_its_row(capfd: pytest.CaptureFixture[str], card: str, row: str) -> None:
    _, out, _ = run(capfd, "forecast", "digits", "--on", card)
    assert [line.split()[-1] for line in out.splitlines() if line.startswith(f"{row} ")] == ["fits"]
    assert out.endswith(f"fits on {row}\n")


def test_a_config_of_transformers(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 100, "n_positions": 32}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    _, out, _ = run(capfd, "forecast", str(path))
    assert f"{tmp_path.name}, batch 1, context 32, sgd" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "the following arguments are required: command"),
        ("forecast", "the following arguments are required: what"),
        ("fly", "invalid choice: 'fly'"),
        ("forecast llama-7b", "the name must be one of 'gpt2', "),
        ("forecast llama-8b --on T5", ": --on must be one of T4, V100, L4, A10G, "),
        ("forecast llama-8b --on A100", "--on 'A100' is sold with 40 and with 80 GB"),
        ("forecast llama-8b --on -1", "got '-1'"),
        ("forecast llama-8b --batch 0", ": --batch must be a whole number from 1 to 1,048,576, got 0"),
        ("forecast llama-8b --batch many", "argument --batch: invalid int value: 'many'"),
        ("forecast gpt2-1.5b --context 2048", ": --context of 'gpt2-1.5b' must be a whole number from 1 to 1,024"),
        ("forecast digits --context 5", ": --context is for the sizes"),
        ("forecast digits --context 5", ", got --context 5; the samples of a task"),
        ("forecast llama-8b --window 17", ": --window must be 1 to 16, got 17"),
        ("forecast digits --clip -1", ": --clip must be"),
        ("forecast digits --dtype int8", "argument --dtype: invalid choice: 'int8'"),
        ("forecast digits --optimizer-as lion", "argument --optimizer-as: invalid choice: 'lion'"),
        ("forecast digits --cards 4", ": --cards 4 needs --shard, one of 'ddp', "),
        ("forecast digits --shard ddp --cards 0", ": --cards must be a whole number from 1 to 131,072, got 0"),
        ("forecast digits --margin 11", ": --margin must be a number from 0 to 10, got 11.0"),
        ("forecast digits --window 2 --zero-grad-at before-backward", "got --window 2; use --window 1, or another"),
        ("forecast digits --on T4 --largest context", ": --largest 'context' is for the published sizes"),
        ("forecast no/batch=3/config.json", ": there is no file 'no/batch=3/config.json'"),
        ("forecast tests", ": there is no file 'tests/config.json': give the path of a config.json or of the folder"),
        ("forecast lama-8b", ", got 'lama-8b'; did you mean 'llama-8b'?"),
        ("forecast digits --amp int8", "argument --amp: invalid choice: 'int8'"),
        ("forecast digits --largest batch", "--largest needs a card"),
        ("forecast bowl --checkpoint", "checkpointing needs blocks that repeat"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: str, said: str
) -> None:
    monkeypatch.chdir(Path(__file__).parent.parent)
    code, out, err = run(capfd, *arguments.split())
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert said in err
    assert err.startswith("gradlab")


def test_help_needs_no_torch() -> None:
    program = (
        "import sys\nfrom gradlab.__main__ import main\n"
        "try: main(['forecast', '--help'])\nexcept SystemExit: pass\nprint('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    said = " ".join(result.stdout.split())
    for option, usual in (
        ("--batch N", "1 for a language model, else the task's own"),
        ("--context N", "2,048, or fewer if the model reads fewer"),
        ("--no-zero-grad", "on"),
        ("--window N", "1"),
        ("--checkpoint", "off"),
        ("--margin SHARE", "0.15"),
    ):
        assert re.search(rf"{option} [^()]*\(default: {usual}\)", said), option
    options = result.stdout.partition("\noptions:\n")[2].rpartition("\n")[0]
    assert said.count("(default: ") == len(re.findall(r"^  --", options, re.MULTILINE)), "each has its default, once"
    assert result.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("command", ["", "doctor"])
def test_the_version_comes_with_those_that_a_report_needs(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, *command.split(), "--version")
    assert code == 0
    # What is installed says the version with its build, such as 2.13.0+cpu, or without, as PyPI's wheels do.
    versions = {torch.__version__, torch.__version__.partition("+")[0]}
    python = platform.python_version()
    assert out in {f"gradlab {gradlab.__version__} (torch {version}, Python {python})\n" for version in versions}


def test_it_is_called_as_it_was_called(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """By ``python -m``, and by the script that an installer writes from [project.scripts]."""
    arguments = ["forecast", "bowl", "--on", "T5"]
    command = [sys.executable, "-m", "gradlab", *arguments]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (refused.returncode, refused.stderr.partition(": ")[0]) == (2, "python -m gradlab forecast")
    ((name, target),) = PROJECT["scripts"].items()
    monkeypatch.setattr(sys, "argv", [f"/somewhere/bin/{name}", *arguments])
    assert EntryPoint(name, target, "console_scripts").load()() == 2
    assert capfd.readouterr().err.startswith("gradlab forecast: ")
