# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from ssh_lab import make_plan

from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh import config_files
from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import DEFAULT_PATH
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan, Port
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError

PLAN = make_plan("image", 3)


@pytest.mark.parametrize(
    ("entries", "own", "wanted"),
    [
        (["A=1", "B=x=y", "NOVALUE"], {}, {"A": "1", "B": "x=y"}),
        (["HOME=/root", "USER=root", "TERM=x"], {}, {}),
        (["HOME=/data"], {"HOME": "/data"}, {"HOME": "/data"}),
        (["A=1\n2", "B=1\r", "=x"], {}, {}),
        (["HOSTNAME=other"], {}, {"HOSTNAME": "other"}),
        (["PATH=/only"], {}, {"PATH": "/only"}),
    ],
)
def test_a_login_s_environment(entries: list[str], own: dict[str, str], wanted: dict[str, str]) -> None:
    container = replace(PLAN.containers[1], environment=own)
    given = {"HOSTNAME": "sub1", "PATH": f"/opt/cluster-compute/unprivileged:{DEFAULT_PATH}:/opt/cluster-compute/bin"}

    assert config_files.login_environment(entries, container) == {**given, **wanted}


def test_sshd_is_told_the_environment_in_one_directive() -> None:
    text = config_files.sshd_config({"B": 'say "hi" \\o/', "A": "#1 $X"}, "work", 1)

    assert [line for line in text.splitlines() if line.startswith("SetEnv")] == [
        'SetEnv "A=#1 $X" "B=say \\"hi\\" \\\\o/"'
    ]
    assert "AllowUsers work\n" in text


def test_sshd_accepts_public_keys_only_and_from_a_file_of_the_session() -> None:
    lines = config_files.sshd_config({}, "work", 1).splitlines()
    first: dict[str, str] = {}
    for line in lines:  # the first value of an option counts
        first.setdefault(*line.split(" ", 1))
    wanted = {"PasswordAuthentication": "no", "KbdInteractiveAuthentication": "no", "UsePAM": "no"}
    wanted.update(PermitRootLogin="no", AuthorizedKeysFile=config_files.AUTHORIZED_KEYS, PermitUserEnvironment="no")
    assert {name: first.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("subnet", "patterns"),
    [
        ("10.201.0.32/27", "10.201.0.*"),
        ("10.201.0.0/24", "10.201.0.*"),
        ("10.201.0.0/22", "10.201.0.*,10.201.1.*,10.201.2.*,10.201.3.*"),
        ("10.200.0.0/15", "10.200.*,10.201.*"),
        ("10.0.0.0/8", "10.*"),
    ],
)
def test_one_line_vouches_for_every_name_and_address(subnet: str, patterns: str) -> None:
    plan = replace(PLAN, network=replace(PLAN.network, subnet=subnet))

    assert config_files.authority_line(plan, "KEY") == "@cert-authority main*,sub*,%s KEY" % patterns


@pytest.mark.parametrize(
    ("image", "wanted"),
    [
        ("", "ours\n"),
        ("github.com ssh-rsa A\n", "ours\ngithub.com ssh-rsa A\n"),
        ("ours\nb\n", "ours\nb\n"),
    ],
)
def test_an_image_s_known_hosts_stay(image: str, wanted: str) -> None:
    assert config_files.known_hosts(image, "ours") == wanted


@pytest.mark.parametrize("image", ["", "Host other\n    Port 77\n"])
def test_an_image_s_client_configuration_is_read_after_ours(image: str) -> None:
    once = config_files.included_config(image)

    assert once == "IgnoreUnknown *\nInclude /etc/cluster-compute/ssh_config\n" + image
    assert config_files.included_config(once) == once


def test_logins_between_containers_use_a_cheap_key_exchange(tmp_path: Path) -> None:
    """Of the two that every OpenSSH since 6.5 knows, also where it runs in FIPS mode."""
    config = tmp_path / "config"
    config.write_text(config_files.client_config(PLAN))

    shown = subprocess.run(["ssh", "-G", "-F", str(config), "sub2"], capture_output=True, text=True, check=True).stdout
    assert "\nkexalgorithms curve25519-sha256@libssh.org,ecdh-sha2-nistp256\n" in shown


HOSTILE = """
Host *
    Port 2222
    User alice
    HostName elsewhere
    ProxyCommand nc %h %p
    ProxyJump bastion
    AddressFamily inet6
    CanonicalizeHostname always
    CASignatureAlgorithms rsa-sha2-512
    Ciphers aes256-cbc
    Compression yes
    ControlMaster auto
    ControlPath /nowhere/%C
    ControlPersist yes
    ForkAfterAuthentication yes
    GlobalKnownHostsFile /nowhere
    HostKeyAlgorithms rsa-sha2-512
    HostbasedAuthentication yes
    IdentityAgent /nowhere
    KexAlgorithms diffie-hellman-group14-sha256
    KnownHostsCommand /bin/false
    LogLevel DEBUG
    MACs hmac-sha1
    PermitLocalCommand yes
    PreferredAuthentications password
    PubkeyAcceptedAlgorithms rsa-sha2-512
    PubkeyAuthentication no
    RemoteCommand tmux
    RequestTTY force
    RevokedHostKeys /nowhere
    SessionType none
    StdinNull yes
    Tunnel yes
    UserKnownHostsFile /nowhere
    NoSuchOption yes
"""


def shown_of(folder: Path, host: str, image: str) -> list[str]:
    """What ssh would do, with the file of an image that includes ours."""
    ours, config = folder / "ours", folder / "config"
    ours.write_text(config_files.container_config(config_files.client_config(PLAN), "sub1"))
    config.write_text(config_files.included_config(image).replace(config_files.CLIENT_CONFIG, str(ours)))
    return subprocess.run(
        ["ssh", "-G", "-F", str(config), host], capture_output=True, text=True, check=True
    ).stdout.splitlines()


@pytest.mark.parametrize("host", ["sub2", PLAN.containers[2].address, "localhost", "127.0.0.1", "::1"])
def test_nothing_in_an_image_s_client_configuration_changes_a_connection_in_the_session(
    host: str, tmp_path: Path
) -> None:
    assert shown_of(tmp_path, host, HOSTILE) == shown_of(tmp_path, host, "")


def test_an_image_s_client_configuration_holds_for_other_hosts(tmp_path: Path) -> None:
    assert {"port 2222", "user alice", "hostname elsewhere"} <= set(shown_of(tmp_path, "github.com", HOSTILE))


def test_a_container_is_localhost_and_proves_by_its_name_that_it_is(tmp_path: Path) -> None:
    assert {"hostname 127.0.0.1", "hostkeyalias sub1", "user work"} <= set(shown_of(tmp_path, "localhost", ""))
    server = config_files.Server(port=2222, addresses=("192.0.2.1",))
    assert "    HostName sub1\n" in config_files.container_config("", "sub1", server)


@pytest.mark.parametrize(
    "folder",
    ["/plain/train", "/with space/train", "/per%cent/train", "/it's/train", '/q"uote\\d/train', "/größe/train"],
)
@pytest.mark.parametrize("host", ["main1", "sub2"])
def test_ssh_reads_the_controller_s_configuration(folder: str, host: str, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(config_files.controller_config(PLAN, "agent1.example.com", folder))

    shown = subprocess.run(["ssh", "-G", "-F", str(config), host], capture_output=True, text=True, check=True).stdout
    values = dict(line.split(" ", 1) for line in shown.splitlines())
    escaped = folder.replace("%", "%%")
    assert values["identityfile"] == escaped + "/id_container"
    assert values["userknownhostsfile"] in (escaped + "/known_hosts", folder + "/known_hosts")
    assert (values["user"], values["stricthostkeychecking"], values["identitiesonly"]) == ("work", "true", "yes")
    if host == "main1":
        wanted = ("agent1.example.com", str(PLAN.main.ports[0].host_port), "main1")
        assert (values["hostname"], values["port"], values["hostkeyalias"]) == wanted
    else:
        assert (values["hostname"], values["port"]) == ("sub2", "22")
        assert "main1" in values.get("proxyjump", "") + values.get("proxycommand", "")


@pytest.mark.parametrize(
    ("address", "proxy", "host", "quick"),
    [
        ("192.0.2.7", "", "main1", False),
        ("192.0.2.7", "", "sub1", True),  # through the connection to main1
        ("127.0.0.1", "", "main1", True),  # stays on this machine
        ("::1", "", "main1", True),
        ("127.0.0.1", "ssh -W [%h]:%p ssh://bastion", "main1", False),
    ],
)
def test_only_what_crosses_other_networks_takes_the_exchange_that_openssh_prefers(
    address: str, proxy: str, host: str, quick: bool, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text(config_files.controller_config(PLAN, address, "/plain/train", proxy))
    shown = subprocess.run(["ssh", "-G", "-F", str(config), host], capture_output=True, text=True, check=True).stdout
    (exchanges,) = [line for line in shown.splitlines() if line.startswith("kexalgorithms ")]
    assert "curve25519-sha256" in exchanges
    assert ("sntrup" not in exchanges) is quick


def test_the_jump_to_the_agent_is_that_of_main1_only(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(config_files.controller_config(PLAN, "192.0.2.7", "/plain/train", "ssh -W [%h]:%p ssh://bastion"))

    found = {}
    for host in ("main1", "sub1"):
        shown = subprocess.run(
            ["ssh", "-G", "-F", str(config), host], capture_output=True, text=True, check=True
        ).stdout
        found[host] = dict(line.split(" ", 1) for line in shown.splitlines())
    assert found["main1"]["proxycommand"] == "ssh -W [%h]:%p ssh://bastion"
    assert found["main1"]["hostname"] == "192.0.2.7"
    assert found["sub1"]["proxyjump"] == "main1"
    assert "proxycommand" not in found["sub1"]


@pytest.mark.parametrize("address", ["2001:db8::7", "fe80::7%eth0"])
def test_main1_at_an_address_of_ipv6(address: str, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(config_files.controller_config(PLAN, address, str(tmp_path)))
    shown = subprocess.run(["ssh", "-G", "-F", str(config), "main1"], capture_output=True, text=True, check=True).stdout
    assert f"\nhostname {address}\n" in shown


@pytest.mark.parametrize(("published", "address"), [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("192.0.2.7",) * 2])
def test_where_the_controller_finds_main1(published: str, address: str) -> None:
    main = replace(PLAN.main, ports=(Port("app", 80, "x", 1), Port("ssh", 22, published, 30000)))

    assert config_files.default_address(replace(PLAN, containers=(main,))) == address


def test_a_session_without_a_published_port_is_refused() -> None:
    with pytest.raises(ComputeError, match="publishes no SSH port of main1"):
        config_files.ssh_port(replace(PLAN, containers=(replace(PLAN.main, ports=()),)))


@pytest.mark.parametrize(
    ("size", "memory", "most"),
    [(1, 4096, 100), (50, 4096, 100), (1000, 8192, 2000), (1000, 512, 128), (2, 64, 16), (2, 16, 10)],
)
def test_connections_without_a_login_are_bounded_by_size_and_memory(size: int, memory: int, most: int) -> None:
    text = config_files.sshd_config({}, "work", config_files.startups(size, memory << 20))
    assert f"\nMaxStartups {most}\nPerSourceMaxStartups {most // 2}\nLoginGraceTime 60\n" in text


def test_a_login_whose_client_is_lost_ends_within_three_minutes() -> None:
    """sshd asks by itself: it would otherwise wait for hours, and what the login runs with it."""
    assert "\nClientAliveInterval 30\nClientAliveCountMax 6\n" in config_files.sshd_config({}, "work", 1)


def test_the_server_of_an_image_gets_nothing_that_it_may_not_know() -> None:
    server = config_files.Server("/usr/sbin/sshd", 2222, "/etc/sshd.pid")
    lines = config_files.sshd_config({}, "work", 10, server).splitlines()
    own = config_files.sshd_config({}, "work", 10).splitlines()

    assert set(lines) - set(own) == {"Port 2222", "PidFile /etc/sshd.pid"}
    assert "PerSourceMaxStartups 5" in set(own) - set(lines)


def test_logins_between_containers_take_the_port_of_their_servers(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(config_files.client_config(PLAN, 2222))

    shown = subprocess.run(["ssh", "-G", "-F", str(config), "sub2"], capture_output=True, text=True, check=True).stdout
    assert "\nport 2222\n" in shown


def on_hosts(published: str) -> Plan:
    main, *subs = PLAN.containers
    ports = (Port("ssh", 30001, published, 30001),)
    network = replace(PLAN.network, driver="host", ssh_port=30001)
    return replace(PLAN, network=network, containers=(replace(main, ports=ports), *subs))


@pytest.mark.parametrize(
    ("published", "rank", "addresses"),
    [
        ("127.0.0.1", 0, ["127.0.0.1", "own"]),
        ("192.0.2.1", 0, ["192.0.2.1", "own"]),
        ("0.0.0.0", 0, ["0.0.0.0"]),
        ("0.0.0.0", 1, ["own"]),
        ("::", 0, ["0.0.0.0", "::"]),
        ("2001:db8::1", 0, ["2001:db8::1", "own"]),
    ],
)
def test_on_the_network_of_hosts_sshd_listens_where_it_is_needed(
    published: str, rank: int, addresses: list[str]
) -> None:
    made = on_hosts(published)
    server = config_files.server_of(made.network, made.containers[rank])
    lines = config_files.sshd_config({}, "work", 10, server).splitlines()
    wanted = [made.containers[rank].address if address == "own" else address for address in addresses]
    assert sorted(line.split()[1] for line in lines if line.startswith("ListenAddress")) == sorted(wanted)
    assert lines[0] == "Port 30001"


def test_on_the_network_of_hosts_every_client_takes_the_planned_port(tmp_path: Path) -> None:
    made, config = on_hosts("127.0.0.1"), tmp_path / "config"
    config.write_text(config_files.controller_config(made, "127.0.0.1", str(tmp_path)))
    for host in ("main1", "sub2"):
        shown = subprocess.run(["ssh", "-G", "-F", str(config), host], capture_output=True, text=True, check=True)
        assert "\nport 30001\n" in shown.stdout
    keys = {one.hostname: f"key{one.rank}" for one in made.containers}
    assert (
        config_files.pinned_lines(made, keys).splitlines()[1]
        == f"[sub1]:30001,[{made.containers[1].address}]:30001 key1"
    )
