"""What a class needs: memory of kernels and JupyterLabs, seconds to the first picture, a core while a lab plays.

    python tests/benchmarks/bench_classroom.py memory 00 --kernels 10
    python tests/benchmarks/bench_classroom.py each
    python tests/benchmarks/bench_classroom.py servers --kernels 10
    taskset -c 0 python tests/benchmarks/bench_classroom.py first
    python tests/benchmarks/bench_classroom.py playing

Linux only: the bytes are those of /proc. Give it the Python of the environment that is measured; nothing else should
run from that environment meanwhile, since what others use too would count as shared.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

import nbformat
import psutil
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

ROOT = Path(__file__).resolve().parents[2]
MIB = 2**20
MOST_SECONDS = 300  # for one cell
LEARNERS = 30
AT_A_TIME = 4
CORE = ["00", "03", "10"]
PLAYING = """from gradlab import Lab
import torch
torch.set_num_threads(1)
lab = Lab("digits", controls=["zero_grad"], panels=["held-out loss", "gradient"], speed="{speed}")
lab"""


def notebook_called(number: str) -> Path:
    """Return the notebook with this number."""
    (found,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    return found


def cells_of(path: Path) -> list[str]:
    """Return the code cells of a notebook."""
    return [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def bytes_of(pid: int) -> dict[str, float]:
    """Return MiB of a process: in proportion ("Pss"), resident, its own alone, and the most that was resident."""
    read: dict[str, int] = {}
    for name in ("smaps_rollup", "status"):
        for line in Path(f"/proc/{pid}/{name}").read_text().splitlines():
            key, _, rest = line.partition(":")
            if rest.strip().endswith(" kB"):
                read[key] = int(rest.split()[0]) * 1024
    own = read["Private_Clean"] + read["Private_Dirty"]
    return {"pss": read["Pss"] / MIB, "rss": read["Rss"] / MIB, "own": own / MIB, "peak": read["VmHWM"] / MIB}


@contextlib.contextmanager
def kernels(count: int) -> Iterator[list[tuple[KernelManager, BlockingKernelClient]]]:
    """Start kernels of this Python in the folder of the notebooks, and end them."""
    os.environ.setdefault("PYTHONPATH", str(ROOT))
    with contextlib.ExitStack() as stack:
        started = []
        for _ in range(count):
            manager = KernelManager()
            manager.start_kernel(cwd=str(ROOT / "notebooks"))
            stack.callback(manager.shutdown_kernel, now=True)
            client = manager.client()
            client.start_channels()
            stack.callback(client.stop_channels)
            client.wait_for_ready(timeout=60)
            started.append((manager, client))
        yield started


def run_all(client: BlockingKernelClient, cells: list[str]) -> None:
    """Run cells; an error in one is not expected."""
    for cell in cells:
        reply = client.execute_interactive(cell, timeout=MOST_SECONDS, output_hook=lambda _: None, allow_stdin=False)
        if reply["content"]["status"] != "ok":
            raise RuntimeError("\n".join(reply["content"]["traceback"]))


def pid_of(manager: KernelManager) -> int:
    """Return the number of a kernel's process."""
    return int(manager.provisioner.process.pid)  # type: ignore[union-attr]


def tell(what: str, found: list[dict[str, float]]) -> None:
    """Print the sizes of processes of one kind, and what 30 of them take: what they share once, the rest 30 times."""
    mean = {name: statistics.mean(each[name] for each in found) for name in found[0]}
    shared = mean["rss"] - mean["own"]
    print(
        f"{what}: each {mean['pss']:.0f} MiB in proportion, {mean['rss']:.0f} resident ({mean['own']:.0f} its own), "
        f"at most {max(each['peak'] for each in found):.0f}"
    )
    if len(found) > 1:
        print(f"  {len(found)} together {len(found) * mean['pss']:,.0f} MiB in proportion")
        print(
            f"  {LEARNERS}: {shared:.0f} + {LEARNERS} x {mean['own']:.0f} = {shared + LEARNERS * mean['own']:,.0f} MiB"
        )


def memory(numbers: list[str], count: int) -> None:
    """Let each of some kernels run a notebook, a few at a time, then measure all of them."""
    for number in numbers:
        cells = cells_of(notebook_called(number))
        with kernels(count) as started:
            with ThreadPoolExecutor(AT_A_TIME) as pool:
                list(pool.map(run_all, (client for _, client in started), repeat(cells)))
            tell(f"notebook {number}, {count} kernels", [bytes_of(pid_of(manager)) for manager, _ in started])


@contextlib.contextmanager
def servers(count: int) -> Iterator[list[int]]:
    """Start JupyterLabs with settings of their own, and wait until each answers."""
    from browser.driving import serving

    with tempfile.TemporaryDirectory() as home, contextlib.ExitStack() as stack:
        started = []
        for number in range(count):
            (folder := Path(home) / str(number)).mkdir()
            before = {child.pid for child in psutil.Process().children()}
            jupyter = stack.enter_context(serving(folder))
            for page in ("lab", "api/contents", "api/kernelspecs"):
                urllib.request.urlopen(f"{jupyter.url}/{page}").read()
            started += [child.pid for child in psutil.Process().children() if child.pid not in before]
        yield started


def first(number: str) -> tuple[float, float]:
    """Return the seconds from the start of a kernel to the first lab of a notebook, and those of its processor."""
    began = time.perf_counter()
    seen: list[tuple[float, float]] = []

    with kernels(1) as [(manager, client)]:

        def look(message: dict[str, Any]) -> None:
            if "image/png" in message["content"].get("data", {}):
                seen.append((time.perf_counter() - began, used(psutil.Process(pid_of(manager)))))

        for cell in cells_of(notebook_called(number)):
            client.execute_interactive(cell, timeout=MOST_SECONDS, output_hook=look)
            if seen:
                return seen[0]
    raise ValueError(f"notebook {number} shows no lab")


class Sampled(threading.Thread):
    """The most MiB, in proportion, of a process and of all that it has started, looked at ten times a second."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.process, self.most, self.ended = psutil.Process(pid), 0.0, threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.1):
            total = 0.0
            for each in [self.process, *self.process.children(recursive=True)]:
                with contextlib.suppress(OSError, KeyError):  # it has ended in between
                    total += bytes_of(each.pid)["pss"]
            self.most = max(self.most, total)


def each_alone(numbers: list[str]) -> None:
    """Print what a kernel takes that has run a notebook, and at most while it ran, for each notebook."""
    print("MiB          resident at the end   at most   at most with the processes it starts   seconds")
    for path in map(notebook_called, numbers):
        with kernels(1) as [(manager, client)]:
            sampled, began = Sampled(pid_of(manager)), time.perf_counter()
            sampled.start()
            run_all(client, cells_of(path))
            sampled.ended.set()
            sampled.join()
            took, found = time.perf_counter() - began, bytes_of(pid_of(manager))
            print(
                f"{path.stem:22} {found['rss']:9.0f} {found['peak']:9.0f} {sampled.most:39.0f} {took:9.1f}", flush=True
            )


def playing(seconds: float) -> None:
    """Print the share of a core that kernel and server take while a lab plays in a browser."""
    from browser.driving import browsing, serving

    with (
        tempfile.TemporaryDirectory() as home,
        serving(Path(home)) as jupyter,
        browsing(jupyter, Path(home) / "profile", "playing.ipynb") as page,
    ):
        kernel = psutil.Process(page.ask("__import__('os').getpid()"))
        processes = {"kernel": kernel, "server": kernel.parent()}
        for speed in ("10 updates/s", "60 updates/s"):
            page.show(PLAYING.format(speed=speed))
            page.button("Play").click()
            page.wait_for_updates(20)
            began, updates, before = time.perf_counter(), page.updates(), {n: used(p) for n, p in processes.items()}
            page.page.wait_for_timeout(1000 * seconds)
            took = time.perf_counter() - began
            shares = ", ".join(f"{n} {(used(p) - before[n]) / took:.1%}" for n, p in processes.items())
            print(f"{speed}: {(page.updates() - updates) / took:.1f} updates/s; of a core: {shares}")


def used(process: psutil.Process) -> float:
    """Return the seconds of processor time that a process has had."""
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("what", choices=["memory", "each", "servers", "first", "playing"])
    parser.add_argument("notebooks", nargs="*")
    parser.add_argument("--kernels", type=int, default=10, help="or servers")
    asked = parser.parse_args()
    if asked.what == "memory":
        memory(asked.notebooks or CORE, asked.kernels)
    elif asked.what == "each":
        each_alone(asked.notebooks or [path.name[:2] for path in sorted((ROOT / "notebooks").glob("*.ipynb"))])
    elif asked.what == "servers":
        with servers(asked.kernels) as pids:
            tell(f"{asked.kernels} JupyterLabs", [bytes_of(pid) for pid in pids])
    elif asked.what == "first":
        for number in asked.notebooks or CORE:
            for took, busy in (first(number) for _ in range(3)):
                print(f"notebook {number}: first picture after {took:.1f} s, {busy:.1f} s of them on a processor")
    else:
        playing(10)


if __name__ == "__main__":
    main()
