#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The end of a container, sourced by init.sh, which is PID 1: asks every program to end, in whichever process group it runs, and
# gives it the seconds in /etc/cluster-compute/grace to do so. What still runs when PID 1 exits is killed by the kernel.
#
# A terminal and a connection end after the programs that use them: their end would send HUP to a program, or break its output,
# while it saves its state. These processes therefore do not receive TERM at the beginning:
#
#   connections  processes of sshd: they end last
#   clients      ssh to another container, whose programs end at the same time: they are waited for
#   holders      processes that hold the terminal of another, such as tmux: TERM as soon as nothing runs in that terminal
#   shells       interactive shells without a child. They ignore TERM, so they receive HUP
#
# shellcheck disable=SC2154 # init.sh sets config, runtime, helpers and sshd

default_grace=10
# SIGTERM in the masks of /proc/PID/stat.
term_bit=16384

read_clock() { # sets clock, in hundredths of a second since the host's start
    read -r up _ </proc/uptime
    clock=$((${up%.*} * 100 + 1${up#*.} - 100))
}

read_grace() { # sets grace, in seconds
    grace=
    [ ! -s "$config/grace" ] || read -r grace <"$config/grace"
    case $grace in
        '' | *[!0-9]*) grace=$default_grace ;;
    esac
}

note_process() { # PID LINE: adds a process to the table. LINE is its /proc/PID/stat, which has the program's name in parentheses
    case $2 in
        *'(sshd) '* | *'(sshd-session) '* | *'(sshd-auth) '*) kind=sshd ;;
        *'(ssh) '*) kind=ssh ;;
        *) kind=other ;;
    esac
    # shellcheck disable=SC2086 # the fields after the name: STATE PPID PGRP SESSION TTY …, of which the 31st are ignored signals
    set -- "$1" ${2##*') '}
    case $3$5$6${32:-x} in
        *[!0-9]*) set -- "$1" R 0 0 0 0 "$kind" 0 ;; # a program that hides behind an odd name is a program like any other
        *) set -- "$1" "$2" "$3" "$4" "$5" "$6" "$kind" "$((${32} & term_bit))" ;;
    esac
    [ "$2" != Z ] || return 0
    table="$table $1:$3:$5:$6:$7:$8"
    parents="$parents$3 "
    if [ "$5" = "$1" ] && [ "$6" -ne 0 ]; then
        holding="$holding$3 "
    fi
}

sort_process() { # PID PPID SESSION TTY KIND IGNORES: adds the process to one of the lists
    case $5:$holding in
        sshd:*) connections="$connections $1" && return ;;
        ssh:*) clients="$clients $1" && return ;;
        *" $1 "*) holders="$holders $1" && return ;;
    esac
    case $parents in
        *" $1 "*) ;;
        *) if [ "$4" -ne 0 ] && [ "$6" -ne 0 ]; then shells="$shells $1" && return; fi ;;
    esac
    programs="$programs $1"
    [ "$2" -ne 1 ] || orphans="$orphans $1"
}

look() { # sets programs, orphans (those whose parent is gone), shells, holders, clients and connections: PIDs of all but PID 1
    table='' parents=' ' holding=' '
    programs='' orphans='' shells='' holders='' clients='' connections=''
    for entry in /proc/[0-9]*/stat; do
        entry=${entry#/proc/}
        [ "$entry" != 1/stat ] || continue
        # A process may end between the two lines.
        if { IFS= read -r line <"/proc/$entry"; } 2>/dev/null; then
            note_process "${entry%/stat}" "$line"
        fi
    done
    for entry in $table; do
        IFS=:
        # shellcheck disable=SC2086 # a row of the table
        set -- $entry
        unset IFS
        sort_process "$@"
    done
}

ask() { # PID…: sends TERM to each process that has not received it. Most programs take a second TERM for impatience
    for pid in "$@"; do
        case $asked in
            *" $pid "*) ;;
            *) asked="$asked$pid " && kill -TERM "$pid" 2>/dev/null ;;
        esac
    done
}

ask_released() { # PID…: sends TERM to holders that hold no terminal any more
    for pid in "$@"; do
        case " $programs " in
            *" $pid "*) ask "$pid" ;;
        esac
    done
}

end_programs() { # SECONDS: asks all programs to end, and returns when they have, at the latest after SECONDS
    read_clock
    deadline=$((clock + $1 * 100)) asked=' '
    look
    held=$holders
    # shellcheck disable=SC2086 # lists of PIDs
    ask $programs
    look
    # shellcheck disable=SC2086
    ask $orphans # children of a program that ended between the first look and its TERM
    while [ -n "$programs$shells$holders$clients" ] && [ "$clock" -lt "$deadline" ]; do
        # shellcheck disable=SC2086
        [ -z "$shells" ] || kill -HUP $shells 2>/dev/null
        # shellcheck disable=SC2086
        ask_released $held
        # shellcheck disable=SC2086
        [ -n "$programs$shells$holders" ] || ask $connections # a client of this container's own sshd waits for it
        "$runtime/bin/sleep" 0.05
        look
        read_clock
    done
    # shellcheck disable=SC2086
    ask $connections
}

members() { # SESSION: prints the PIDs of a process session. What a program starts stays in it, also in other process groups
    for entry in /proc/[0-9]*/stat; do
        { IFS= read -r line <"$entry"; } 2>/dev/null || continue
        entry=${entry#/proc/}
        # shellcheck disable=SC2086 # the fields after the name: STATE PPID PGRP SESSION …
        set -- "$1" ${line##*') '}
        [ "$2" = Z ] || [ "$5" != "$1" ] || echo "${entry%/stat}"
    done
}

end_session() { # SESSION: terminates the processes of a process session: TERM, and KILL after the grace
    read_grace
    read_clock
    limit=$((clock + grace * 100))
    # shellcheck disable=SC2046 # a list of PIDs
    kill -TERM $(members "$1") 2>/dev/null
    while [ "$clock" -lt "$limit" ] && [ -n "$(members "$1")" ]; do
        "$runtime/bin/sleep" 0.2
        read_clock
    done
    # shellcheck disable=SC2046
    kill -KILL $(members "$1") 2>/dev/null
}

finish_command() { # ends the container with 83 after a command that has succeeded, else 84
    code=
    { read -r code _ <"$state/exit_code"; } 2>/dev/null
    [ "${code:-0}" = 0 ] || finish 84
    finish 83
}

finish() { # CODE: ends all programs, then the connections, then the container
    read_grace
    # These first: a command that is cut short has no exit code, and starts again with a repair.
    # shellcheck disable=SC2086 # a list of PIDs
    [ -z "$helpers" ] || kill -KILL $helpers 2>/dev/null
    [ -z "$sshd" ] || kill -TERM "$sshd" 2>/dev/null # no new login; those that exist stay
    end_programs "$grace"
    [ -z "$programs$shells$holders" ] || say "not every program ended within $grace s of TERM; the rest is killed"
    exit "$1"
}
