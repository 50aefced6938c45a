"""Cards by name, in any spelling, by size, or as a number of bytes."""

from __future__ import annotations

from typing import Any

import pytest

from gradlab.forecasting import GPUS, SHOWN, card_name, compute_capability, usable_bytes

SOLD_WITH = {
    **{"T4": 16, "V100": 16, "L4": 24, "A10G": 24, "RTX 4090": 24, "RTX 3090": 24},
    **{"A100-40": 40, "L40S": 48, "A100-80": 80, "H100": 80, "H200": 141, "B200": 180},
}
SPELLINGS = {
    "T4": ["t4", "Tesla T4", "T4 16GB", "NVIDIA T4"],
    "V100": ["v100", "V100-16GB", "Tesla V100-SXM2-16GB"],
    "L4": ["l4", "NVIDIA L4", "l4-24gb"],
    "A10G": ["a10g", "NVIDIA A10G"],
    "RTX 4090": ["RTX4090", "rtx 4090", "4090", "RTX_4090", "NVIDIA GeForce RTX 4090", "4090 24GB"],
    "RTX 3090": ["RTX3090", "rtx-3090", "3090", "GeForce RTX 3090"],
    "A100-40": ["A100 40GB", "a100_40", "NVIDIA A100-SXM4-40GB", "A100-PCIE-40GB"],
    "L40S": ["l40s", "NVIDIA L40S", "L40S 48 GB"],
    "A100-80": ["A100 80GB", "a100-80gb", "a100_80", "A10080", "NVIDIA A100 80GB PCIe"],
    "H100": ["h100", " H100 ", "H100 80GB", "NVIDIA H100 80GB HBM3"],
    "H200": ["h200", "NVIDIA H200", "H200 141GB"],
    "B200": ["b200", "NVIDIA B200"],
}
SIZES = {
    "80GB": 80 * 10**9,
    "24 GB": 24 * 10**9,
    "16gb": 16 * 10**9,
    "0.5 GB": 5 * 10**8,
    ".5GB": 5 * 10**8,
    "24GiB": 24 * 2**30,
    "15360 MiB": 15_360 * 2**20,
    "17000000000": 17 * 10**9,
}
ALLOWED = (
    "card must be one of T4, V100, L4, .*B200 in any spelling, a size such as '24 GB' .*, or a whole number of bytes"
)


def test_cards_hold_a_little_less_than_their_names_say() -> None:
    assert set(GPUS) == set(SOLD_WITH)
    assert list(GPUS.values()) == sorted(GPUS.values())
    for name, gigabytes in SOLD_WITH.items():
        assert 0.9 * gigabytes < usable_bytes(name) / 1024**3 < gigabytes
    assert usable_bytes(123) == 123


def test_few_cards_are_shown_unasked() -> None:
    assert SHOWN == ("T4", "L4", "A100-40", "A100-80", "H100")
    assert set(SHOWN) <= set(GPUS)


@pytest.mark.parametrize("name", SOLD_WITH)
def test_a_card_is_known_by_any_spelling(name: str) -> None:
    for text in (name, *SPELLINGS[name]):
        assert card_name(text) == name
        assert usable_bytes(text) == GPUS[name]
        assert compute_capability(text) == compute_capability(name)


def test_a_card_has_its_architecture() -> None:
    found = {
        name: compute_capability(name) for name in ("T4", "V100", "A100-40", "A100-80", "A10G", "L4", "H100", "B200")
    }
    assert list(found.values()) == [(7, 5), (7, 0), (8, 0), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0)]
    assert {compute_capability(name) for name in ("RTX 4090", "L40S")} == {(8, 9)}
    assert (compute_capability("RTX 3090"), compute_capability("H200")) == ((8, 6), (9, 0))


@pytest.mark.parametrize("text", SIZES)
def test_a_size_is_that_much_and_no_card(text: str) -> None:
    assert usable_bytes(text) == SIZES[text]
    assert card_name(text) is None
    assert compute_capability(text) is None
    assert (card_name(24), compute_capability(24)) == (None, None)


@pytest.mark.parametrize("text", ["A100", "a100", "NVIDIA A100"])
def test_a_card_of_two_sizes_is_asked_for_its_size(text: str) -> None:
    with pytest.raises(ValueError, match=f"card '{text}' is sold with 40 and with 80 GB: say 'A100-40' or 'A100-80'"):
        usable_bytes(text)


WRONG = [
    *("T5", "", " ", "GB", "rtx", "-4090", "-5", "-5 GB", "0", "0 GB", "0.0000000001 GB", "1e3 GB", "9" * 500, "٣ GB"),
    *("H100 NVL", "H100 94GB", "V100 32GB", "4090 Ti", "H100 H100", "nvidia", 0, -1, True, 1.5, None, ["T4"]),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_an_unknown_card_is_refused_with_those_that_exist(wrong: Any) -> None:
    for ask in (usable_bytes, card_name, compute_capability):
        with pytest.raises(ValueError if type(wrong) in (str, int) else TypeError, match=ALLOWED) as told:
            ask(wrong)
        assert str(told.value).endswith(f"got {wrong!r}")
