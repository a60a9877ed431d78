#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Print each container of the session that can be reached by SSH now, as HOST:SLOTS, in any order: what horovodrun expects of its
# option --host-discovery-script. The slots are those of /job/hostfile. Requires nothing of the image.

runtime=/opt/cluster-compute
hostfile=/job/hostfile

if ! [ -r "$hostfile" ]; then
    echo "discover_hosts: cannot read $hostfile: this is no container of a session; run it in a container of a session" >&2
    exit 2
fi
client="$runtime/bin/ssh -F /etc/cluster-compute/ssh_config -T -o BatchMode=yes -o ConnectTimeout=3 -o ConnectionAttempts=1"
while read -r host slots; do
    # shellcheck disable=SC2086 # words
    if $client "$host" true </dev/null >/dev/null 2>&1; then
        echo "$host:${slots#slots=}"
    fi &
done <"$hostfile"
wait
