# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changed files of the site and of the controller: the policy, kept requests, and session.json as an inventory."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleParserError
from hostile import Choices, assert_one_message, changed, changed_bytes, fuzzed
from samples import SESSION, request

from ansible_collections.cluster.compute.plugins.inventory import sessions
from ansible_collections.cluster.compute.plugins.module_utils._head.policy_file import read_document
from ansible_collections.cluster.compute.plugins.module_utils._head.presence import policy_path
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import parse_policy
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy_rules import check_policy
from ansible_collections.cluster.compute.plugins.plugin_utils._client.request_cache import FOLDER, KeptRequests

POLICY: dict[str, Any] = {
    "default": {
        "sessions": 2, "containers": 8, "cpus": 16, "memory": "64g", "gpus": 2, "resource_groups": ["default"], "images": ["ubuntu:*"],
        "mounts": ["/data"], "volumes": "plain", "public_apps": False, "port_range": "30000-31000", "lifetime": 3600, "idle_timeout": 600,
        "priority": 50, "pids": 4096, "logs": "1g", "disk": "10g", "rdma": False,
    },
    "owners": {"alice": {"gpus": 4}},
    "groups": {"lab": {"owners": ["alice", "bob"], "cpus": 64}},
    "queue": {"policy": "backfill", "age_bound": 3600, "shares": {"alice": 2}, "half_life": 86400},
}  # fmt: skip
DOCUMENT = {
    "session": {"id": SESSION, "name": "train", "owner": "alice", "user": {"name": "work", "uid": 1000, "gid": 1000}},
    "containers": [{"hostname": "main1", "agent": "a", "rank": 0, "address": "10.0.0.2", "gpus": ["GPU-1"]}],
    "network": {"driver": "bridge"},
    "apps": [{"name": "ssh", "address": "127.0.0.1", "port": 30000}],
}
ASKED = request(mounts=[{"source": "/data", "target": "/data"}], lifetime=60)
FOLDERS = tempfile.TemporaryDirectory(prefix="cluster-compute-fuzz-")
BASE = Path(FOLDERS.name)


@fuzzed(1500)
def test_a_policy_is_refused_or_can_be_applied(choices: Choices) -> None:
    try:
        policy = parse_policy(changed(POLICY, choices))
    except ComputeError as error:
        assert_one_message(error.message)
        return
    try:
        check_policy(policy, ASKED)
    except ComputeError as error:
        assert_one_message(error.message[:500])


@fuzzed(500)
def test_the_file_of_a_policy_is_refused_or_read(choices: Choices) -> None:
    path = Path(policy_path(str(BASE)))
    path.write_bytes(changed_bytes(json.dumps(changed(POLICY, choices)).encode(), choices))
    path.chmod(0o600)
    try:
        assert isinstance(read_document(str(BASE)), dict)
    except ComputeError as error:
        assert_one_message(error.message)


@fuzzed(500)
def test_a_kept_request_is_refused_or_compared(choices: Choices) -> None:
    kept = KeptRequests(str(BASE))
    document = {"request": ASKED.to_json(), "files": {"token": "~/token"}}
    folder = BASE / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    text = json.dumps(changed(document, choices)).encode()
    (folder / SESSION).write_bytes(changed_bytes(text, choices) if choices.below(2) else text)
    os.chmod(folder / SESSION, 0o600)
    try:
        kept.check(SESSION, ASKED, "head1")
        assert all(isinstance(path, str) for path in kept.files(SESSION).values())
    except ComputeError as error:
        assert_one_message(error.message)


@fuzzed(300)
def test_an_inventory_is_refused_or_has_hosts_of_sessions_alone(choices: Choices) -> None:
    base = BASE / "sessions"
    (base / "train").mkdir(parents=True, exist_ok=True)
    (base / "train" / "session.json").write_text(json.dumps(changed(DOCUMENT, choices)))
    try:
        found = sessions._documents(str(base), [])
    except AnsibleParserError:
        return
    for name, host in sessions._hosts(found["train"], str(base / "train")):
        assert name.partition(".")[2] == host["ansible_host"]
        assert set(host["ansible_user"]) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
        json.dumps(host).encode()
