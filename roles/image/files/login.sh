#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Whose login a program belongs to, sourced by the programs that end with it. Without a terminal, no signal says that a connection is
# lost: sshd ends, and leaves its child to another parent.
#
# shellcheck disable=SC2034 # they read what these functions set

read_stat() { # PID: sets state, parent, leader (of the process session) and terminal of a process
    { IFS= read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    # shellcheck disable=SC2086 # the fields after the name
    set -- ${line##*') '}
    state=$1 parent=$2 leader=$4 terminal=$5
}

find_login() { # sets login, the first program of this login, and daemon, its sshd; login stays empty without one
    login=
    read_stat "$$" || return 0
    # The leader of what setsid or tmux has started is no child of sshd.
    first=$leader
    read_stat "$first" && { read -r name <"/proc/$parent/comm"; } 2>/dev/null || return 0
    case $name in
        sshd*) login=$first daemon=$parent ;;
    esac
}
