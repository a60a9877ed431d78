#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure what a session costs, side by side in one run: the engine alone, this collection, and a playbook of loops.

The floor for N is to create and start (and then remove) N containers of the same image on a bridge, in parallel, with
the Docker SDK alone. The budget is given in docs/architecture.md §9: 1.2 times the floor plus 4 seconds.

Usage: bench.py [--sizes 4,16,32,64,128] [--three-agents 12,48,96] [--agents 10,100] [--memory 64m] [--runs 3]
                [--loops 4,16,32] [--slurm 8] [--json FILE] [--plot FILE] [--compare FILE]

The second run of a launch, which changes nothing, its proof by SSH, and three agents with an overlay network have rows of their own;
so has the growth of a session from three to five containers beside a launch of two, whose time it should take at most 1.2 times;
so has a session with Slurm beside one of the same image without it, than which it should take at most 5 seconds more;
so have many agents with ten containers each, whose engines are stubs (many_agents.py), after 20 launches at once and a pass over
100 of them (boundary.py). After three agents comes the throughput of each network that a session over hosts can have (networks.py).
An empty list leaves a part out: --three-agents '', --agents '', --loops '' or --slurm ''. --json writes the medians, in seconds, to a file, --plot draws them as SVG, and
--compare shows them beside the file of an earlier run.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import docker
from docker.errors import APIError
from many_agents import Cost, ManyAgents, plan_bytes
from overlay import ThreeAgents, proof_seconds
from plot import svg

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "cluster-compute/reference:1"
NAME = f"bench-{uuid.uuid4().hex[:6]}"
BUNDLE = "ansible==12.3.0"
COLLECTIONS = ("community/docker/", "community/library_inventory_filtering_v1/")
THREADS = 8
PER_AGENT = 10  # containers on each of many agents
ARTIFACTS = Path.home() / ".cluster-compute"
SILENCE = 300  # seconds for a call of the floor: an engine that removes many containers by force can be silent for long
PATIENCE = 30.0  # seconds for the engine to release the endpoints of removed containers


Rows = dict[str, dict[str, float]]  # by row, as in "launch of 16": seconds by column, as in "ours"


def main() -> int:
    """Measure every size and print the tables."""
    options = _options()
    # Read first: a missing or unreadable file stops the run before it has cost anything.
    before: Rows | None = json.loads(options.compare.read_text(encoding="utf-8"))["rows"] if options.compare else None
    parts = ["placement.py", "lists.py", "queue_pass.py", "modules.py", *(["boundary.py"] if options.agents else [])]
    failed = failed_parts(parts)
    _play("playbooks/provision_agents.yml")
    # The sessions of a stopped run of this user hold what this run needs.
    _play("playbooks/terminate.yml", "-e", f"session_name=bench-{'[0-9a-f]' * 6}", "-e", "session_many=true")
    print(f"\nmedian of {options.runs} runs, seconds; budget = 1.2 x floor + 4")
    print(f"{'N':>8}  {'':8}{'floor':>8}{'ours':>8}{'budget':>8}{'ours/budget':>13}{'loops':>8}{'loops/ours':>12}")
    rows = _one_agent(options)
    if options.three_agents:
        with ThreeAgents(IMAGE) as agents:
            for size in options.three_agents:
                floor, ours = functools.partial(agents.floor, size), functools.partial(agents.ours, size)
                rows.update(_measure(f"{size} on 3", options.runs, floor, ours, None))
            rows.update(_growth("3", options.runs, agents.grown))
        failed += failed_parts(["networks.py"])
    for agents in options.agents:
        rows.update(_many(agents))
    if options.plot:
        options.plot.write_text(svg("Launch of N containers", _lines_of(rows)), encoding="utf-8")
    if options.json:
        document = {"unit": "seconds", "runs": options.runs, "rows": rows}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if before is not None:
        print(compared(before, rows))
    if failed:
        print(f"\nfailed, see its output above: {', '.join(failed)}")
    return bool(failed)


def failed_parts(parts: list[str], folder: Path = ROOT / "tests/bench") -> list[str]:
    """Run each of these programs. Returns those that failed, such as by a budget: the others still measure."""
    return [part for part in parts if subprocess.run([sys.executable, str(folder / part)], check=False).returncode]


def _one_agent(options: argparse.Namespace) -> Rows:
    rows: Rows = {}
    for size in options.sizes:
        ours = functools.partial(_ours, size, options.memory)
        loops = functools.partial(_loops, size) if size in options.loops else None
        rows.update(_measure(str(size), options.runs, functools.partial(_floor, size), ours, loops))
    if options.sizes:
        rows.update(_growth("1", options.runs, functools.partial(_grown, options.memory)))
    for size in options.slurm:
        rows.update(_slurm(size, options.runs))
    return rows


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=_sizes, default=[4, 16, 32, 64, 128], metavar="N,N,...", help="on one agent")
    parser.add_argument("--three-agents", type=_sizes, default=[12, 48, 96], metavar="N,N,...", help="on an overlay")
    parser.add_argument("--agents", type=_sizes, default=[10, 100], metavar="N,N,...", help="with ten containers each")
    parser.add_argument(
        "--loops", type=_sizes, default=[4, 16, 32], metavar="N,N,...", help="sizes for the playbook of loops"
    )
    parser.add_argument("--slurm", type=_sizes, default=[8], metavar="N,N,...", help="with and without Slurm")
    parser.add_argument("--memory", default="64m", help="memory of each container on one agent")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the medians to this file")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw the launches over the number of containers, as SVG"
    )
    parser.add_argument("--compare", type=Path, metavar="FILE", help="show the medians beside those of an earlier run")
    return parser.parse_args()


def _sizes(text: str) -> list[int]:
    return [int(word) for word in text.split(",") if word]


Times = Callable[[], tuple[float, ...]]


def _measure(size: str, runs: int, floor: Times, ours: Times, loops: Times | None) -> Rows:
    """The rows of a size. Loops run once, because the difference is large."""
    bare, (launch, second, end, proof) = _median(floor, runs), _median(ours, runs)
    other = loops() if loops else None
    rows: Rows = {}
    for index, (what, seconds) in enumerate((("launch", launch), ("end", end))):
        row = {"floor": bare[index], "ours": seconds, **({"loops": other[index]} if other else {})}
        rows[f"{what} of {size}"] = row
        _print_row(size, what, row)
    for what, seconds in (("second run", second), ("proof", proof)):
        rows[f"{what} of {size}"] = {"ours": seconds}
        print(f"{size:>8}  {what.partition(' ')[0]:8}{'-':>8}{seconds:8.2f}", flush=True)
    return rows


def _print_row(size: str, what: str, row: dict[str, float]) -> None:
    floor, ours, loops = row["floor"], row["ours"], row.get("loops")
    budget = 1.2 * floor + 4
    other = f"{loops:8.1f}{loops / ours:11.1f}x" if loops else f"{'-':>8}{'-':>12}"
    print(f"{size:>8}  {what:8}{floor:8.2f}{ours:8.2f}{budget:8.2f}{ours / budget:13.2f}{other}", flush=True)


def _growth(agents: str, runs: int, grown: Times) -> Rows:
    """The row of a growth by two containers beside the launch of two, in turn."""
    growth, launch = _median(grown, runs)
    shown = f"{growth:.2f} s, a launch of 2 {launch:.2f} s, ratio {growth / launch:.2f}"
    print(f"growth from 3 to 5 on {agents}: {shown}; load {os.getloadavg()[0]:.1f}", flush=True)
    return {f"growth by 2 on {agents}": {"ours": growth, "launch of 2": launch}}


def _slurm(size: int, runs: int) -> Rows:
    """The row of launches with Slurm beside launches of the same image without it, in turn. A launch ends when all nodes have registered."""
    _play("playbooks/build_environments.yml", "-e", "environments=slurm")
    slurm, without = _median(functools.partial(_with_and_without_slurm, size), runs)
    shown = f"{slurm:.2f} s, without it {without:.2f} s, {slurm - without:.2f} s more"
    print(f"launch of {size} with Slurm: {shown}; load {os.getloadavg()[0]:.1f}", flush=True)
    return {f"Slurm on {size}": {"ours": slurm, "without": without}}


def _with_and_without_slurm(size: int) -> tuple[float, float]:
    seconds = []
    for apps in (["slurm"], []):
        more = json.dumps({"session_image": "slurm", "session_apps": apps})
        seconds.append(_timed(lambda more=more: _play(*_launch_words(NAME, size, "256m"), "-e", more)))
        _play("playbooks/terminate.yml", "-e", f"session_name={NAME}")
    return seconds[0], seconds[1]


def _many(agents: int) -> Rows:
    """The rows of many agents with stub engines; run once. Bytes are those of the plan for one agent, and of its list of names."""
    size = PER_AGENT * agents
    with ManyAgents(agents) as many:
        costs = {"launch": many.launch(size), "second run": many.launch(size), "end": many.end()}
    rows = {f"{what} of {size} on {agents}": _cost_row(cost) for what, cost in costs.items()}
    whole, names = plan_bytes(size, PER_AGENT)
    for name, row in rows.items():
        shown = f"{row['ours']:.1f} s, controller {row['cpu']:.1f} s of CPU time, {row['memory']:.0f} MB"
        print(f"{name}: {shown}")
    print(f"plan for one of {agents} agents: {whole} bytes, {names} of them the list of names", flush=True)
    return {**rows, f"plan of {size} for one agent": {"bytes": whole, "of names": names}}


def _cost_row(cost: Cost) -> dict[str, float]:
    return {"ours": cost.seconds, "cpu": cost.cpu, "memory": cost.memory / 1e6}


def _lines_of(rows: Rows) -> dict[str, list[tuple[float, float]]]:
    """The launches as lines of a plot."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for name, row in rows.items():
        words = name.split()
        if words[0] != "launch" or "floor" not in row:
            continue
        where = "three agents" if words[-2:] == ["on", "3"] else "one agent"
        budget = {"budget": 1.2 * row["floor"] + 4}
        for column, seconds in {**row, **budget}.items():
            if column != "loops":
                lines.setdefault(f"{where}: {column}", []).append((float(words[2]), seconds))
    return lines


def compared(before: Rows, after: Rows) -> str:
    """A table of two runs. The change of ours says little where the floor has changed as well: so did the machine."""
    lines = ["", f"{'before and after, seconds':<28}{'before':>9}{'after':>9}{'change':>9}"]
    for name, row in after.items():
        for column, seconds in row.items():
            earlier = before.get(name, {}).get(column)
            text = (
                f"{earlier:9.2f}{seconds:9.2f}{100 * (seconds / earlier - 1):+8.1f}%"
                if earlier
                else f"{'-':>9}{seconds:9.2f}{'-':>9}"
            )
            lines.append(f"{name + ', ' + column:<28}{text}")
    return "\n".join(lines)


def _median(measure: Times, runs: int) -> tuple[float, ...]:
    return tuple(statistics.median(column) for column in zip(*[measure() for _ in range(runs)], strict=True))


def _timed(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def _floor(size: int) -> tuple[float, float]:
    """The Docker SDK alone: create, start and remove."""
    client = docker.APIClient(
        base_url=os.environ.get("DOCKER_HOST"), version="auto", timeout=SILENCE, max_pool_size=THREADS
    )
    network = client.create_network(f"{NAME}-floor", driver="bridge", labels={"cluster.compute.bench": NAME})["Id"]
    made: list[str] = []

    def create_and_start(_number: int) -> None:
        host = client.create_host_config(network_mode=network, mem_limit="64m", nano_cpus=1_000_000_000)
        container = client.create_container(IMAGE, command=["sleep", "600"], host_config=host)["Id"]
        made.append(container)
        client.start(container)

    def remove(index: int) -> None:
        client.remove_container(made[index], force=True)

    def everywhere(function: Callable[[int], None], items: list[int]) -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(function, items))

    try:
        launch = _timed(lambda: everywhere(create_and_start, list(range(size))))
    finally:
        end = _timed(lambda: everywhere(remove, list(range(len(made)))))
        _remove_network(client, network)
    return launch, end


def _remove_network(client: docker.APIClient, network: str) -> None:
    """Remove the network as soon as the engine has released the endpoints of containers that it removed by force.

    An engine can lose such an endpoint, and keeps the network until it is started again; that is no result of the benchmark.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return client.remove_network(network)
        except APIError as error:
            if "active endpoints" not in str(error):
                raise
            if time.monotonic() > deadline:
                return print(f"The engine keeps the network {network[:12]} of the floor: {error.explanation}")
        time.sleep(0.2)


def _ours(size: int, memory: str) -> tuple[float, float, float, float]:
    """The commands that a user types: the launch, the same again, and the end; and the proof, which is a part of the launch."""
    launch = _launch_words(NAME, size, memory)
    begun = _timed(lambda: _play(*launch))
    proof = proof_seconds(ARTIFACTS / NAME)
    second = _timed(lambda: _play(*launch))
    return begun, second, _timed(lambda: _play("playbooks/terminate.yml", "-e", f"session_name={NAME}")), proof


def _launch_words(session: str, size: int, memory: str) -> list[str]:
    launch = {"session_name": session, "session_cluster_size": size, "session_cpus": 1, "agent_cpus": max(64, size)}
    amounts = {**launch, "session_memory": memory, "session_shm": "16m"}
    return ["playbooks/cluster_session.yml", *(word for name in amounts for word in ("-e", f"{name}={amounts[name]}"))]


def _grown(memory: str) -> tuple[float, float]:
    """The command that grows a session from three containers to five, and the launch of another session with two."""
    names = (f"{NAME}-grows", f"{NAME}-two")
    _play(*_launch_words(names[0], 3, memory))
    growth = _timed(lambda: _play(*_launch_words(names[0], 5, memory)))
    launch = _timed(lambda: _play(*_launch_words(names[1], 2, memory)))
    for name in names:
        _play("playbooks/terminate.yml", "-e", f"session_name={name}")
    return growth, launch


def _loops(size: int) -> tuple[float, float]:
    """The same with the modules of community.docker in loops; run once, because the difference is large."""
    with tempfile.TemporaryDirectory() as folder:
        state = ("-e", f"size={size}", "-e", f"cluster={NAME}-loops", "-e", f"image={IMAGE}", "-e", f"folder={folder}")
        path = str(_bundled())
        try:
            launch = _timed(lambda: _play("tests/bench/loops.yml", *state, "-e", "state=present", collections=path))
        finally:
            end = _timed(lambda: _play("tests/bench/loops.yml", *state, "-e", "state=absent", collections=path))
    return launch, end


def _bundled() -> Path:
    """The folder of community.docker, extracted from the community bundle once and kept in .cache/."""
    target = ROOT / ".cache" / "bench"
    if not (target / "ansible_collections/community/docker").is_dir():
        with tempfile.TemporaryDirectory() as folder:
            download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, BUNDLE]
            subprocess.run(download, check=True)
            with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
                wanted = tuple(f"ansible_collections/{part}" for part in COLLECTIONS)
                wheel.extractall(target, [name for name in wheel.namelist() if name.startswith(wanted)])
    return target


def _play(playbook: str, *arguments: str, collections: str = "") -> None:
    environment = dict(os.environ, ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"), ANSIBLE_PYTHON_INTERPRETER=sys.executable)
    environment["ANSIBLE_STDOUT_CALLBACK"] = "default"
    if collections:
        environment["ANSIBLE_COLLECTIONS_PATH"] = collections
    program = str(Path(sys.executable).parent / "ansible-playbook")
    done = subprocess.run(
        [program, "-i", "inventory/local.yml", playbook, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{playbook} failed:\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}")


if __name__ == "__main__":
    sys.exit(main())
