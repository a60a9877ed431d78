# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container cannot send frames into the overlay of another session, also where the Swarm has another data path port."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from agents_lab import NAMES, Agents, Lab
from controller import Session

# The tasks of the role that these tests are about.
SWARM = ("--tags", "swarm")
ONE = {"session_cpus": 1, "session_memory": "64m"}
THREE = {**ONE, "session_cluster_size": 3, "session_cluster_mode": "multi-node"}
GUARD = "/usr/local/sbin/cluster-compute-overlay-guard"
VXLAN_ID = "docker network inspect --format '{{{{json .Options}}}}' {}"

# Prints every datagram until the one with the text "end".
LISTEN = """
import socket
heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
heard.bind(("", 9999))
print("listening", flush=True)
while (text := heard.recv(99).decode()) != "end":
    print(text, flush=True)
"""
# A frame of VXLAN with a datagram in it, sent by an ordinary socket: what it needs can be guessed.
FORGE = """
import socket, struct
def checksum(data):
    total = sum(struct.unpack(f"!{{len(data) // 2}}H", data))
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
target, vni, agents = socket.inet_aton("{target}"), {vni}, {agents}
text = b"forged"
header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(text), 1, 0, 64, 17, 0, target[:3] + bytes([target[3] ^ 1]), target)
header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
datagram = struct.pack("!HHHH", 9999, 9999, 8 + len(text), 0) + text
frame = b"\\x02\\x42" + target + b"\\x02\\x42\\0\\0\\0\\x01" + b"\\x08\\0" + header + datagram
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _round in range(10):
    for agent in agents:
        try:
            sender.sendto(struct.pack("!II", 0x08000000, vni << 8) + frame, (agent, {port}))
        except OSError:
            pass  # refused
"""
# What an account of a host gets from a port.
ASK = """python3 -c 'import os, socket; os.setuid({uid}); print(socket.create_connection(("{address}", 22), 5).recv(3))'"""
END = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'end', ('{}', 9999))"


def forged_frames(lab: Lab, victim: Session, attacker: Session, host: str) -> list[str]:
    """What a container of the victim receives while the attacker sends to all agents."""
    target = next(container["address"] for container in victim.document["containers"] if container["hostname"] == host)
    options = json.loads(lab.shell("agent1", VXLAN_ID.format(victim.document["network"]["name"])).check().text)
    vni = options["com.docker.network.driver.overlay.vxlanid_list"]
    agents = [lab.address(name) for name in NAMES]
    command = ["ssh", "-F", victim.config, host, "python3 -"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdin is not None
        assert listener.stdout is not None
        listener.stdin.write(LISTEN)
        listener.stdin.close()
        assert listener.stdout.readline() == "listening\n"
        said = FORGE.format(target=target, vni=vni, agents=agents, port=lab.port)
        attacker.ssh("main1", "python3 -", said=said).check()
        peer = "main1" if host != "main1" else "sub1"
        victim.ssh(peer, "python3 -", said=END.format(target)).check()
        return listener.stdout.read().splitlines()


def assert_only_root_reaches(lab: Lab, session: Session) -> None:
    """The session's bridge: an account of its host gets no connection to a port of a container, which is not published."""
    (container,) = session.document["containers"]
    asked = [lab.shell(container["agent"], ASK.format(uid=uid, address=container["address"])) for uid in (0, 65534)]
    assert [one.code == 0 for one in asked] == [True, False], asked
    assert "SSH" in asked[0].text
    assert "timed out" in asked[1].text


def warned(agents: Agents, folder: Path) -> list[str]:
    """The pairs of agents for which the doctor warns; empty if it found that containers are kept out."""
    report = folder / "findings.json"
    agents.play("check_agents", check_file=str(report), agent_check_seconds=0)
    found = [finding for finding in json.loads(report.read_text())["findings"] if finding["check"] == "isolation"]
    assert found
    return [finding["where"] for finding in found if finding["status"] != "ok"]


def test_the_rules_are_for_the_port_of_the_swarm(agents: Agents, lab: Lab) -> None:
    """Also on workers, whose engines do not know it."""
    for name in NAMES:
        found = lab.shell(name, "iptables --table mangle --list-rules | grep dport").check().text
        assert re.findall(r"-A (\w+) .*--dport (\d+) ", found) == [("INPUT", str(lab.port)), ("FORWARD", str(lab.port))]
    assert agents.play("provision_agents", *SWARM, "--check").check().changed == 0


def test_frames_of_other_sessions_do_not_arrive(agents: Agents, lab: Lab, tmp_path: Path) -> None:
    """The victim has two containers on agent1 and one on agent2, where the attacker is."""
    victim = agents.launched("victim", **THREE)
    for name in NAMES:
        lab.shell(name, f"{GUARD} stop").check()
    assert len(warned(agents, tmp_path)) == 9
    on_agent2 = {"session_agents": ["agent2"], "session_agents_policy": "strict", **ONE}
    launched = agents.launch("attacker", session_preflight=True, **on_agent2).check()
    assert f"{', '.join(NAMES)}: the rules are missing" in launched.text
    attacker = Session(agents, "attacker")
    assert attacker.document["containers"][0]["agent"] == "agent2"
    assert victim.document["containers"][2]["agent"] == "agent2"
    assert "forged" in forged_frames(lab, victim, attacker, "main1"), "the attack works without the rules"
    assert "forged" in forged_frames(lab, victim, attacker, "sub2"), "also on the agent of the attacker"

    done = agents.play("provision_agents", *SWARM).check()
    assert len(re.findall("^changed: ", done.text, re.MULTILINE)) == 3
    assert_only_root_reaches(lab, attacker)
    assert forged_frames(lab, victim, attacker, "main1") == []
    assert forged_frames(lab, victim, attacker, "sub2") == []


def test_the_rules_outlast_the_engine(agents: Agents, whole: Lab, tmp_path: Path) -> None:
    agents.play("terminate", session_name="*", session_many=True).check()
    assert whole.kill_engine("agent2").wait(timeout=60) == 0
    whole.start_engine("agent2")
    assert warned(agents, tmp_path) == []
