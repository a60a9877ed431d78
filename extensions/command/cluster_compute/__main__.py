# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command ``cluster-compute``: each verb is a line of ansible-playbook, or of ssh into a running session."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Sequence

if not __package__:  # a checkout starts the directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from cluster_compute.completion import completion
from cluster_compute.hosts import hosts, init
from cluster_compute.programs import INTERRUPTED
from cluster_compute.run import FAILED, play_all
from cluster_compute.verbs import PROGRAM, read
from cluster_compute.views import VIEWS, open_app, show, ssh
from cluster_compute.words import MisuseError

# The verbs that are more than their lines.
OTHERS = {"ssh": ssh, "open": open_app, "show": show, "hosts": hosts, "init": init, "completion": completion}


def main(words: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 failed, 2 wrong use, 3 the session is PENDING, 4 hosts unreachable, 130 interrupted."""
    try:
        if None in (sys.stdin, sys.stdout, sys.stderr):  # Ansible ends with a traceback then
            raise MisuseError("a standard stream is closed: redirect it to /dev/null")  # noqa: TRY301 (printed below)
        asked = read(sys.argv[1:] if words is None else words)
        return OTHERS[asked.verb](asked) if asked.verb in OTHERS else play_all(asked, VIEWS.get(asked.verb))
    except (MisuseError, OSError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2 if isinstance(error, MisuseError) else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
