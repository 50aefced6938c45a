"""The command ``gradlab``: its output, exit codes, and one line for each refused input."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch

import gradlab
from gradlab.__main__ import main
from gradlab.commands.forecast import CHOICES
from gradlab.forecasting import forecast
from gradlab.forecasting.scaling import SHARDINGS
from gradlab.forecasting.training import OTHER_OPTIMIZERS, WEIGHT_TYPES
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


@pytest.mark.slow
def test_every_option_reaches_the_recipe(capfd: pytest.CaptureFixture[str]) -> None:
    options = "--batch 16 --window 2 --amp bf16 --optimizer adamw --clip 1 --no-zero-grad --no-set-to-none --checkpoint"
    recipe = Recipe(zero_grad=False, set_to_none=False, accumulate=2, amp="bf16", clip=1.0, optimizer="adamw")
    code, out, _ = run(capfd, "forecast", "text", *options.split(), "--on", "H100")
    assert code == 0
    assert forecast("text", recipe, batch=16, checkpoint=True, device="cuda").table() in out
    _, out, _ = run(capfd, "forecast", "bowl", "--no-set-to-none")
    with_zeros, with_none = (forecast("bowl", Recipe(set_to_none=value)).table() for value in (False, True))
    assert with_zeros in out
    assert with_none not in out


@pytest.mark.slow
def test_a_size_with_a_context(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, *["forecast", "gpt2-1.5b", "--context", "128", "--amp", "bf16", "--on", "L4"])
    assert code == 0
    assert "gpt2-1.5b, batch 1, context 128, sgd, AMP bf16, window 1\n1,557,611,200 parameters" in out


@pytest.mark.slow
def test_the_largest_batch_is_the_last_with_exit_code_0(capfd: pytest.CaptureFixture[str]) -> None:
    most = forecast("digits", batch=64, device="cuda").largest("batch", on="670MB")
    _, out, _ = run(capfd, *["forecast", "digits", "--on", "670MB", "--largest", "batch"])
    assert f"\nlargest batch on 670MB: {most}\n" in out
    codes = [run(capfd, *f"forecast digits --on 670MB --batch {batch}".split())[0] for batch in (most, most + 1)]
    assert codes == [0, 1]


@pytest.mark.slow
def test_what_stands_beside_the_recipe_reaches_the_forecast(capfd: pytest.CaptureFixture[str]) -> None:
    options = "--dtype bf16 --optimizer-as adamw-8bit --shard zero2 --cards 4"
    _, out, _ = run(capfd, "forecast", "text", "--on", "T4", *options.split())
    assert forecast("text", device="cuda", dtype="bf16", optimizer="adamw-8bit", shard="zero2", cards=4).table() in out
    assert {"--dtype": tuple(WEIGHT_TYPES), "--optimizer-as": OTHER_OPTIMIZERS, "--shard": SHARDINGS} == CHOICES


@pytest.mark.parametrize(("card", "row"), [("rtx4090", "RTX 4090"), ("24GB", "24GB"), ("L4", "L4")])
def test_the_card_that_was_asked_about_has_its_row(capfd: pytest.CaptureFixture[str], card: str, row: str) -> None:
    _, out, _ = run(capfd, "forecast", "digits", "--on", card)
    assert [line.split()[-1] for line in out.splitlines() if line.startswith(f"{row} ")] == ["fits"]
    assert out.endswith(f"fits on {row}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "the following arguments are required: command"),
        ("forecast", "the following arguments are required: what"),
        ("fly", "invalid choice: 'fly'"),
        ("forecast lama-8b", ": there is no size or task 'lama-8b'; did you mean 'llama-8b'?; `gradlab forecast"),
        ("forecast llama-8b --on T5", ": card must be one of T4, V100, L4, A10G, "),
        ("forecast llama-8b --on -1", "got '-1'"),
        ("forecast llama-8b --batch 0", ": batch must be a whole number from 1 to 1,048,576, got 0"),
        ("forecast llama-8b --batch many", "argument --batch: invalid int value: 'many'"),
        ("forecast gpt2-1.5b --context 2048", ": context of 'gpt2-1.5b' must be a whole number from 1 to 1,024"),
        ("forecast digits --context 5", ": context is for published sizes"),
        ("forecast llama-8b --window 17", ": --window must be 1 to 16, got 17"),
        ("forecast digits --clip -1", ": clip must be"),
        ("forecast digits --dtype int8", "argument --dtype: invalid choice: 'int8'"),
        ("forecast digits --optimizer-as lion", "argument --optimizer-as: invalid choice: 'lion'"),
        ("forecast digits --cards 4", ": cards=4 needs shard, one of 'ddp', "),
        ("forecast digits --amp int8", "argument --amp: invalid choice: 'int8'"),
        ("forecast digits --largest batch", "--largest needs a card"),
        ("forecast bowl --checkpoint", "checkpointing needs repeated blocks"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: str, message: str
) -> None:
    monkeypatch.chdir(Path(__file__).parent.parent)
    code, out, err = run(capfd, *arguments.split())
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert message in err
    assert err.startswith("gradlab")


def test_help_needs_no_torch() -> None:
    program = (
        "import sys\nfrom gradlab.__main__ import main\n"
        "try: main(['forecast', '--help'])\nexcept SystemExit: pass\nprint('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    text = " ".join(result.stdout.split())
    for option, usual in (
        ("--batch N", "1 for a language model, else the task's own"),
        ("--context N", "2,048, or the model's maximum if that is smaller"),
        ("--no-zero-grad", "on"),
        ("--window N", "1"),
        ("--checkpoint", "off"),
        ("--cards N", "1"),
    ):
        assert re.search(rf"{option} [^()]*\(default: {usual}\)", text), option
    options = result.stdout.partition("\noptions:\n")[2].rpartition("\n")[0]
    assert text.count("(default: ") == len(re.findall(r"^  --", options, re.MULTILINE)), "each has its default, once"
    assert result.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("command", ["", "doctor"])
def test_the_version_comes_with_those_that_a_report_needs(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, *command.split(), "--version")
    assert code == 0
    # The metadata has the version with its build, such as 2.13.0+cpu, or without, as PyPI's wheels have.
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
