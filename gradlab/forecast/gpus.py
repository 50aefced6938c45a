"""Graphics cards and the bytes that a program can use on each.

A "16 GB" card has 16 GiB of chips (17.2e9 bytes), of which error correction and the driver keep some for themselves.
``nvidia-smi`` shows what is left (15,360 MiB on a T4), and PyTorch a little less again: the "total capacity" of its
out-of-memory message, which is ``torch.cuda.get_device_properties(0).total_memory``. It is this last number that counts
here, the lowest that was found, since it varies a little with the driver. Of it, CUDA itself takes another few hundred
MiB as soon as a program starts.
"""

from __future__ import annotations

_GIB = 1024**3

GPUS: dict[str, int] = {
    "T4": int(14.56 * _GIB),  # an out-of-memory message on a "16 GB" T4: github.com/Zheng-Chong/CatVTON/issues/133
    "L4": int(22.03 * _GIB),  # the same on a "24 GB" L4; messages name 22.03 to 22.17 GiB, nvidia-smi 23,034 MiB
    "A100-40": 42_298_834_944,  # deviceQuery on an A100-SXM4-40GB: github.com/bottlerocket-os/bottlerocket/pull/3873
    "A100-80": int(79.14 * _GIB),  # out-of-memory messages on 80 GB A100s name 79.14 to 79.35 GiB
    "H100": int(79.10 * _GIB),  # and on 80 GB H100s 79.10 to 79.33 GiB; nvidia-smi 81,559 MiB
}
"""Usable bytes by the card's name, smallest first."""


def usable_bytes(card: str | int) -> int:
    """Return the usable bytes of a card by its name, or a number of bytes as it is.

    Raises ValueError or TypeError that lists what is allowed.
    """
    allowed = f"one of {', '.join(GPUS)}, or a whole number of bytes above 0"
    if isinstance(card, bool) or not isinstance(card, (str, int)):
        raise TypeError(f"card must be {allowed}, got {card!r}")
    if isinstance(card, str):
        if card not in GPUS:
            raise ValueError(f"card must be {allowed}, got {card!r}")
        return GPUS[card]
    if card < 1:
        raise ValueError(f"card must be {allowed}, got {card!r}")
    return card
