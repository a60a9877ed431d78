# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of a container: PID 1 passes TERM to every program, waits for them, and ends.

Needs an engine that was made an agent (playbooks/provision_agents.yml), and ssh-keygen.
"""

from __future__ import annotations

import io
import socket
import tarfile
import time
from collections.abc import Callable, Iterator

import docker
import pytest
from docker.models.containers import Container
from requests.exceptions import RequestException
from runtime_lab import DEADLINE, REFERENCE, Folder, Keys, Lab, exit_code, go, has, run, wait_for_sshd
from servers import until

# Longer than any test: a container that ends only when its grace is over fails the test by the limit of `stop`.
LONG = 600
SAVED = "/home/work/checkpoint"
# A program that needs its output and its time to save: it fails if either is taken away before.
PROGRAM = """set -e
save() {
    echo saving
    sleep 1
    echo saving still
    echo saved >~/checkpoint
    exit 0
}
trap save TERM
echo ready >~/ready
while :; do
    sleep 1 & # A loop of short sleeps would count as use of a container on a busy machine.
    wait || true
done
"""


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def lab(keys: Keys) -> Iterator[Lab]:
    made = Lab(docker.from_env(timeout=300), keys)
    yield made
    made.remove()


def begin(lab: Lab, **scripts: str) -> Container:
    """A container that listens, with the program in the user's home."""
    main = lab.start("main1", REFERENCE, scripts)
    wait_for_sshd(main)
    run(main, "cat >program.sh <<'EOF'\n%sEOF\n" % PROGRAM)
    return main


def read(container: Container, path: str) -> str:
    """A file of a container that may have stopped."""
    chunks, _facts = container.get_archive(path)
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        file = archive.extractfile(path.rpartition("/")[2])
        return file.read().decode() if file else ""


def saved(container: Container) -> str:
    return read(container, SAVED)


def wait_until_ready(container: Container) -> None:
    until(lambda: has(container, "/home/work/ready"), "the program runs")


WAYS = {
    "ssh": "ssh main1 sh program.sh",
    "ssh with a terminal": "ssh -tt main1 sh program.sh",
    "a login shell": "{ echo sh program.sh; sleep 1000; } | ssh -tt main1",
    "left behind by ssh": "ssh main1 'setsid sh program.sh >/dev/null 2>&1 &'; sleep 1000",
    "tmux": "ssh main1 tmux new-session -d sh program.sh; sleep 1000",
    "a shell in tmux": "ssh main1 'tmux new-session -d; tmux send-keys \"sh program.sh\" Enter'; sleep 1000",
    "docker exec": "sh program.sh",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_program_saves_its_state_when_the_container_is_stopped(lab: Lab, way: str) -> None:
    main = begin(lab, grace="%d\n" % LONG)
    command = ["sh", "-c", WAYS[way]]
    main.exec_run(command, user="work", workdir="/home/work", environment={"HOME": "/home/work"}, detach=True)
    wait_until_ready(main)
    main.stop(timeout=LONG // 4)
    assert saved(main) == "saved\n"
    assert main.wait(timeout=DEADLINE)["StatusCode"] == 143
    assert b"not every program ended" not in main.logs()


def test_the_batch_command_saves_its_state_when_the_container_is_stopped(lab: Lab) -> None:
    main = begin(lab, grace="%d\n" % LONG, command="sh ~/program.sh\n")
    go(main)
    wait_until_ready(main)
    main.stop(timeout=LONG // 4)
    assert saved(main) == "saved\n"
    main.start()
    until(lambda: main.logs().count(b"Server listening on 0.0.0.0") == 2, "sshd listens again")
    run(main, "rm ready checkpoint")
    go(main)
    wait_until_ready(main)


def test_the_batch_command_saves_its_state_when_its_time_is_up(lab: Lab) -> None:
    """Also in a process group of its own, as the children of mpirun are."""
    main = begin(lab, grace="%d\n" % LONG, timeout="1\n", command="#!/bin/bash\nset -m\nsh ~/program.sh &\nwait\n")
    go(main)
    assert exit_code(main) == "124"
    assert saved(main) == "saved\n"


def test_a_program_that_ignores_term_is_killed_after_the_grace(lab: Lab) -> None:
    main = begin(lab, grace="1\n")
    stubborn = "trap '' TERM HUP; touch ready; while :; do sleep 1; done"
    main.exec_run(["sh", "-c", stubborn], user="work", workdir="/home/work", detach=True)
    wait_until_ready(main)
    main.stop(timeout=LONG // 4)
    assert main.wait(timeout=DEADLINE)["StatusCode"] == 143
    assert b"not every program ended within 1 s of TERM" in main.logs()


@pytest.mark.parametrize("way", ["sleep 1000 | ssh -tt main1", "ssh main1 tmux new-session -d; sleep 1000", ""])
def test_idle_shells_and_terminals_end_at_once(lab: Lab, way: str) -> None:
    main = begin(lab, grace="%d\n" % LONG)
    if way:
        main.exec_run(["sh", "-c", way], user="work", environment={"HOME": "/home/work"}, detach=True)
        until(lambda: "136,0" in run(main, "ps -e -o tty,args"), "a shell waits for input at /dev/pts/0")
    main.stop(timeout=LONG // 4)
    assert main.wait(timeout=DEADLINE)["StatusCode"] == 143
    assert b"not every program ended" not in main.logs()


def test_a_program_that_hides_behind_an_odd_name_is_ended(lab: Lab) -> None:
    main = begin(lab, grace="%d\n" % LONG)
    odd = "import time, pathlib; pathlib.Path('/proc/self/comm').write_text('x) Z *\\n(sshd) '); open('ready', 'w'); time.sleep(999)"
    main.exec_run(["python3", "-c", odd], user="work", workdir="/home/work", detach=True)
    wait_until_ready(main)
    main.stop(timeout=LONG // 4)
    assert main.wait(timeout=DEADLINE)["StatusCode"] == 143
    assert b"not every program ended" not in main.logs()


def test_children_that_lost_their_parent_do_not_stay_as_zombies(lab: Lab) -> None:
    main = begin(lab)
    run(main, "for _ in 1 2 3; do ssh main1 'sleep 0.1 & exit'; done")
    until(lambda: "Z" not in run(main, "ps -e -o stat="), "no process is a zombie")


# Seconds since a container was in use. Read from outside: a program in the container would use it.
QUIET = "/etc/cluster-compute/run/quiet"
BURN = "while :; do :; done"


def limited(lab: Lab, limits: str, hosts: str = "main1", hostname: str = "main1", **files: str) -> Container:
    """A container of a session with these limits."""
    own = {"HOST": hostname, "HOSTS": hosts, "ROLE": hostname[:-1], "SIZE": str(len(hosts.split(",")))}
    environment = {"BACKENDAI_CLUSTER_" + name: text for name, text in own.items()}
    made = lab.start(hostname, REFERENCE, {"limits": limits, **files}, environment=environment)
    wait_for_sshd(made)
    return made


def test_a_container_ends_by_itself_after_its_lifetime_with_a_warning_before(lab: Lab) -> None:
    main = limited(lab, "lifetime 20 %d\n" % time.time())
    shell = "sleep 1000 | ssh -tt main1 >seen"
    main.exec_run(
        ["sh", "-c", shell], user="work", workdir="/home/work", environment={"HOME": "/home/work"}, detach=True
    )
    run(main, "cat >program.sh <<'EOF'\n%sEOF\n" % PROGRAM)
    main.exec_run(
        ["sh", "program.sh"], user="work", workdir="/home/work", environment={"HOME": "/home/work"}, detach=True
    )
    assert main.wait(timeout=4 * DEADLINE)["StatusCode"] == 80
    assert saved(main) == "saved\n"
    assert "*** This session ends in" in read(main, "/home/work/seen")
    assert b"Save your work." in main.logs()


def test_a_lifetime_may_be_raised_while_the_container_runs(lab: Lab) -> None:
    main = limited(lab, "lifetime 15 %d\n" % time.time())
    main.put_archive("/etc/cluster-compute", Folder().add("limits", "lifetime 9999 %d\n" % time.time()).bytes())
    with pytest.raises(RequestException):
        main.wait(timeout=20)
    main.put_archive("/etc/cluster-compute", Folder().add("limits", "lifetime 1 %d\n" % time.time()).bytes())
    assert main.wait(timeout=2 * DEADLINE)["StatusCode"] == 80


def test_an_idle_session_ends_in_all_containers_and_a_busy_one_does_not(lab: Lab) -> None:
    """A sub that is busy keeps main1, although main1 is idle itself; then a program on main1 saves its state."""
    main = limited(lab, "idle 5\n", "main1,sub1")
    run(main, "cat >program.sh <<'EOF'\n%sEOF\n" % PROGRAM)
    main.exec_run(
        ["sh", "program.sh"], user="work", workdir="/home/work", environment={"HOME": "/home/work"}, detach=True
    )
    sub = limited(lab, "idle 5\n", "main1,sub1", "sub1")
    sub.update(cpu_period=100000, cpu_quota=20000)  # four times of what counts as use
    sub.exec_run(["sh", "-c", BURN], user="work", detach=True)
    # It asks the sub every few seconds; that is no use.
    until(lambda: int(read(main, QUIET) or 0) >= 6 * 5, "main1 is idle for longer than its limit", 4 * DEADLINE)
    assert int(read(sub, QUIET) or 0) < 5
    run(sub, "kill $(ps -e -o pid,args | grep '[w]hile :' | sed 's/^ *//; s/ .*//')")
    assert main.wait(timeout=4 * DEADLINE)["StatusCode"] == 81
    assert sub.wait(timeout=4 * DEADLINE)["StatusCode"] == 81
    assert b"was idle for" in main.logs()
    assert saved(main) == "saved\n"


def test_a_login_by_ssh_keeps_a_session(lab: Lab) -> None:
    main = limited(lab, "idle 5\n")
    main.exec_run(["sh", "-c", "ssh main1 sleep 15"], user="work", environment={"HOME": "/home/work"}, detach=True)
    until(lambda: "sleep 15" in run(main, "ps -e -o args"), "the login lasts")
    with pytest.raises(RequestException):
        main.wait(timeout=10)
    assert main.wait(timeout=4 * DEADLINE)["StatusCode"] == 81


def test_the_time_of_a_pause_is_not_idle(lab: Lab) -> None:
    """No program can run during a pause, and a user who ends the pause still wants the session."""
    main = limited(lab, "idle 8\n")
    until(lambda: has(main, QUIET) and int(read(main, QUIET) or 0), "main1 is idle")
    main.pause()
    time.sleep(20)
    before = read(main, QUIET)
    main.unpause()
    until(lambda: read(main, QUIET) not in ("", before), "main1 looks again")
    assert int(read(main, QUIET) or 0) < 20
    assert main.wait(timeout=4 * DEADLINE)["StatusCode"] == 81


def ends_when_idle(container: Container, keep: float, stop: Callable[[], object]) -> None:
    """The container is in use for these seconds, which exceed its limit, and ends when its use stops."""
    with pytest.raises(RequestException):
        container.wait(timeout=keep)
    stop()
    assert container.wait(timeout=4 * DEADLINE)["StatusCode"] == 81


def test_a_connection_to_an_app_keeps_a_session(lab: Lab) -> None:
    """An open page holds such a connection. That of a program of the container itself is no use."""
    files = {"app/web/command": "#!/bin/sh\nexec python3 -m http.server 8000\n", "apps": "web 8000 / 1\nend\n"}
    main = limited(lab, "idle 8\n", **files)
    main.reload()
    address = main.attrs["NetworkSettings"]["Networks"][lab.network.name]["IPAddress"]
    until(lambda: b"app web is ready" in main.logs(), "the app answers")
    own = "import socket, time; kept = socket.create_connection(('127.0.0.1', 8000)); time.sleep(999)"
    main.exec_run(["python3", "-c", own], user="work", detach=True)
    page = socket.create_connection((address, 8000))
    ends_when_idle(main, 20, page.close)


NVIDIA_SMI = """#!/bin/sh
[ "$*" = "--query-gpu=utilization.gpu --format=csv,noheader,nounits" ] || exit 1
[ "$(id -u)" = 1000 ] || exit 2
cat /tmp/percents
"""


def test_gpus_that_compute_keep_a_session_and_gpus_that_only_hold_memory_do_not(lab: Lab) -> None:
    """A program stands for that of the driver: no GPU is here."""
    main = limited(lab, "idle 20\n")

    def gpus(*percents: str) -> None:
        main.put_archive("/", Folder().add("tmp/percents", "\n".join(percents) + "\n").bytes())

    gpus("0", "37")
    main.put_archive("/", Folder().add("usr/bin/nvidia-smi", NVIDIA_SMI, 0o755).bytes())
    ends_when_idle(main, 45, lambda: gpus("0", "[N/A]", "4"))


def test_a_driver_that_does_not_answer_holds_nothing_up(lab: Lab) -> None:
    main = limited(lab, "idle 8\nlifetime 40 %d\n" % time.time())
    main.put_archive("/", Folder().add("usr/bin/nvidia-smi", "#!/bin/sh\ntrap '' TERM\nsleep 999\n", 0o755).bytes())
    assert main.wait(timeout=DEADLINE)["StatusCode"] == 81
