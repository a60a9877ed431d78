# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who may log in to the containers of a session."""

from __future__ import annotations

from samples import PUBLIC_KEY, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.container_files import (
    ImageContents,
    file_entries,
)
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.rootfs import Tree
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.plugin_utils._client.identity import make_bundle
from ansible_collections.cluster.compute.plugins.plugin_utils._client.keys import Identity

OTHER = PUBLIC_KEY.replace("alice@laptop", "alice@desk")


def authorized(made: Plan, identity: Identity) -> list[list[str]]:
    """The lines of authorized_keys of each container."""
    bundle, found = make_bundle(made, identity, made.containers), []
    for container in made.containers:
        contents = ImageContents(Tree(lambda _path: None))
        entries = file_entries(bundle, container, made.session, {"PATH": "/bin"}, contents)
        [entry] = [one for one in entries if one.path == "/etc/cluster-compute/authorized_keys"]
        found.append((entry.content or b"").decode().splitlines())
    return found


def test_the_keys_of_the_request_log_in_to_every_container_beside_those_of_the_session() -> None:
    made = plan(request(cluster_size=2, authorized_keys=[PUBLIC_KEY, OTHER]))
    identity = Identity(b"x" * 32, made.session.id)
    own = [identity.cluster.public, identity.user.public]
    assert authorized(Plan.from_json(made.to_json()), identity) == [[*own, PUBLIC_KEY, OTHER]] * 2
    assert authorized(plan(request(cluster_size=2)), identity) == [own] * 2


def test_a_session_without_keys_of_its_owner_has_the_digest_that_it_had() -> None:
    assert request().differences(request(authorized_keys=[PUBLIC_KEY])) == ["authorized_keys"]
    assert request().digest == request(authorized_keys=[]).digest != request(authorized_keys=[PUBLIC_KEY]).digest
