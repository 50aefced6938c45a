"""Cards by name, in any spelling, by size, or as a number of bytes; what a training needs of one; no torch for that."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

from gradlab.forecasting import GPUS, SHOWN, card_name, usable_bytes
from gradlab.forecasting.cards import Need, need_on

SOLD_WITH = {
    **{"T4": 16, "V100": 16, "L4": 24, "A10G": 24, "RTX 4090": 24, "RTX 3090": 24},
    **{"A100-40": 40, "L40S": 48, "A100-80": 80, "H100": 80, "H200": 141, "B200": 180},
}
SPELLINGS = {
    "T4": ["t4", " T4 "],
    "RTX 4090": ["RTX4090", "rtx 4090", "4090", "RTX_4090"],
    "A100-40": ["A100 40GB", "a100_40"],
    "A100-80": ["a100-80gb", "A10080", "A100 80GB"],
    "H100": ["h100"],
}
SIZES = {"80GB": 80 * 10**9, "16gb": 16 * 10**9, "0.5GB": 5 * 10**8, "24GiB": 24 * 2**30, "15360 MiB": 15_360 * 2**20}
ALLOWED = "card must be one of T4, V100, L4, .*B200, a size such as '24 GB' .*, or a whole number of bytes"
WRONG = [
    *("T5", "", "GB", "rtx", "-4090", "-5 GB", "0", "0.0000000001 GB", "1e3 GB", "1.5", "9" * 500, "٣ GB"),
    *("A100", "H100 94GB", "V100 32GB", "4090 Ti", "H100 H100", 0, -1, True, 1.5, None, ["T4"]),
]


def test_cards_hold_a_little_less_than_their_names_say() -> None:
    assert set(GPUS) == set(SOLD_WITH)
    assert list(GPUS.values()) == sorted(GPUS.values())
    assert set(SHOWN) <= set(GPUS)
    for name, gigabytes in SOLD_WITH.items():
        assert 0.9 * gigabytes < usable_bytes(name) / 1024**3 < gigabytes


def test_a_card_is_known_in_small_letters_and_with_its_size() -> None:
    for name in SOLD_WITH:
        for text in (name, *SPELLINGS.get(name, ())):
            assert (card_name(text), usable_bytes(text)) == (name, GPUS[name])


def test_a_size_is_that_much_and_no_card() -> None:
    for text, size in {**SIZES, "17000000000": 17 * 10**9, 123: 123}.items():
        assert (card_name(text), usable_bytes(text)) == (None, size)


def test_an_unknown_card_is_refused_with_those_that_exist() -> None:
    for wrong, ask in itertools.product(WRONG, (usable_bytes, card_name)):
        with pytest.raises(ValueError if type(wrong) in (str, int) else TypeError, match=ALLOWED) as refusal:
            ask(wrong)
        assert str(refusal.value).endswith(f"got {wrong!r}")


def test_a_need_is_what_pytorch_tells_and_the_context() -> None:
    need = need_on("A100-80", 10**9)
    assert need == need_on(None, 10**9) == Need(10**9)
    assert need.allocated == 10**9 + 2 * 8_519_680
    assert need.reserved == pytest.approx(1.15 * need.allocated, abs=1)
    assert need.total - need.reserved == 650_000_000
    assert {need_on(card, 0).workspaces for card in ("H100", "h200", "B200")} == {2 * 32 * 1024**2}
    for usable in (need.total, need.total + 1, 10**10):
        room = need.room(usable)
        assert Need(room).total <= usable < Need(room + 1).total


@pytest.mark.slow
def test_cards_need_no_torch_and_forecast_is_a_function() -> None:
    program = """
import sys, types, gradlab.__main__
from gradlab.forecasting import GPUS, model_sizes, usable_bytes, model_size
model_size('llama-8b')
assert not {'torch', 'matplotlib', 'ipywidgets'} & set(sys.modules)
import gradlab, gradlab.forecasting.estimate, gradlab.forecasting as room
assert type(gradlab.forecast) is types.FunctionType and gradlab.forecast is room.forecast
assert all(getattr(room, name) is not None for name in room.__all__)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
