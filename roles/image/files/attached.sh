#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The first command of a login whose programs must end with its connection: leaves a process behind that looks for its sshd. When that
# is gone, all programs of the login get TERM, and KILL after the grace of the session. What the user has given a process session of
# its own (setsid, tmux) stays, and so does what still runs when the login itself has ended before.

runtime=/opt/cluster-compute
# shellcheck disable=SC2034 # life.sh reads the grace of the session there
config=/etc/cluster-compute
# shellcheck source=roles/image/files/life.sh
. "$runtime/libexec/life.sh"
# shellcheck source=roles/image/files/login.sh
. "$runtime/libexec/login.sh"

watch() { # LOGIN DAEMON
    # shellcheck disable=SC2154 # login.sh sets them
    while read_stat "$1" && [ "$state" != Z ]; do
        if [ "$parent" != "$2" ]; then
            end_session "$1"
            return
        fi
        "$runtime/bin/sleep" 1
    done
}

if [ "${1-}" = --watch ]; then
    watch "$2" "$3"
    exit
fi
find_login
# In a process session of its own, it is none of the programs that it ends.
[ -z "$login" ] || "$runtime/bin/setsid" "$runtime/bin/attached" --watch "$login" "$daemon" </dev/null >/dev/null 2>&1 &
