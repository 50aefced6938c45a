"""Where the processes meet: a store of torch.distributed that only this machine can reach, and gloo on its loopback."""

from __future__ import annotations

import socket
import sys
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.distributed import TCPStore  # type: ignore[attr-defined, unused-ignore]


def local_store() -> tuple[TCPStore, int]:
    """Return a store that listens at 127.0.0.1 only, and its port: by itself TCPStore would listen everywhere."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined, unused-ignore]

    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()  # fails at once; a store would try for long
        server.accept()[0].close()
    except OSError:
        server.close()
        raise
    store = TCPStore(
        "127.0.0.1",
        port,
        is_master=True,
        wait_for_workers=False,
        timeout=timedelta(seconds=30),
        master_listen_fd=server.detach(),
        use_libuv=False,  # PyTorch for Windows is built without libuv
    )
    return store, port


def network_settings() -> dict[str, str]:
    """Return what keeps gloo on the loopback, by the interface's name, and lets the store work on Windows.

    gloo for Windows knows no names of interfaces: there it listens at the address that the host's name has.
    """
    if sys.platform == "win32":
        return {"USE_LIBUV": "0"}
    names: set[str] = set()
    with suppress(OSError):
        names = {name for _, name in socket.if_nameindex()} & {"lo", "lo0"}
    return {"GLOO_SOCKET_IFNAME": names.pop()} if names else {}
