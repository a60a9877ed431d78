# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action ``ssh`` over running containers of several hosts: each is asked first, and each gets the names of all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conducted import conducted

from ansible_collections.cluster.compute.plugins.action import ssh
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.container_files import SshFiles
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, InputError

ADDRESSES = {"web": "172.18.0.2", "db": "172.18.0.3"}
PLACES = {"web": "a", "db": "b"}


def answer(host: str, options: Json) -> Json:
    """What a host says: the containers that it has, or that it has installed SSH in them."""
    if options.get("bundle"):
        return {
            "changed": True,
            "installed": [one["hostname"] for one in options["plan"]["containers"]],
            "duration": 0.1,
        }
    return {
        "changed": False,
        "found": [found(name) for name in options["names"] if PLACES[name] == host],
    }


def found(name: str, **more: Any) -> Json:
    resources = {"millicpus": 0, "memory": 1 << 30}
    own = {"name": name, "id": "0" * 64, "network": "n" * 64, "address": ADDRESSES[name], "prefix": 16}
    return {**own, "resources": resources, **more}


def installed(play: Any, folder: Path, **more: Any) -> Json:
    defaults = {"plan": None, "hostnames": [], "name": "set-1", "network": "", "user": {}, "port": 22, "address": None}
    containers = [{"name": "web"}, {"name": "db"}]
    options = {
        **defaults,
        "containers": containers,
        "artifacts": str(folder),
        "docker_host": None,
        "timeout": 60,
        **more,
    }
    return ssh.ActionModule.conduct(None, play, options)  # type: ignore[arg-type]


def test_each_host_gets_its_own_keys_and_the_names_of_all(tmp_path: Path) -> None:
    play = conducted({"ssh": answer}, "a", "b")
    result = installed(play, tmp_path, port=2222)

    assert (result["installed"], result["addresses"], result["changed"]) == (["web", "db"], ADDRESSES, True)
    assert (tmp_path / "set-1" / "identity").exists()
    asked = {host: options for host, _step, options in play.asked if options.get("bundle")}
    bundles = {host: SshFiles.from_parameter(options["bundle"]) for host, options in asked.items()}
    assert {host: list(bundle.hosts) for host, bundle in bundles.items()} == {"a": ["web"], "b": ["db"]}
    assert {Plan.from_json(options["plan"]).addresses for options in asked.values()} == {tuple(ADDRESSES.items())}
    assert all("    Port 2222\n" in bundle.client_config for bundle in bundles.values())
    assert {options["port"] for options in asked.values()} == {2222}


def test_only_the_named_host_is_asked_for_a_container(tmp_path: Path) -> None:
    play = conducted({"ssh": answer}, "a", "b", "c")
    installed(play, tmp_path, containers=[{"name": "web", "host": "a"}, {"name": "db", "host": "b"}])

    first = [(host, params["names"]) for host, step, params in play.asked if step == "ssh.find"]
    assert first == [("a", ["web"]), ("b", ["db"])]


def test_check_mode_leaves_no_keys(tmp_path: Path) -> None:
    assert installed(conducted({"ssh": answer}, "a", "b", check=True), tmp_path)["changed"]
    assert list(tmp_path.iterdir()) == []


def test_keys_of_a_failed_call_are_removed(tmp_path: Path) -> None:
    def failing(host: str, options: Json) -> Json:
        return {"failed": True, "msg": "no server"} if options.get("bundle") else answer(host, options)

    with pytest.raises(ComputeError, match="no server"):
        installed(conducted({"ssh": failing}, "a", "b"), tmp_path)
    assert not (tmp_path / "set-1").exists()


@pytest.mark.parametrize(
    "lie",
    [
        {"address": "172.18.0.2 evil"},
        {"address": "::1"},
        {"id": "web; reboot"},
        {"prefix": 0},
        {"network": "../n"},
        {"resources": {"memory": "1g"}},
    ],
)
def test_what_a_host_says_is_checked(lie: Json, tmp_path: Path) -> None:
    play = conducted({"ssh": {"found": [found("web", **lie)]}}, "a")
    with pytest.raises(ComputeError, match="The answer of a is refused"):
        installed(play, tmp_path, containers=[{"name": "web"}])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"containers": None}, "plan: .*must be set, or containers"),
        ({"plan": {"schema": 1}}, "plan: .*must be set, or containers"),
        ({"name": None}, "name: .*must be set with containers"),
        ({"name": "x"}, "4 to 64 letters"),
        ({"port": 0}, "port: 0"),
        ({"containers": [{"name": "web", "host": "z"}]}, "'z': must be a host of the play"),
    ],
)
def test_bad_options_are_refused(options: Json, message: str, tmp_path: Path) -> None:
    play = conducted({"ssh": answer}, "a", "b")
    with pytest.raises(InputError, match=message):
        installed(play, tmp_path, **options)
    assert list(tmp_path.iterdir()) == []
