"""Where the processes of a run meet, and how they are told: on this machine alone."""

from __future__ import annotations

import socket
from contextlib import suppress
from datetime import timedelta
from typing import Any


def meeting_point() -> tuple[Any, int]:
    """Return a store that listens at 127.0.0.1 only, and its port: by itself TCPStore would listen everywhere."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined, unused-ignore]

    door = socket.create_server(("127.0.0.1", 0))
    port = door.getsockname()[1]
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()  # said at once, not after a store's patience
        door.accept()[0].close()
    except OSError:
        door.close()
        raise
    store = TCPStore(
        "127.0.0.1",
        port,
        is_master=True,
        wait_for_workers=False,
        timeout=timedelta(seconds=30),
        master_listen_fd=door.detach(),
    )
    return store, port


def environment(rank: int, processes: int, port: int) -> dict[str, str]:
    """Return what torchrun would put into the environment."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the starter keeps the meeting point, no rank opens one of its own
        "TORCHELASTIC_RESTART_COUNT": "0",
        "OMP_NUM_THREADS": "1",
        **loopback(),
    }


def loopback() -> dict[str, str]:
    """Name the loopback interface to gloo, which would take the host's address; nothing where it has another name."""
    with suppress(OSError, AttributeError):
        names = {name for _, name in socket.if_nameindex()}
        return {"GLOO_SOCKET_IFNAME": next(name for name in ("lo", "lo0") if name in names)}
    return {}
