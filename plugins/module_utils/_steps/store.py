# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that provide the session store, and read its policy and its ledger."""

from __future__ import annotations

import time
from typing import Optional, Sequence, Tuple

from .._head.maintenance import adopt
from .._head.policy_file import read_document, read_policy, write_document
from .._head.quotas import by_owner, policy_lines, quota_entries, uses
from .._head.session_record import Requester
from .._head.state_folder import Folder, desired, engine_group, provide_directory
from .._head.store import Store
from .._shared.codec import Json
from .._shared.documents.plan import App
from .._shared.documents.report import AgentReport
from .._shared.documents.step_documents import Change
from .._shared.errors import StateError
from .._shared.names import check_owner
from .._shared.planning import fair_share, policy_rules
from .._shared.planning.policy import parse_policy
from .._shared.text.table import usage_csv, usage_lines
from .step import Head


def provide(head: Head, docker_host: str = "", policy: Optional[Json] = None) -> Json:
    """Provide the directory of the store for the users of the engine, and write the policy of the site if it is given."""
    directory, gid = head.directory, engine_group(docker_host)
    before, after = Folder.of(directory), desired(directory, gid)
    old, new = _policies(directory, policy)
    if before != after and not head.check:
        provide_directory(directory, after)
        Store(directory).close()
    if old != new and not head.check:
        write_document(directory, new)
    return {
        "changed": before != after or old != new,
        "state_dir": directory,
        "mode": after.mode,
        "gid": after.gid,
        "diff": {"before": {**before.to_json(), "policy": old}, "after": {**after.to_json(), "policy": new}},
    }


def _policies(directory: str, policy: Json | None) -> Tuple[Json | None, Json]:
    """The current policy and the new one. The current one is None if it cannot be read: the new one then replaces it."""
    if policy is None:
        return {}, {}
    parse_policy(policy)
    try:
        return read_document(directory), policy
    except StateError:
        return None, policy


def policy(head: Head, agents: Sequence[Json] = ()) -> Json:
    """The policy of the site as C(policy), and what owners have of what it permits as C(owners) and C(lines)."""
    document = read_document(head.directory)
    site = parse_policy(document)
    reports = tuple(AgentReport.from_json(report) for report in agents)
    with Store.opened(head.directory, read_only=True) as store:
        adopt(store, reports, now=0.0)
        found = quota_entries(site, by_owner(uses(store.holding(), reports)))
    return {"policy": document, "owners": found, "lines": policy_lines(site, found)}


def check_relays(head: Head, relays: Sequence[App], owner: str, port_range: str) -> Change:
    """Refuse relays of a running session whose apps or ports the policy of the site does not permit this owner."""
    policy_rules.permit_relays(read_policy(head.directory), check_owner("session_owner", owner), relays, port_range)
    return Change()


def check_commit(head: Head, session: str, owner: str, image: str) -> Change:
    """Refuse an image of a session that is not this owner's, that another login requested, or that the policy does not permit."""
    policy_rules.permit_commit(read_policy(head.directory), check_owner("session_owner", owner), image)
    with Store.opened(head.directory, read_only=True) as store:
        row, requester = store.need(session), store.requester(session)
        if row.owner != owner or (requester and requester.uid != Requester.of_this_process().uid):
            message = f"Session {row.name} of {row.owner} is another login's: only the login that launched it makes images of it."
            raise StateError(message, row.name)
    return Change()


def usage(head: Head, owner: Optional[str] = None, month: Optional[str] = None) -> Json:
    """Return what owners have used by month, or in one, as C(usage), C(lines) and C(csv)."""
    groups = {name: group.owners for name, group in read_policy(head.directory).groups.items()}
    with Store.opened(head.directory, read_only=True) as store:
        found = fair_share.usage(store.holdings(), groups, time.time())
    if owner:
        found = [entry for entry in found if (entry["kind"], entry["name"]) == ("owner", owner)]
    if month:
        found = [entry for entry in found if entry["month"] == month]
    return {"usage": found, "lines": usage_lines(found, month), "csv": usage_csv(found)}
