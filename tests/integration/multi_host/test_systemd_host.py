# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bare host with systemd becomes an agent, reboots, runs passes over its own queue, and becomes an ordinary host again.

The tests share the host, in their order; the last one removes the agent.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from agents_lab import Agents
from controller import Done
from servers import until
from systemd_lab import NAME, SystemdHost

RULES = "iptables --table mangle --list-rules"
GUARD = "cluster-compute-overlay-guard.service"
LOOK = "cluster-compute-overlay-guard-check.service"
TIMER = "cluster-compute-overlay-guard.timer"
FLUSH = "iptables --table mangle --flush; iptables --table mangle --delete-chain"
# A firewall that replaces all rules, of all programs, at its start and at a reload.
FIREWALL = """
ls /usr/sbin/nft || DEBIAN_FRONTEND=noninteractive apt-get install -y nftables || exit 1
printf '#!/usr/sbin/nft -f\\nflush ruleset\\n' > /etc/nftables.conf
systemctl enable nftables
"""
FOLDER = "/opt/controller"
IN_CHECKOUT = (
    f"cd {FOLDER}/checkout && PATH={FOLDER}/venv/bin:$PATH ANSIBLE_CONFIG={FOLDER}/checkout/ansible.cfg "
    "ANSIBLE_NOCOLOR=1 ANSIBLE_STDOUT_CALLBACK=default ansible-playbook -i inventory/local.yml playbooks/"
)
QUEUED = "-e session_name=queued -e session_cpus=0.2 -e session_memory=64m -e session_shm=16m"
LOG = ".local/share/cluster-compute/cluster-compute-queue.log"
TIMERS = "systemctl --user list-timers --no-pager"
ABSENT = ("-e", "agent_state=absent")


@pytest.fixture(scope="module")
def host(engine_host: str) -> Iterator[SystemdHost]:
    made = SystemdHost()
    try:
        made.make()
        yield made
    finally:
        made.destroy()


@pytest.fixture(scope="module")
def provisioned(host: SystemdHost) -> Done:
    """The first run of the playbook on the bare host. The reference image is a copy: molecule's `default` builds it on its host."""
    assert host.shell(NAME, "command -v dockerd").code != 0
    first = host.provision("--skip-tags", "runtime").check()
    host.load_reference()
    host.provision("--tags", "runtime").check()
    return first


@pytest.fixture(scope="module")
def agents(
    engine_host: str, host: SystemdHost, provisioned: Done, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Agents]:
    """A controller for this agent."""
    made = Agents(tmp_path_factory.mktemp("systemd") / "own", engine_host, host)
    yield made
    made.clean()


def test_systemd_runs_the_engine_of_a_bare_host(host: SystemdHost, provisioned: Done) -> None:
    assert provisioned.changed > 0
    assert host.says(f"systemctl is-enabled docker {GUARD} {LOOK} {TIMER}").split() == ["enabled"] * 4
    assert host.says("ps -o ppid= -C dockerd") == "1", "systemd has started it"
    assert host.says("systemctl is-system-running") == "running"


def test_a_stopped_engine_is_started_by_the_next_provisioning(host: SystemdHost, provisioned: Done) -> None:
    """And changes nothing else."""
    host.says("systemctl stop docker.socket docker.service")
    assert host.provision().check().changed == 1
    assert host.says("systemctl is-active docker") == "active"


def test_the_rules_against_frames_outlast_flushes_and_firewalls(host: SystemdHost, provisioned: Done) -> None:
    rules = host.says(RULES)
    assert "CLUSTER-COMPUTE" in rules
    shown = host.says(f"systemctl show --property Unit --value {TIMER}; systemctl is-active {TIMER}").split()
    assert (shown[0], shown[-1]) == (LOOK, "active")
    host.says(FLUSH)
    assert "CLUSTER-COMPUTE" not in host.says(RULES)
    host.says(f"systemctl start {LOOK}")  # as the timer does each minute
    assert host.says(RULES) == rules
    host.says(FIREWALL)
    for event in ("start", "reload", "restart"):
        host.says(f"systemctl {event} nftables")
        # The command ends when the firewall has its rules, and the units that it carries along may end a moment later.
        host.says("while systemctl list-jobs | grep overlay-guard; do sleep 0.1; done")
        assert host.says(RULES) == rules, event
    host.says("systemctl disable --now nftables; systemctl restart docker")
    assert host.says(RULES) == rules
    assert host.says(f"systemctl is-active {GUARD} || true") in ("active", "reloading")
    assert host.provision().check().changed == 0


def test_a_session_of_before_a_reboot_is_repaired(agents: Agents, host: SystemdHost) -> None:
    wanted = {"session_cluster_size": 2, "session_command": "sleep 600"}
    train = agents.launched("train", **wanted)
    before = (train.id, train.addresses)
    assert agents.launch("train", **wanted).check().changed == 0
    rules = host.says(RULES)
    assert "CLUSTER-COMPUTE" in rules
    host.reboot()
    # All of this without a playbook.
    assert host.says("systemctl is-active docker; docker info --format '{{.Swarm.LocalNodeState}}'").split() == [
        "active",
        "active",
    ]
    assert host.says(RULES) == rules
    assert "RUNNING (degraded)" in agents.play("sessions").check().text
    assert "RUNNING, main1, sub1 brought back" in agents.launch("train", **wanted).check().text
    assert (train.id, train.addresses) == before
    assert train.say("main1", "ssh sub1 hostname") == "sub1"
    agents.terminate("train").check()
    assert host.held(NAME) == []


def test_the_timer_of_a_user_makes_passes_after_a_reboot_too(host: SystemdHost, provisioned: Done) -> None:
    host.make_controller(FOLDER)
    # The login that provisioned the host may last; its user manager does not have the group docker.
    host.says("systemctl stop user@1000")
    install = f"{IN_CHECKOUT}queue_timer.yml -e timer_minutes=5"
    queue_up = f"{IN_CHECKOUT}cluster_session.yml {QUEUED} -e agent_schedulable=false"
    assert "Session queued is PENDING" in host.login(queue_up).check().text
    shown = host.login(install).check().text
    assert "runs every 5 minutes, by systemd" in shown
    assert "ask an administrator for loginctl enable-linger" in shown, "this user may not"
    assert "systemctl restart user@" not in shown
    until(lambda: "Session queued: RUNNING" in host.login(f"cat {LOG}").text, "the first pass")
    host.says("loginctl enable-linger admin; usermod --append --groups users admin")
    again = host.login(install).check()
    assert (again.changed, "enable-linger" in again.text) == (0, False)
    assert "ask an administrator for systemctl restart user@1000" in " ".join(again.text.split())
    host.says(f"rm /home/admin/{LOG}")
    host.reboot()
    until(lambda: host.shell(NAME, f"test -s /home/admin/{LOG}").code == 0, "a pass without a login")
    assert "cluster-compute-queue.timer" in host.login(TIMERS).check().text
    host.login(f"{install} -e timer_state=absent").check()
    assert "cluster-compute-queue" not in host.login(f"{TIMERS}; find .config .local -type f").check().text
    host.login(f"{IN_CHECKOUT}terminate.yml -e session_name=queued").check()


def test_the_last_agent_becomes_an_ordinary_host(host: SystemdHost, provisioned: Done) -> None:
    assert host.provision(*ABSENT).check().changed > 0
    for unit in (GUARD, LOOK, TIMER):
        assert host.shell(NAME, f"systemctl cat {unit} || systemctl is-active {unit}").code != 0
    assert "CLUSTER-COMPUTE" not in host.says(RULES)
    # A second run has nothing else to remove.
    assert host.provision(*ABSENT, "-e", "agent_remove_engine=true").check().changed == 1
    assert host.shell(NAME, "command -v dockerd || pgrep dockerd || systemctl is-active docker docker.socket").code != 0
    assert host.says("systemctl is-system-running") == "running"
