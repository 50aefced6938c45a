"""A TCP proxy that is as slow as a long line: it has a round trip and a rate, and counts the bytes each way.

python tests/benchmarks/lag_proxy.py 8888 --port 9999 --ms 120 --mbit 20
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any

_CHUNK = 16_384  # bytes: small enough for several connections to share the line
_WAITING = 64  # chunks of a connection on their way; then it is read no further, as a full buffer would do


class LagProxy:
    """Carries connections to its ``port`` on to port ``to``, each way in half the round trip and at ``mbit``.

    A context manager; it runs on a thread of its own. ``up`` and ``down`` are bytes to the server and back.
    """

    def __init__(self, to: int, ms: float = 120, mbit: float = 20, port: int = 0) -> None:
        """Be ready to listen on 127.0.0.1; port 0 is any that is free."""
        self.to, self.port = to, port
        self._delay, self._rate = ms / 2000, mbit * 1e6 / 8
        self._bytes, self._free = [0, 0], [0.0, 0.0]  # up, down; when the line is free again
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def up(self) -> int:
        """Bytes from clients to the server."""
        return self._bytes[0]

    @property
    def down(self) -> int:
        """Bytes from the server to clients."""
        return self._bytes[1]

    def __enter__(self) -> LagProxy:
        self._thread.start()
        self._server = self._do(asyncio.start_server(self._connect, "127.0.0.1", self.port))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *exc: object) -> None:
        self._do(self._drop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _drop(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):  # cancelled when the proxy ends
            there, back = await asyncio.open_connection("127.0.0.1", self.to)
            await asyncio.gather(self._carry(reader, back, 0), self._carry(there, writer, 1))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: int) -> None:
        """Read, wait, write: all connections share the line's rate."""
        on_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_WAITING)
        writing = asyncio.create_task(self._write(on_way, writer))
        data = b"begin"
        while data:
            try:
                data = await reader.read(_CHUNK)
            except OSError:
                data = b""
            self._bytes[way] += len(data)
            self._free[way] = max(self._free[way], self._loop.time()) + len(data) / self._rate
            await on_way.put((self._free[way] + self._delay, data))
        await writing

    async def _write(self, on_way: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        while True:
            due, data = await on_way.get()
            await asyncio.sleep(due - self._loop.time())
            with contextlib.suppress(OSError):  # the other side has gone: read on until this one has, too
                if not data:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()


def main() -> None:
    """Carry connections until it is interrupted."""
    arguments = argparse.ArgumentParser(description="A TCP proxy with the round trip and the rate of a long line.")
    arguments.add_argument("to", type=int, help="port of the server")
    arguments.add_argument("--port", type=int, default=9999)
    arguments.add_argument("--ms", type=float, default=120, help="round trip")
    arguments.add_argument("--mbit", type=float, default=20, help="each way")
    given = arguments.parse_args()
    with LagProxy(given.to, given.ms, given.mbit, given.port) as proxy, contextlib.suppress(KeyboardInterrupt):
        print(f"127.0.0.1:{proxy.port} -> {proxy.to}, {given.ms:g} ms, {given.mbit:g} Mbit/s")
        threading.Event().wait()


if __name__ == "__main__":
    main()
