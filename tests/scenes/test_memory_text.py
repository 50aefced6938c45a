"""Sentences on bytes and cards: shares, multiples, causes, and the cards that a training fits."""

from __future__ import annotations

from gradlab.forecasting import GPUS, SHOWN
from gradlab.memory import CATEGORIES, MemoryPoint
from gradlab.scenes import (
    fit_sentence,
    memory_scene,
    need_sentence,
    peak_location,
    percent,
    share_of_gpu,
    times_as_much,
)

GIB = 2**30
ALL = [(name, GPUS[name]) for name in SHOWN]


def test_what_fits_in_words() -> None:
    assert fit_sentence("H100", GPUS["H100"], 131 * GIB) == "does not fit an H100: 1.7 times its 79.1 GiB"
    assert fit_sentence("H100", 79 * GIB, 79 * GIB) == "fits an H100: 100 % of its 79 GiB"  # the very last byte, too


def test_what_is_needed_and_of_what_in_words() -> None:
    sentence = need_sentence("llama-8b", 40 * GIB, 47 * GIB, "backward", "layers.31")
    assert sentence == (
        "llama-8b needs 47 GiB: 40 GiB of tensors at the peak (while backward ran, in layers.31) "
        "and 7 GiB more for PyTorch's allocator and CUDA"
    )


def test_shares_multiples_and_causes_in_words() -> None:
    shares = {0: "0 %", 1e-9: "under 0.001 %", 2.6e-5: "0.003 %", 0.0042: "0.4 %", 0.27: "27 %", 0.999: "100 %"}
    assert {share: percent(share) for share in shares} == shares
    # A need just above a card is never rounded to it.
    ratios = {1.0001: "1.01", 1.04: "1.04", 1.1: "1.1", 2.04: "2", 9.94: "9.9", 9.96: "10", 82.3: "82", 1234: "1,234"}
    assert {ratio: times_as_much(ratio) for ratio in ratios} == {
        ratio: f"{number} times" for ratio, number in ratios.items()
    }
    assert share_of_gpu("H100", 80 * GIB, 100 * GIB) == "H100 holds 80 GiB: the peak needs 1.2 times that"
    assert peak_location("scaler") == "at scaler"


def test_old_updates_give_way_to_a_long_window() -> None:
    sizes = dict.fromkeys(CATEGORIES, 1)
    timeline = [MemoryPoint(f"line {n // 2}", f"blocks.{n % 2}", sizes, sizes, n // 2) for n in range(2 * 66)]
    scene = memory_scene([(number, timeline) for number in (40, 41, 42)])
    assert (scene.updates, scene.starts[:3]) == ([(0, 42)], [0, 4, 8])
    assert list(scene.statements) == [f"line {n}" for n in range(66)]
    assert {len(values) for values in scene.categories.values()} == {len(scene.modules)} == {4 * 66}
    short = memory_scene([(number, timeline[:20]) for number in (40, 41, 42)])
    assert short.updates == [(0, 41), (10, 42)]
    assert memory_scene([(1, timeline * 3)]).updates == [(0, 1)]
