# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rsync, parallel shells and paramiko in a session: they need no option and no prompt."""

from __future__ import annotations

from controller import Session


def check_tools(session: Session) -> None:
    """In a session of three containers of the image of the MPI example."""
    assert session.say("main1", "echo here >a && rsync -e ssh a sub1:b && ssh sub1 cat b") == "here"
    three = ["main1: main1", "sub1: sub1", "sub2: sub2"]
    for command in ("pdsh hostname", "clush -a hostname", "clush -w $BACKENDAI_CLUSTER_HOSTS hostname"):
        assert sorted(session.say("sub1", command).splitlines()) == three, command
    assert sorted(session.say("main1", "clush -g sub hostname").splitlines()) == three[1:]
    assert session.say("main1", "nodeset -LL").splitlines() == ["@all main1,sub[1-2]", "@main main1", "@sub sub[1-2]"]
    everywhere = session.say("main1", "parallel --slf . --nonall --tag hostname").splitlines()
    assert sorted(everywhere) == [line.replace(": ", "\t") for line in three]
    spread = session.say("main1", "parallel --slf . 'sleep 0.2; hostname; #' ::: $(seq 12)").split()
    assert (len(spread), set(spread)) == (12, {"main1", "sub1", "sub2"})
    script = (
        "import paramiko, sys; client = paramiko.SSHClient(); client.load_system_host_keys(); client.connect('sub2');"
        "print(client.exec_command('hostname')[1].read().decode())"
    )
    assert session.say("main1", f'python3 -c "{script}"') == "sub2"
