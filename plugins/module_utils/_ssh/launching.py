# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two steps of a launch on one agent: create all containers, and start them with their files."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Mapping, Tuple

from .._core.documents import Json
from .._docker.containers import AgentContainers
from .._docker.data_folders import check_folders_answer
from .._docker.networks import present
from .._docker.read_only_root import writable_folders
from .._module import joined
from .container_files import Bundle
from .installer import FileInstaller, Installation, Lacking


def created(launch: AgentContainers, bundle: Bundle | None, *, network: bool) -> Json:
    """Create the containers, with ``network`` after their network. With a bundle, the engine unpacks their files."""
    begun = time.monotonic()
    made = present(launch.engine, launch.plan, launch.check) if network else {}
    seconds = round(time.monotonic() - begun, 3)
    result = launch.created().to_json()
    if bundle is not None:
        installed = FileInstaller(launch.engine, launch.plan, launch.agent, bundle).install((), launch.check)
        result = {**joined(result, installed), "installed": installed["installed"]}
    if not made:
        return result
    return {**joined(made, result), "network": made["network"], "network_duration": seconds}


def started(launch: AgentContainers, bundle: Bundle | None) -> Json:
    """Start the containers. With a bundle, PID 1 of each container that has no files gets them.

    The files are prepared while the first containers start, which takes the engine longer.
    """
    if bundle is None:
        return launch.started().to_json()
    # The engine reads files of the containers, for which it needs the folders that they mount.
    check_folders_answer(launch.plan.session, launch.agent)
    installer = FileInstaller(launch.engine, launch.plan, launch.agent, bundle)
    lacking = installer.lacking()
    with ThreadPoolExecutor(1) as pool:
        prepared = pool.submit(_prepared, installer, lacking)
        files = {name: partial(_archive_of, prepared, name) for name in lacking.listed}
        result = replace(launch, files=files).started().to_json()
    installed = prepared.result()[0].to_json()
    return {**joined(result, installed), "installed": installed["installed"]}


def _prepared(installer: FileInstaller, lacking: Lacking) -> Tuple[Installation, Mapping[str, bytes]]:
    installation = installer.prepared(lacking)
    return installation, installation.archives(writable_folders(installer.plan.session))


def _archive_of(prepared: Future[Tuple[Installation, Mapping[str, bytes]]], name: str) -> bytes:
    return prepared.result()[1][name]
