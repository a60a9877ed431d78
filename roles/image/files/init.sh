#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PID 1 of every container, run by the runtime's own shell: prepares what sshd needs, runs the session's bootstrap and (on main1)
# its command, runs sshd, and ends all programs when it receives TERM (life.sh). Requires nothing of the image.
#
# With the argument `check-folders`, it first reads the data folders that it compares with what is mounted (check_folders).
# A container that starts for the first time reads its files from its standard input: the number of bytes on a line, and a tar
# archive of that length. Its settings are in /etc/cluster-compute; an empty file means none:
#
#   bootstrap   a script that is run once, as the user, before the container counts as ready
#   command     a script that is run once, as the user, as soon as the file `go` exists; its exit code goes to `exit_code`,
#               with the word `oom` after it if memory ran out. The file `next` makes PID 1 run another command: that in
#               `next_command`, with the timeout in `next_timeout`. It disappears when `exit_code` is no longer that of the former
#   restarts    how often a command that fails is started again, with a longer pause each time; a command whose time is up is not
#   timeout     the seconds that the command may take; then it is terminated, and its exit code is 124
#   grace       the seconds between TERM and KILL at the end, 10 without it
#   limits      when the session ends by itself (limits.sh); it may change while the container runs
#   secrets     the seconds to wait for the session's secrets (secrets.sh)
#   apps        the apps of the container (apps.sh); it may change while the container runs
#   volumes     the mount points of volumes, one per line; an empty new volume is given to the user
#   container   the container's ID: `go`, `next`, `exit_code` and `.bootstrapped` lie in run/ID, because an image committed
#               from another container contains the files of that container

runtime=/opt/cluster-compute
box=$runtime/bin/busybox
config=/etc/cluster-compute
state=$config
user=work
export PATH="${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}:$runtime/bin"
helpers='' # PIDs of subshells of PID 1, which end with it
sshd=''
# shellcheck source=roles/image/files/own_environment.sh
. "$runtime/libexec/own_environment.sh"
# shellcheck source=roles/image/files/life.sh
. "$runtime/libexec/life.sh"
# shellcheck source=roles/image/files/limits.sh
. "$runtime/libexec/limits.sh"
# shellcheck source=roles/image/files/secrets.sh
. "$runtime/libexec/secrets.sh"
# shellcheck source=roles/image/files/apps.sh
. "$runtime/libexec/apps.sh"

for tool in chmod chown ls mkdir mv rm sleep touch; do # an image's own may be another program of that name
    eval "$tool() { \"$box\" $tool \"\$@\"; }"
done

say() {
    echo "cluster-compute: $*" >&2
}

check_folders() { # reads DEVICE:INODE TARGET of each folder until an empty line; ends the container if anything else is mounted
    while :; do
        # shellcheck disable=SC3045 # the runtime's shell knows -t
        read -r -t 60 found target || {
            say "the data folders were not checked (policy of this site); run cluster_session.yml again to repair the session"
            exit 1
        }
        [ -n "$found" ] || break
        [ "$("$box" stat -c %d:%i "$target" 2>/dev/null)" = "$found" ] || {
            say "another folder than the one that was checked is mounted at $target (policy of this site)"
            exit 1
        }
    done
    say "the data folders are those that were checked"
}

receive_files() { # the ID in the path is the container's: an image committed from another container has the files of that one
    installed=$config/run/${BACKENDAI_KERNEL_ID-}/.installed
    if [ ! -f "$installed" ]; then
        size=
        # shellcheck disable=SC3045 # the runtime's shell knows -t
        read -r -t 60 size
        complaint=$("$box" timeout 60 "$box" head -c "${size:-0}" | "$box" tar -x -f - -C / 2>&1 | "$box" tail -n 1)
        if [ ! -f "$installed" ]; then
            case $complaint in
                '' | *'short read'*) say "the files of the session did not arrive; launch the session again" ;;
                *) say "the files of the session could not be unpacked: ${complaint#tar: }" ;;
            esac
            exit 1
        fi
        say "the files of the session have arrived" # the sender waits for it: _agent/engine/starting.py
    fi
    exec </dev/null
}

find_state() { # sets state, the folder for the progress of this container; each start of the container removes `go`
    if [ -s "$config/container" ]; then
        read -r id <"$config/container"
        state=$config/run/$id
    fi
    mkdir -p "$state"
    rm -f "$state/go"
}

find_user() { # sets uid, gid, home and shell from /etc/passwd
    while IFS=: read -r name _ uid gid _ home shell || [ -n "$name" ]; do
        [ "$name" != "$user" ] || return 0
    done </etc/passwd
    say "there is no user '$user' in /etc/passwd"
    exit 1
}

as_user() { # SCRIPT: becomes the user, in a login's environment and a process group of its own, and runs the script; never returns
    cd "$home" || exit 126
    # shellcheck disable=SC2031 # this subshell becomes the user
    export HOME="$home" USER="$user" LOGNAME="$user" SHELL="$shell"
    IFS= read -r first <"$1"
    case $first in
        '#!'*) ;;
        *) set -- "$shell" "$1" ;;
    esac
    exec "$runtime/bin/setsid" "$runtime/bin/setpriv" --reuid "$uid" --regid "$gid" --init-groups -- "$@"
}

open_folders() { # that the user, sshd and its clients go through: an image may keep others out. Mounts stay as they are
    root=''
    IFS='
'
    set -f
    # shellcheck disable=SC2016,SC2046 # awk expands it; a path on each line
    set -- $("$box" realpath / "$home/.." "$shell" /etc/ssh /etc/profile.d "$config" "${runtime%/*}" /usr/bin /usr/lib /usr/lib64 \
        /usr/local/bin /usr/local/lib /bin /lib /lib64 /opt /var/tmp 2>/dev/null |
        "$box" awk -F/ '{ path = ""; for (i = 2; i <= NF; i++) { path = path "/" $i; if (!seen[path]++) print path } }')
    set +f
    unset IFS
    "$box" stat -c '%d %A %n' "$@" 2>/dev/null | while read -r device mode folder; do
        root=${root:-$device}
        case $device:$mode in
            "$root":d*[!xt]) chmod o+rx "$folder" 2>/dev/null || say "others than root cannot enter $folder: logins may fail" ;;
        esac
    done
}

open_temporary() { # programs of the user write there; in an image, these folders may be root's, or missing. Mounts stay as they are
    for folder in /tmp /var/tmp; do
        [ -d "$folder" ] || { rm -f "$folder" && mkdir -p "$folder"; } 2>/dev/null
        [ "$("$box" stat -L -c %d "$folder" 2>/dev/null)" != "$("$box" stat -c %d /)" ] || chmod 1777 "$folder"
    done
}

make_empty_root() { # sshd runs only with such a folder, which root alone can write to
    [ -d /run/sshd ] || rm -f /run/sshd
    mkdir -p /run/sshd
    chown 0:0 /run/sshd
    chmod 755 /run/sshd
}

own_new_volumes() { # a new volume is empty and owned by root; any other volume is not changed
    [ -s "$config/volumes" ] || return 0
    while IFS= read -r volume; do
        # shellcheck disable=SC3067 # the runtime's shell knows -O
        if [ -O "$volume" ] && [ -z "$(ls -A "$volume")" ]; then
            chown "$uid:$gid" "$volume" || say "the volume at $volume stays as it is, with root as its owner"
        fi
    done <"$config/volumes"
}

bootstrap() {
    if [ ! -s "$config/bootstrap" ] || [ -f "$state/.bootstrapped" ]; then
        return
    fi
    before=$(oom_kills)
    as_user "$config/bootstrap" &
    wait "$!"
    code=$?
    if [ "$code" -ne 0 ]; then
        ran_out=
        [ "$(oom_kills)" = "$before" ] || ran_out=", out of memory"
        say "the bootstrap script failed with exit code $code$ran_out"
        exit 1
    fi
    touch "$state/.bootstrapped"
}

seconds_up() {
    read -r up _ </proc/uptime
    echo "${up%%.*}"
}

watch_deadline() { # PID SECONDS: leaves the file .timed_out if the process had to be ended
    deadline=$(($(seconds_up) + $2))
    while [ "$(seconds_up)" -lt "$deadline" ]; do
        sleep 0.2
    done
    touch "$state/.timed_out"
    say "the command took longer than $2 s and is ended"
    end_session "$1"
}

oom_kills() { # how often the kernel has killed a process of this container because memory ran out (cgroup v2, then v1)
    for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
        while read -r key value; do
            [ "$key" != oom_kill ] || echo "$value"
        done 2>/dev/null <"$file"
    done
}

run_command() { # sets code, and ran_out to a word if memory ran out
    rm -f "$state/.timed_out"
    before=$(oom_kills)
    as_user "$config/command" &
    command=$!
    watcher=
    if [ -s "$config/timeout" ]; then
        read -r seconds <"$config/timeout"
        watch_deadline "$command" "${seconds%%.*}" &
        watcher=$!
    fi
    wait "$command"
    code=$?
    if [ -f "$state/.timed_out" ]; then
        wait "$watcher"
        code=124
    elif [ -n "$watcher" ]; then
        kill "$watcher"
    fi
    ran_out=
    if [ "$(oom_kills)" != "$before" ]; then
        say "memory ran out and the kernel ended a process of the command"
        ran_out=" oom"
    fi
}

batch() { # the command, and then each that replaces it
    if [ ! -f "$state/exit_code" ]; then
        until [ -f "$state/go" ]; do
            sleep 0.2
        done
        [ ! -f "$state/next" ] || take_next
        run_restarted
        end_with_command "$code"
    fi
    while :; do
        until [ -f "$state/next" ]; do
            sleep 0.5
        done
        take_next
        run_restarted
        end_with_command "$code"
    done
}

take_next() { # the files of a command that was taken before PID 1 was killed are gone
    rm -f "$state/exit_code"
    for file in timeout command; do
        [ ! -f "$state/next_$file" ] || mv "$state/next_$file" "$config/$file"
    done
    chmod 755 "$config/command"
    rm -f "$state/next"
}

run_restarted() { # the command, again after a failure as often as the session asks for; leaves its exit code
    left=0 pause=1
    echo "       " 2>/dev/null >"$state/exit_code.new" # room for "255 oom": the command may fill the disk
    [ ! -s "$config/restarts" ] || read -r left <"$config/restarts"
    run_command
    while [ "$code" -ne 0 ] && [ ! -f "$state/.timed_out" ] && [ "$left" -gt 0 ]; do
        say "the command ended with exit code $code and starts again in $pause s; restarts left: $left"
        "$runtime/bin/sleep" "$pause"
        left=$((left - 1)) pause=$((pause < 32 ? pause * 2 : 60))
        run_command
    done
    echo "$code$ran_out" 1<>"$state/exit_code.new"
    mv "$state/exit_code.new" "$state/exit_code"
}

run_sshd() { # becomes sshd
    forget_image_settings
    set -- -D -e -f "$(sshd_settings)"
    # Since 9.8 sshd is several programs, and looks for the others where its distribution keeps them.
    [ ! -x "$runtime/libexec/sshd-session" ] || set -- "$@" -o "SshdSessionPath=$runtime/libexec/sshd-session"
    # Such an sshd also bans addresses after failed logins. All clients of a published port can have the address of the gateway.
    [ ! -x "$runtime/libexec/sshd-session" ] || set -- "$@" -o "PerSourcePenalties=no"
    [ ! -x "$runtime/libexec/sshd-auth" ] || set -- "$@" -o "SshdAuthPath=$runtime/libexec/sshd-auth"
    exec "$runtime/libexec/sshd" "$@"
}

end() { # CODE, or `command`: goes on as a shell that has caught no signal, because `read` of BusyBox 1.38 never returns in one that has
    trap '' TERM INT USR1 USR2 ALRM
    # shellcheck disable=SC2086 # a list of PIDs
    exec "$runtime/bin/sh" "$0" end "$1" "$state" "$sshd" $helpers
}

if [ "${1-}" = end ]; then
    code=$2 state=$3 sshd=$4
    shift 4
    helpers=$*
    [ "$code" != command ] || finish_command
    finish "$code"
fi
trap 'end 143' TERM INT
trap 'end 80' USR1      # the lifetime of the session is over
trap 'end 81' USR2      # the session is idle
trap 'end command' ALRM # the command of main1 has ended, and the session ends with it
[ "$*" != check-folders ] || check_folders
receive_files
make_empty_root
open_temporary
find_state
find_user
open_folders
chown "$uid" /proc/self/fd/1 /proc/self/fd/2 2>/dev/null # so that the scripts can open /dev/stdout and /dev/stderr
own_new_volumes
await_secrets
bootstrap
if [ -s "$config/command" ]; then
    batch &
    helpers="$helpers $!"
fi
if [ -s "$config/apps" ]; then
    keep_apps &
    helpers="$helpers $!"
fi
run_sshd &
sshd=$!
keep_limits &
helpers="$helpers $!"
wait "$sshd"
say "sshd ended with exit code $?"
end 1
