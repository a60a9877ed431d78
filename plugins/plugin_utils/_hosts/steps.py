# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of hosts, as the controller calls them: by name, because their files are imported where they run.

A reference such as ``CONTAINERS_CREATED`` has the parameters and the result of the function that it stands for. Called with the
parameters, it makes a ``Call``, which the conductor carries out on a host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Concatenate, Generic, ParamSpec, TypeVar

from ...module_utils._shared.codec import Json

if TYPE_CHECKING:
    from ...module_utils._steps import (
        apps,
        batch,
        containers,
        doctor,
        folders,
        image,
        logs,
        network,
        queue,
        report,
        session,
        sessions,
        ssh,
        store,
        swarm,
    )

Params = ParamSpec("Params")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Call(Generic[Result]):
    """A step with its parameters."""

    step: str
    params: Json

    def with_params(self, **params: Any) -> Call[Result]:
        """The same call with parameters that only the connection to the host knows, such as a path there."""
        return Call(self.step, {**self.params, **params})


class Step(Generic[Params, Result]):
    """A step. ``function`` names it, as ``lambda: containers.created`` does, and is never called: the type checker reads it."""

    def __init__(self, function: Callable[[], Callable[Concatenate[Any, Params], Result]]) -> None:
        self.name = ".".join(function.__code__.co_names)

    def __call__(self, *_place: Params.args, **params: Params.kwargs) -> Call[Result]:
        """The step with these parameters, all of which are given by name."""
        return Call(self.name, params)


APPS_READY = Step(lambda: apps.ready)
APPS_CHANGE = Step(lambda: apps.change)
BATCH_START = Step(lambda: batch.start)
BATCH_WAIT = Step(lambda: batch.wait)
CONTAINERS_CREATED = Step(lambda: containers.created)
CONTAINERS_STARTED = Step(lambda: containers.started)
CONTAINERS_BEGUN = Step(lambda: containers.begun)
CONTAINERS_LIMITED = Step(lambda: containers.limited)
CONTAINERS_FOLLOWED = Step(lambda: containers.followed)
CONTAINERS_REFILLED = Step(lambda: containers.refilled)
CONTAINERS_STOPPED = Step(lambda: containers.stopped)
CONTAINERS_ABSENT = Step(lambda: containers.absent)
DOCTOR_EXAMINE = Step(lambda: doctor.examine)
DOCTOR_LISTEN = Step(lambda: doctor.listen)
DOCTOR_SEND = Step(lambda: doctor.send)
DOCTOR_HEAR = Step(lambda: doctor.hear)
DOCTOR_CREATE_NETWORK = Step(lambda: doctor.create_network)
DOCTOR_JOIN_NETWORK = Step(lambda: doctor.join_network)
DOCTOR_TEST_NETWORK = Step(lambda: doctor.test_network)
DOCTOR_MEASURE = Step(lambda: doctor.measure)
DOCTOR_LEAVE_NETWORK = Step(lambda: doctor.leave_network)
DOCTOR_REMOVE_NETWORK = Step(lambda: doctor.remove_network)
FOLDERS_MARK = Step(lambda: folders.mark)
FOLDERS_FIND = Step(lambda: folders.find)
FOLDERS_UNMARK = Step(lambda: folders.unmark)
IMAGE_DESCRIBE = Step(lambda: image.describe)
IMAGE_PULL = Step(lambda: image.pull)
IMAGE_ASK = Step(lambda: image.ask)
IMAGE_EXPORT = Step(lambda: image.export)
IMAGE_LOAD = Step(lambda: image.load)
IMAGE_CHECK_NAME = Step(lambda: image.check_name)
IMAGE_MEASURE = Step(lambda: image.measure)
IMAGE_COMMIT = Step(lambda: image.commit)
LOGS_READ = Step(lambda: logs.read)
NETWORK_PRESENT = Step(lambda: network.present)
NETWORK_ABSENT = Step(lambda: network.absent)
QUEUE_BEGIN = Step(lambda: queue.begin)
QUEUE_DECIDE = Step(lambda: queue.decide)
QUEUE_END = Step(lambda: queue.end)
QUEUE_MAINTAIN = Step(lambda: queue.maintain)
QUEUE_FENCED = Step(lambda: queue.fenced)
QUEUE_CLEANED = Step(lambda: queue.cleaned)
REPORT_COLLECT = Step(lambda: report.collect)
SESSION_PLACE = Step(lambda: session.place)
SESSION_RECORD = Step(lambda: session.record)
SESSIONS_LIST_ALL = Step(lambda: sessions.list_all)
SESSIONS_REQUEST = Step(lambda: sessions.request)
SSH_INSTALL = Step(lambda: ssh.install)
SSH_FIND = Step(lambda: ssh.find)
SSH_INSTALL_SET = Step(lambda: ssh.install_set)
STORE_POLICY = Step(lambda: store.policy)
STORE_CHECK_RELAYS = Step(lambda: store.check_relays)
STORE_CHECK_COMMIT = Step(lambda: store.check_commit)
STORE_USAGE = Step(lambda: store.usage)
SWARM_DESCRIBE = Step(lambda: swarm.describe)
SWARM_JOIN = Step(lambda: swarm.join)
SWARM_LEAVE = Step(lambda: swarm.leave)
SWARM_FENCE = Step(lambda: swarm.fence)
