# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of hosts, as the controller calls them: by name, because their files are imported where they run.

A reference such as ``CONTAINERS_CREATED`` has the parameters and the result of the function that it stands for. Called with the
parameters, it makes a ``Call``, which the conductor carries out on a host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...module_utils._shared.documents import validation
from ...module_utils._shared.documents.container_view import BatchStatus
from ...module_utils._shared.documents.decision import BegunPass, QueueRound, Upkeep
from ...module_utils._shared.documents.examination import Probe
from ...module_utils._shared.documents.step_documents import (
    Change,
    ChangedApps,
    ChangedNodes,
    CreatedContainers,
    FoundContainers,
    Logs,
    MeasuredImage,
    RemovedContainers,
    RemovedNetworks,
    StartedCommand,
)
from ...module_utils._shared.planning.swarm_plan import ChangedNode
from .call import Step, as_sent

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

APPS_READY = Step(lambda: apps.ready, validation.answer(ChangedApps))
APPS_CHANGE = Step(lambda: apps.change, validation.answer(ChangedApps))
BATCH_START = Step(lambda: batch.start, validation.answer(StartedCommand))
BATCH_WAIT = Step(lambda: batch.wait, validation.answer(BatchStatus))
CONTAINERS_CREATED = Step(lambda: containers.created, validation.answer(CreatedContainers))
CONTAINERS_STARTED = Step(lambda: containers.started, validation.answer(Change))
CONTAINERS_BEGUN = Step(lambda: containers.begun, validation.answer(Change))
CONTAINERS_LIMITED = Step(lambda: containers.limited, validation.answer(Change))
CONTAINERS_FOLLOWED = Step(lambda: containers.followed, validation.answer(Change))
CONTAINERS_REFILLED = Step(lambda: containers.refilled, validation.answer(Change))
CONTAINERS_STOPPED = Step(lambda: containers.stopped, validation.answer(Change))
CONTAINERS_ABSENT = Step(lambda: containers.absent, validation.answer(RemovedContainers))
DOCTOR_EXAMINE = Step(lambda: doctor.examine)
DOCTOR_LISTEN = Step(lambda: doctor.listen, validation.answer(Probe))
DOCTOR_SEND = Step(lambda: doctor.send, validation.answer(Probe))
DOCTOR_HEAR = Step(lambda: doctor.hear, validation.answer(Probe))
DOCTOR_CREATE_NETWORK = Step(lambda: doctor.create_network, validation.answer(Probe))
DOCTOR_JOIN_NETWORK = Step(lambda: doctor.join_network, validation.answer(Probe))
DOCTOR_TEST_NETWORK = Step(lambda: doctor.test_network, validation.answer(Probe))
DOCTOR_MEASURE = Step(lambda: doctor.measure, validation.answer(Probe))
DOCTOR_LEAVE_NETWORK = Step(lambda: doctor.leave_network, validation.answer(Probe))
DOCTOR_REMOVE_NETWORK = Step(lambda: doctor.remove_network)
FOLDERS_MARK = Step(lambda: folders.mark)
FOLDERS_FIND = Step(lambda: folders.find)
FOLDERS_UNMARK = Step(lambda: folders.unmark, validation.answer(Change))
IMAGE_DESCRIBE = Step(lambda: image.describe, validation.image)
IMAGE_PULL = Step(lambda: image.pull, validation.image)
IMAGE_ASK = Step(lambda: image.ask, validation.image)
IMAGE_EXPORT = Step(lambda: image.export, validation.answer(Change))
IMAGE_LOAD = Step(lambda: image.load, validation.answer(Change))
IMAGE_CHECK_NAME = Step(lambda: image.check_name, validation.answer(Change))
IMAGE_MEASURE = Step(lambda: image.measure, validation.answer(MeasuredImage))
IMAGE_COMMIT = Step(lambda: image.commit, validation.image)
LOGS_READ = Step(lambda: logs.read, validation.answer(Logs))
NETWORK_PRESENT = Step(lambda: network.present, validation.answer(Change))
NETWORK_ABSENT = Step(lambda: network.absent, validation.answer(RemovedNetworks))
QUEUE_BEGIN = Step(lambda: queue.begin, validation.answer(BegunPass))
QUEUE_DECIDE = Step(lambda: queue.decide, validation.answer(QueueRound))
QUEUE_END = Step(lambda: queue.end, validation.answer(Change))
QUEUE_MAINTAIN = Step(lambda: queue.maintain, validation.answer(Upkeep))
QUEUE_FENCED = Step(lambda: queue.fenced, validation.answer(Upkeep))
QUEUE_CLEANED = Step(lambda: queue.cleaned, validation.answer(Change))
REPORT_COLLECT = Step(lambda: report.collect)
SESSION_PLACE = Step(lambda: session.place, validation.decision)
SESSION_RECORD = Step(lambda: session.record, validation.recorded)
SESSIONS_LIST_ALL = Step(lambda: sessions.list_all)
SESSIONS_REQUEST = Step(lambda: sessions.request)
SSH_INSTALL = Step(lambda: ssh.install, as_sent)
SSH_FIND = Step(lambda: ssh.find, validation.answer(FoundContainers))
SSH_INSTALL_SET = Step(lambda: ssh.install_set, as_sent)
STORE_POLICY = Step(lambda: store.policy)
STORE_CHECK_RELAYS = Step(lambda: store.check_relays, validation.answer(Change))
STORE_CHECK_COMMIT = Step(lambda: store.check_commit, validation.answer(Change))
STORE_USAGE = Step(lambda: store.usage)
SWARM_DESCRIBE = Step(lambda: swarm.describe, validation.answer(ChangedNode))
SWARM_JOIN = Step(lambda: swarm.join, validation.answer(ChangedNode))
SWARM_LEAVE = Step(lambda: swarm.leave, validation.answer(ChangedNode))
SWARM_FENCE = Step(lambda: swarm.fence, validation.answer(ChangedNodes))
