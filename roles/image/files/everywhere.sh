#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Run a command in every container of the session in parallel. Requires nothing of the image.
#
#   everywhere [--rejoin SECONDS] COMMAND [ARGUMENT ...]
#
# COMMAND alone is a script for the user's shell in each container; with arguments, all of them are passed on unchanged. It runs in the
# folder in which `everywhere` was called, or in the home folder where that one does not exist. Each line of its output begins with the
# name of the container. The exit code is the highest of all containers; 255 means that the connection failed or broke. The
# command ends with `everywhere`, also if that is killed, and with the login that runs `everywhere`, unless the user detaches it.
# With --rejoin, a container that is lost is waited for: it gets the command again if it comes back within SECONDS and before the
# others have ended, and its loss alone is no failure.
#
# shellcheck disable=SC2154 # login.sh sets state, parent, terminal and daemon

runtime=/opt/cluster-compute
box=$runtime/bin/busybox
# shellcheck disable=SC2034 # life.sh reads the grace of the session there
config=/etc/cluster-compute
# shellcheck source=roles/image/files/life.sh
. "$runtime/libexec/life.sh"
# shellcheck source=roles/image/files/login.sh
. "$runtime/libexec/login.sh"

fail() {
    echo "everywhere: $*" >&2
    exit 2
}

quoted() { # TEXT: prints it as one word of a shell
    printf '%s\n' "$1" | "$box" sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/"
}

seconds_up() {
    read -r up _ </proc/uptime
    echo "${up%%.*}"
}

here() { # FOLDER COMMAND: one container's part: runs the command until it ends or the connection, which is stdin, closes
    cd "$1" 2>/dev/null || cd || exit 2
    exec 3<&0
    "$box" setsid "${SHELL:-$runtime/bin/sh}" -c "$2" </dev/null 3<&- &
    command=$!
    {
        "$box" cat <&3
        trap '' TERM
        end_session "$command"
    } >/dev/null 2>&1 &
    watcher=$!
    exec 3<&-
    wait "$command"
    code=$?
    kill "$watcher" 2>/dev/null
    # ssh reports a broken connection as 255.
    [ "$code" -ne 255 ] || code=254
    exit "$code"
}

connect() { # SECONDS HOST COMMAND
    "$runtime/bin/ssh" -F /etc/cluster-compute/ssh_config -T -o BatchMode=yes -o ConnectionAttempts=1 -o "ConnectTimeout=$1" "$2" "$3"
}

named() { # HOST: copies stdin to stdout, each line with the name of the container
    # shellcheck disable=SC2016 # awk expands it
    exec "$box" awk -v "host=$1" '{ print host ": " $0; fflush() }'
}

attempt() { # HOST: runs the command there and writes its exit code into a file; stdout and stderr stay apart
    {
        {
            connect 60 "$1" "$remote" <&8 8<&-
            echo "$?" >"$folder/$1.attempt"
        } 2>&1 >&3 3>&- | named "$1" >&2
    } 3>&1 | named "$1"
}

others_have_ended() { # HOST
    for other in $hosts; do
        [ "$other" = "$1" ] || [ -e "$folder/$other" ] || return 1
    done
}

comes_back() { # HOST: waits until a lost container answers again
    echo "everywhere: $1 is lost; it can rejoin within $patience s" >&2
    deadline=$(($(seconds_up) + patience))
    until connect 5 "$1" true </dev/null >/dev/null 2>&1; do
        if [ "$(seconds_up)" -ge "$deadline" ] || [ -e "$folder/stop" ] || others_have_ended "$1"; then
            return 1
        fi
        "$box" sleep 1
    done
    echo "everywhere: $1 is back" >&2
}

member() { # HOST: the whole part of one container; its exit code, or `lost`, is in the file of its name
    exec 9>&-
    while :; do
        attempt "$1"
        code=255
        read -r code <"$folder/$1.attempt"
        [ "$code" -eq 255 ] && [ "$patience" -gt 0 ] || break
        code=lost
        comes_back "$1" || break
    done
    echo "$code" >"$folder/$1"
}

# shellcheck disable=SC2329 # a trap calls it
stop() { # CODE: the end of the write end of `alive` ends the command in each container
    stopped=$1
    touch "$folder/stop"
    exec 9>&-
}

find_connection() { # as find_login; login stays empty for what the user has detached, and at a terminal: there, the kernel sends HUP
    login=
    while read -r key value; do
        case $key$value in
            SigIgn:*[13579bdf]) return ;; # nohup: HUP is ignored
        esac
    done <"/proc/$$/status"
    read_stat "$$" && [ "$terminal" = 0 ] || return 0
    find_login
}

watch_login() { # without a terminal, no signal says that the connection is lost: sshd ends, and leaves its child to another parent
    exec 9>&-
    while [ -d "/proc/$$" ] && [ ! -e "$folder/stop" ]; do
        # A login whose program has ended has left `everywhere` in the background.
        read_stat "$login" && [ "$state" != Z ] || return 0
        if [ "$parent" != "$daemon" ]; then
            kill -TERM "$$"
            return
        fi
        # shellcheck disable=SC3045 # the runtime's shell knows -t. Nothing is written there
        read -r -t 2 _ <&8
    done
}

make_folder() { # sets folder. An image may name one for temporary files that is not there, or keep it for root
    for place in "${TMPDIR:-/tmp}" /tmp /dev/shm; do
        folder=$(TMPDIR=$place "$box" mktemp -d 2>/dev/null) && return
    done
    fail "cannot create a temporary folder"
}

run_all() {
    make_folder
    trap '"$box" rm -rf "$folder"' EXIT
    "$box" mkfifo "$folder/alive" || exit 2
    exec 7<>"$folder/alive" # so that the next two do not wait for each other
    # shellcheck disable=SC2094 # a pipe
    exec 8<"$folder/alive" 9>"$folder/alive" 7>&-
    members=
    for host in $hosts; do
        member "$host" &
        members="$members $!"
    done
    if [ -n "$login" ]; then
        watch_login >/dev/null 2>&1 &
        watcher=$!
    fi
    exec 8<&-
    trap 'stop 130' INT
    trap 'stop 143' TERM HUP
    for pid in $members; do
        wait "$pid"
        while kill -0 "$pid" 2>/dev/null; do # a signal has interrupted the wait
            wait "$pid"
        done
    done
    [ -z "$login" ] || kill "$watcher" 2>/dev/null
}

report() { # exits with the highest exit code; a lost container counts only if all are lost
    worst=
    failed=
    for host in $hosts; do
        # `read` of BusyBox 1.38 never returns in a shell that has caught a signal.
        code=$("$box" cat "$folder/$host")
        code=${code:-255}
        [ "$code" = 0 ] || failed="$failed, $host ($code)"
        if [ "$code" != lost ] && [ "$code" -gt "${worst:--1}" ]; then
            worst=$code
        fi
    done
    [ -z "$failed" ] || echo "everywhere: failed in ${failed#, }" >&2
    exit "${stopped:-${worst:-255}}"
}

patience=0
case ${1-} in
    --here)
        here "$2" "$3"
        ;;
    --rejoin)
        case ${2-} in
            '' | *[!0-9]*) fail "--rejoin needs a number of seconds" ;;
        esac
        patience=$2
        shift 2
        ;;
esac
if [ "$#" -eq 0 ] || [ -z "$1" ] || [ "${1#-}" != "$1" ]; then
    fail "usage: everywhere [--rejoin SECONDS] COMMAND [ARGUMENT ...]"
fi
hosts=$(echo "${BACKENDAI_CLUSTER_HOSTS-}" | "$box" tr , ' ')
[ -n "$hosts" ] || fail "BACKENDAI_CLUSTER_HOSTS is not set: this is no shell of a session's container; enter it by ssh"
script=$1
if [ "$#" -gt 1 ]; then
    script=
    for argument; do
        script="$script $(quoted "$argument")"
    done
fi
remote="$runtime/bin/everywhere --here $(quoted "$PWD") $(quoted "$script")"
stopped=
find_connection
run_all
report
