#!/usr/bin/env python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm over the containers of a session, as the session's user: the command of the app `slurm`.

On main1 it starts munged, slurmctld, slurmd and, by SSH, `slurm-session node` in every other container, which starts munged and slurmd
there. Once all nodes have registered, the app's port answers with the output of sinfo and squeue. The daemons run in process sessions
of their own, so they survive an end of this program. It ends with exit code 1 when a node is down, which makes the session unhealthy,
and PID 1 starts it again. It then starts the missing daemons; on a node that is down, only after the node has been down for a minute.

The key of munge is derived from the token of the app, which is derived from the secret of the session.
"""

from __future__ import annotations

import glob
import hashlib
import hmac
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

BASE = Path("/tmp/.slurm")
ETC = BASE / "etc"  # /etc/slurm links to it
SOCKET = BASE / "munge.socket"
# A busy container must not seem dead: slurmd answers a ping of slurmctld within this time.
SLURMD_TIMEOUT = 30
# A node stays down so long that lists and metrics show it.
SHOWN = 60
FIRST_START, NEXT_START = 100, 15
PAUSE = 3
CONFIG = """\
ClusterName=session
SlurmctldHost={main}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={base}/munge.socket
StateSaveLocation={state}
SlurmdSpoolDir={base}/spool
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/slurmd.pid
SlurmctldLogFile={base}/slurmctld.log
SlurmdLogFile={base}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU={memory_per_cpu}
SlurmdParameters=config_overrides
SlurmdTimeout={timeout}
ReturnToService=2
MinJobAge=86400
MpiDefault={mpi}
TaskProlog=/usr/local/libexec/slurm-task-prolog
GresTypes=gpu
NodeName={nodes} CPUs={cpus} RealMemory={memory}{gres} State=UNKNOWN
PartitionName=session Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
# No control group is used. Slurm 22.05, which has no plugin for that, tries none of what that for version 1 could do.
CGROUPS = "CgroupPlugin={}\n"


def read_number(path: str) -> int | None:
    """The first number of a file; None if there is none, which means no limit."""
    try:
        word = Path(path).read_text().split()[0]
    except (OSError, IndexError):
        return None
    return int(word) if word.isdigit() else None


def cpu_count() -> int:
    """The whole CPUs of this container, as /etc/mpi/hostfile has them: at least one."""
    quota, period = read_number("/sys/fs/cgroup/cpu.max"), 100000
    if quota is None:
        quota = read_number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
        period = read_number("/sys/fs/cgroup/cpu/cpu.cfs_period_us") or period
    return max(1, quota // period if quota else len(os.sched_getaffinity(0)))


def memory_size() -> int:
    """The memory of this container, in MiB."""
    files = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
    host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(host, *(read_number(path) or host for path in files)) >> 20


def gpu_files() -> list[str]:
    """The device files of the GPUs of this container: NVIDIA's, else AMD's."""
    return sorted(glob.glob("/dev/nvidia[0-9]*"), key=lambda path: (len(path), path)) or (
        sorted(glob.glob("/dev/dri/renderD*")) if os.path.exists("/dev/kfd") else []
    )


def slurm_conf(hosts: list[str], state: Path) -> str:
    """The configuration that all nodes share. The containers of a session have the same limits."""
    cpus, memory, gpus = cpu_count(), memory_size(), len(gpu_files())
    user = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
    return CONFIG.format(
        main=hosts[0],
        user=user,
        base=BASE,
        state=state,
        nodes=",".join(hosts),
        cpus=cpus,
        memory=memory,
        memory_per_cpu=max(1, memory // cpus),
        mpi="pmix" if glob.glob("/usr/lib/*/slurm*/mpi_pmix.so") else "none",
        gres=f" Gres=gpu:{gpus}" if gpus else "",
        timeout=SLURMD_TIMEOUT,
    )


def write(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Replace a file at once: a daemon may read it."""
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    new.touch(mode)
    new.write_bytes(content)
    new.replace(path)


def is_running(daemon: str) -> bool:
    """Whether the process of a daemon's PID file exists and has its name."""
    pid = read_number(str(BASE / f"{daemon}.pid"))
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == daemon
    except OSError:
        return False


def start(daemon: str, *options: str) -> None:
    """Start a daemon that does not run. It returns once the daemon is in the background, in a process session of its own."""
    if not is_running(daemon):
        subprocess.run([f"/usr/sbin/{daemon}", *options], check=True, stdin=subprocess.DEVNULL, timeout=60)


def prepare(given: dict[str, str]) -> None:
    """Write the files of this container and start munged."""
    os.umask(0o022)
    for directory in (BASE, ETC, BASE / "spool"):
        directory.mkdir(exist_ok=True)
        if directory.stat().st_uid != os.getuid():
            raise SystemExit(f"{directory} does not belong to the session's user; remove it")
    write(BASE / "munge.key", bytes.fromhex(given["key"]), 0o600)
    write(ETC / "slurm.conf", given["config"].encode())
    write(
        ETC / "cgroup.conf",
        CGROUPS.format("cgroup/v1" if " 22." in str(output("slurmd", "-V")) else "disabled").encode(),
    )
    write(ETC / "gres.conf", "".join(f"Name=gpu File={path}\n" for path in gpu_files()).encode())
    files = [
        f"--{name}-file={BASE}/munge{suffix}"
        for name, suffix in (("key", ".key"), ("log", "d.log"), ("pid", "d.pid"), ("seed", ".seed"))
    ]
    start("munged", f"--socket={SOCKET}", "--num-threads=2", *files)


def start_node(given: dict[str, str]) -> None:
    prepare(given)
    start("slurmd")


def start_on(host: str, given: dict[str, str], deadline: float) -> str:
    """Start the daemons of another container, whose sshd may start at the same time. Returns what is wrong, if anything."""
    command = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", host, "slurm-session node"]
    while True:
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return ""
        if done.returncode != 255 or time.monotonic() > deadline:
            return f"slurmd of {host} does not start: {(done.stderr.strip().splitlines() or ['no output'])[-1]}"
        time.sleep(0.3)


def output(*command: str) -> str | None:
    """The output of a command; None if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def nodes() -> list[list[str]] | None:
    """The name, the state, the reason and its time of each node; None if slurmctld does not answer."""
    lines = output("sinfo", "-h", "-N", "-o", "%N|%T|%E|%H")
    return None if lines is None else [line.split("|") for line in lines.splitlines()]


def dead(found: list[list[str]]) -> list[str]:
    """The nodes that slurmctld has set down because their slurmd does not answer."""
    return [name for name, state, reason, _since in found if state.startswith("down") and reason == "Not responding"]


def is_fresh(found: list[list[str]]) -> bool:
    """Whether a node is dead for less than the time for which it is shown."""
    limit = datetime.now().timestamp() - SHOWN
    return any(
        datetime.fromisoformat(since).timestamp() > limit
        for name, _state, _reason, since in found
        if name in dead(found)
    )


def waits(found: list[list[str]] | None) -> bool:
    """Whether a node has not yet registered. A node that its user has set down has."""
    return found is None or any(state.endswith("*") or state.startswith("unk") for _name, state, *_reason in found)


def start_all(hosts: list[str], token: str) -> None:
    """Start what does not run, and return once all nodes have registered. Raises SystemExit with what is wrong."""
    before = nodes() if is_running("slurmctld") else None
    if before and is_fresh(before):
        raise SystemExit(f"down: {', '.join(dead(before))}; slurmd is started again after {SHOWN} s")
    deadline = time.monotonic() + (NEXT_START if before else FIRST_START)
    # The image may have been made from another session's container, whose jobs must not run again.
    state = BASE / os.environ["BACKENDAI_SESSION_ID"]
    given = {"key": hashlib.sha512(b"munge" + token.encode()).hexdigest(), "config": slurm_conf(hosts, state)}
    prepare(given)
    state.mkdir(exist_ok=True)
    start("slurmctld")
    start("slurmd")
    with ThreadPoolExecutor(16) as threads:
        wrong = [text for text in threads.map(lambda host: start_on(host, given, deadline), hosts[1:]) if text]
    if wrong:
        raise SystemExit("; ".join(wrong))
    found = nodes()
    while waits(found):
        if time.monotonic() > deadline:
            raise SystemExit(f"not every node has registered: {found}; the logs are in {BASE}")
        time.sleep(0.1)
        found = nodes()


def serve(token: str) -> None:
    """Answer at the app's port, to those who have its token, with what Slurm shows."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = parse_qs(urlsplit(self.path).query).get("token", [""])[0]
            if not hmac.compare_digest(given.encode(), token.encode()):
                self.send_error(403)
                return
            text = f"{output('sinfo', '-N', '-l')}\n{output('squeue')}"
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_arguments: object) -> None:
            """Write no log: it would contain the token."""

    server = ThreadingHTTPServer(("", int(os.environ["APP_PORT"])), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def watch() -> None:
    """Return once a slurmd is dead or slurmctld does not answer, with what is wrong."""
    silent = 0
    while silent < 3:
        time.sleep(PAUSE)
        found = nodes()
        silent = 0 if found is not None else silent + 1
        if found and dead(found):
            raise SystemExit(f"down: {', '.join(dead(found))} (slurmd does not answer)")
    raise SystemExit(f"slurmctld does not answer; its log is {BASE}/slurmctld.log")


def end(_signal: int, _frame: object) -> None:
    """The app is removed, started again by its user, or ends with the session."""
    subprocess.run(["timeout", "3", "scontrol", "shutdown"], capture_output=True, check=False)
    deadline = time.monotonic() + 3
    while is_running("slurmctld") and time.monotonic() < deadline:
        time.sleep(0.1)
    sys.exit(0)


def main() -> None:
    if sys.argv[1:] == ["node"]:
        start_node(json.load(sys.stdin))
        return
    signal.signal(signal.SIGTERM, end)
    token = Path(os.environ["APP_TOKEN_FILE"]).read_text()
    start_all(os.environ["BACKENDAI_CLUSTER_HOSTS"].split(","), token)
    serve(token)
    watch()


if __name__ == "__main__":
    main()
