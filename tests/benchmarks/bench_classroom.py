"""Resources for a class: memory of kernels and JupyterLabs, seconds to the first picture, CPU time while a lab plays.

    python tests/benchmarks/bench_classroom.py memory 00 --kernels 10
    python tests/benchmarks/bench_classroom.py each
    python tests/benchmarks/bench_classroom.py servers --kernels 10
    taskset -c 0 python tests/benchmarks/bench_classroom.py first
    python tests/benchmarks/bench_classroom.py playing

Linux only: sizes come from /proc. Run it with the Python of the environment to measure; no other process should use
that environment meanwhile, because memory in use by both counts as shared.
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
CELL_LIMIT_S = 300
LEARNERS = 30
PARALLEL_KERNELS = 4
CORE = ["00", "03", "10"]
PLAYING = """from gradlab import Lab
import torch
torch.set_num_threads(1)
lab = Lab("digits", controls=["zero_grad"], panels=["held-out loss", "gradient"], speed="{speed}")
lab"""


def find_notebook(number: str) -> Path:
    """Return the notebook with this number."""
    (notebook,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    return notebook


def cells_of(path: Path) -> list[str]:
    """Return the code cells of a notebook."""
    return [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def memory_of(pid: int) -> dict[str, float]:
    """Return the MiB of a process: proportional set size, resident, private ("own"), and peak resident."""
    read: dict[str, int] = {}
    for name in ("smaps_rollup", "status"):
        for line in Path(f"/proc/{pid}/{name}").read_text().splitlines():
            key, _, value = line.partition(":")
            if value.strip().endswith(" kB"):
                read[key] = int(value.split()[0]) * 1024
    private = read["Private_Clean"] + read["Private_Dirty"]
    return {"pss": read["Pss"] / MIB, "rss": read["Rss"] / MIB, "own": private / MIB, "peak": read["VmHWM"] / MIB}


@contextlib.contextmanager
def kernels(count: int) -> Iterator[list[tuple[KernelManager, BlockingKernelClient]]]:
    """Run kernels of this Python in the folder of the notebooks."""
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
    """Run cells; RuntimeError with the traceback of one that fails."""
    for cell in cells:
        reply = client.execute_interactive(cell, timeout=CELL_LIMIT_S, output_hook=lambda _: None, allow_stdin=False)
        if reply["content"]["status"] != "ok":
            raise RuntimeError("\n".join(reply["content"]["traceback"]))


def pid_of(manager: KernelManager) -> int:
    return int(manager.provisioner.process.pid)  # type: ignore[union-attr]


def print_sizes(title: str, sizes: list[dict[str, float]]) -> None:
    """Print the sizes of similar processes, and the total for 30 of them: shared memory once, private 30 times."""
    mean = {name: statistics.mean(each[name] for each in sizes) for name in sizes[0]}
    shared = mean["rss"] - mean["own"]
    print(
        f"{title}: each {mean['pss']:.0f} MiB in proportion, {mean['rss']:.0f} resident ({mean['own']:.0f} its own), "
        f"at most {max(each['peak'] for each in sizes):.0f}"
    )
    if len(sizes) > 1:
        print(f"  {len(sizes)} together {len(sizes) * mean['pss']:,.0f} MiB in proportion")
        print(
            f"  {LEARNERS}: {shared:.0f} + {LEARNERS} x {mean['own']:.0f} = {shared + LEARNERS * mean['own']:,.0f} MiB"
        )


def memory(numbers: list[str], count: int) -> None:
    """Run a notebook in each of ``count`` kernels, a few at a time, then measure all of them."""
    for number in numbers:
        cells = cells_of(find_notebook(number))
        with kernels(count) as started:
            with ThreadPoolExecutor(PARALLEL_KERNELS) as pool:
                list(pool.map(run_all, (client for _, client in started), repeat(cells)))
            print_sizes(f"notebook {number}, {count} kernels", [memory_of(pid_of(manager)) for manager, _ in started])


@contextlib.contextmanager
def servers(count: int) -> Iterator[list[int]]:
    """Start JupyterLabs with separate settings, and wait until each answers."""
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
    """Return seconds from the start of a kernel to the first lab of a notebook: elapsed, and CPU time."""
    start = time.perf_counter()
    pictures: list[tuple[float, float]] = []

    with kernels(1) as [(manager, client)]:

        def record_picture(message: dict[str, Any]) -> None:
            if "image/png" in message["content"].get("data", {}):
                pictures.append((time.perf_counter() - start, cpu_seconds(psutil.Process(pid_of(manager)))))

        for cell in cells_of(find_notebook(number)):
            client.execute_interactive(cell, timeout=CELL_LIMIT_S, output_hook=record_picture)
            if pictures:
                return pictures[0]
    raise ValueError(f"notebook {number} shows no lab")


class PeakSampler(threading.Thread):
    """The peak proportional set size, in MiB, of a process and its descendants, sampled ten times a second."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.process, self.peak, self.ended = psutil.Process(pid), 0.0, threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.1):
            total = 0.0
            for each in [self.process, *self.process.children(recursive=True)]:
                with contextlib.suppress(OSError, KeyError):  # it has just ended
                    total += memory_of(each.pid)["pss"]
            self.peak = max(self.peak, total)


def each_alone(numbers: list[str]) -> None:
    """Print for each notebook the memory of a kernel after running it, and the peak."""
    print("MiB          resident at the end   at most   at most with the processes it starts   seconds")
    for path in map(find_notebook, numbers):
        with kernels(1) as [(manager, client)]:
            sampler, start = PeakSampler(pid_of(manager)), time.perf_counter()
            sampler.start()
            run_all(client, cells_of(path))
            sampler.ended.set()
            sampler.join()
            took, sizes = time.perf_counter() - start, memory_of(pid_of(manager))
            print(
                f"{path.stem:22} {sizes['rss']:9.0f} {sizes['peak']:9.0f} {sampler.peak:39.0f} {took:9.1f}", flush=True
            )


def playing(seconds: float) -> None:
    """Print the load of a core by kernel and server while a lab plays in a browser."""
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
            start, updates = time.perf_counter(), page.updates()
            before = {name: cpu_seconds(process) for name, process in processes.items()}
            page.page.wait_for_timeout(1000 * seconds)
            took = time.perf_counter() - start
            shares = ", ".join(f"{n} {(cpu_seconds(p) - before[n]) / took:.1%}" for n, p in processes.items())
            print(f"{speed}: {(page.updates() - updates) / took:.1f} updates/s; of a core: {shares}")


def cpu_seconds(process: psutil.Process) -> float:
    """Return the CPU time of a process."""
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    """Run the benchmark that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("what", choices=["memory", "each", "servers", "first", "playing"])
    parser.add_argument("notebooks", nargs="*")
    parser.add_argument("--kernels", type=int, default=10, help="or servers")
    options = parser.parse_args()
    if options.what == "memory":
        memory(options.notebooks or CORE, options.kernels)
    elif options.what == "each":
        each_alone(options.notebooks or [path.name[:2] for path in sorted((ROOT / "notebooks").glob("*.ipynb"))])
    elif options.what == "servers":
        with servers(options.kernels) as pids:
            print_sizes(f"{options.kernels} JupyterLabs", [memory_of(pid) for pid in pids])
    elif options.what == "first":
        for number in options.notebooks or CORE:
            for took, busy in (first(number) for _ in range(3)):
                print(f"notebook {number}: first picture after {took:.1f} s, {busy:.1f} s of them on a processor")
    else:
        playing(10)


if __name__ == "__main__":
    main()
