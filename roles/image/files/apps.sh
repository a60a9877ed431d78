#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The apps of a container, such as JupyterLab. Sourced by init.sh, which is PID 1 and runs keep_apps in a subshell. The file
# /etc/cluster-compute/apps is read again and again, because apps come and go while the session runs:
#
#   NAME PORT READY SERIAL    an app. READY is the path that answers, or the TCP port that is listened at, once it is ready.
#                             A new SERIAL starts the app again
#   end                       the last line: a file without it is not yet complete, and the list before it holds
#
# /etc/cluster-compute/app/NAME holds the app's `command`, its `environment` and its `token`. run/ID/apps/NAME/status says
# `starting`, `ready`, `restarting CODE`, `failed CODE` or `ended`. The output goes to the log of the container, each line after the
# app's name, and to /var/log/cluster-compute/NAME.log. run/ID/apps.status has the line `NAME STATUS` for each app.
#
# An app that ends is started again, after a pause that doubles from one second to a minute: up to ten times in a row, and up to
# three times before it was ready for the first time. An app that was ready for ten minutes starts a new row.
#
# shellcheck disable=SC2154 # init.sh and life.sh set config, runtime, state, uid, gid and clock

first_tries=3
most_tries=10
settled=60000 # hundredths of a second
app_logs=/var/log/cluster-compute
longest_log=5242880

read_apps() { # sets apps: NAME,PORT,SERIAL,READY of each. An incomplete file changes nothing
    found='' complete=''
    while read -r name port ready serial; do
        case $name:$port:$serial in
            end:*) complete=yes && break ;;
            *[!a-z0-9:-]*) ;;
            *:*:?*) found="$found $name,$port,$serial,$ready" ;;
        esac
    done 2>/dev/null <"$config/apps"
    [ -z "$complete" ] || apps=$found
}

split_app() { # NAME,PORT,SERIAL,READY: sets name, port, serial and ready
    ready=$1
    name=${ready%%,*} && ready=${ready#*,}
    port=${ready%%,*} && ready=${ready#*,}
    serial=${ready%%,*} && ready=${ready#*,}
}

is_alive() { # PID: whether the process exists and is no zombie
    { IFS= read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    case ${line##*') '} in
        [ZX]*) return 1 ;;
    esac
}

has_socket() { # STATE PORT: whether a TCP socket that others can reach has this state (0A listens, 01 is connected) and this port here
    for file in /proc/net/tcp /proc/net/tcp6; do
        while read -r _ address _ found _; do
            case $found:$address in
                "$1:0100007F:"* | "$1:00000000000000000000000001000000:"*) ;; # loopback
                "$1:"*":$2") return 0 ;;
            esac
        done 2>/dev/null <"$file"
    done
    return 1
}

hexadecimal() { # PORT: prints it as /proc/net/tcp has it
    "$runtime/bin/busybox" printf '%04X' "$1"
}

apps_are_used() { # whether a browser or another program is connected to an app
    [ -s "$config/apps" ] || return 1
    apps=''
    read_apps
    for app in $apps; do
        split_app "$app"
        has_socket 01 "$(hexadecimal "$port")" && return 0
    done
    return 1
}

request() { # asks the app for its path, and prints the first line of the answer
    printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1:%s\r\n\r\n' "$ready" "$port" |
        "$runtime/bin/busybox" timeout 5 "$runtime/bin/busybox" nc 127.0.0.1 "$port" 2>/dev/null | "$runtime/bin/head" -n 1
}

answers() { # whether the app is ready. A path that asks for a login is an answer
    case $ready in
        /*)
            has_socket 0A "$hex" || return 1
            case $(request) in
                HTTP/1.?' '[23]* | HTTP/1.?' 40'[13]*) ;;
                *) return 1 ;;
            esac
            ;;
        *) has_socket 0A "$(hexadecimal "$ready")" ;;
    esac
}

is_wanted() { # whether the app is still to run, as this keeper knows it
    wanted=''
    { read -r wanted <"$folder/wanted"; } 2>/dev/null
    [ "$wanted" = "$serial" ]
}

note() { # STATUS
    status=$1
    echo "$1" >"$folder/status"
}

copy_output() { # NAME PIPE: to the app's log, which is rotated, and to that of the container. It ends with the app's last program
    trap '' TERM
    written=$({ "$runtime/bin/busybox" wc -c <"$app_logs/$1.log"; } 2>/dev/null) # by former runs of the app
    # shellcheck disable=SC2016 # a program of awk
    exec "$runtime/bin/busybox" awk -v name="$1" -v file="$app_logs/$1.log" -v most="$longest_log" -v size="$written" '
        {
            print >>file
            fflush(file)
            print name ": " $0
            fflush()
            size += length($0) + 1
            if (size > most) { close(file); system("mv " file " " file ".1"); size = 0 }
        }' <"$2"
}

begin_app() { # sets app and copier, the PIDs of the app, which leads a process session of its own, and of the copier of its output
    rm -f "$folder/output"
    "$runtime/bin/busybox" mkfifo -m 0600 "$folder/output"
    chown "$uid:$gid" "$folder/output" # so that the app can open /dev/stdout
    copy_output "$name" "$folder/output" &
    copier=$!
    (
        # shellcheck disable=SC1091 # assignments that the collection has quoted
        [ ! -s "$files/environment" ] || . "$files/environment"
        export APP_NAME="$name" APP_PORT="$port" APP_TOKEN_FILE="$files/token" JUPYTER_TOKEN_FILE="$files/token"
        as_user "$files/command"
    ) >"$folder/output" 2>&1 </dev/null &
    app=$!
}

watch_app() { # returns when the app has ended or is not wanted
    pause=0.3
    while is_alive "$app" && is_wanted; do
        if [ "$status" != ready ] && answers; then
            note ready
            say "app $name is ready at port $port"
            pause=1 was_ready=yes
            read_clock
            ready_at=$clock
        fi
        "$runtime/bin/sleep" "$pause"
    done
}

run_app() { # sets code, the exit code of the app
    note starting
    begin_app
    watch_app
    end_session "$app" # also what the app has left behind: it may hold its port
    wait "$app"
    code=$?
    tries_left=10
    while is_alive "$copier" && [ "$tries_left" -gt 0 ]; do
        "$runtime/bin/sleep" 0.1
        tries_left=$((tries_left - 1))
    done
}

count_try() { # sets tries, those in a row, and rest, the seconds before the next
    read_clock
    if [ -n "$ready_at" ] && [ $((clock - ready_at)) -ge "$settled" ]; then
        tries=0
    fi
    ready_at=''
    tries=$((tries + 1))
    rest=60
    [ "$tries" -gt 6 ] || rest=$((1 << (tries - 1)))
}

has_failed() {
    [ "$tries" -ge "$most_tries" ] || { [ -z "$was_ready" ] && [ "$tries" -ge "$first_tries" ]; }
}

wait_while_wanted() { # SECONDS, for ever without
    waited=0
    while is_wanted && [ "$waited" -lt "${1:-$((waited + 1))}" ]; do
        "$runtime/bin/sleep" 1
        waited=$((waited + 1))
    done
}

keep_app() { # keeps one app until it is not wanted
    tries=0 was_ready='' ready_at='' status=''
    files=$config/app/$name hex=$(hexadecimal "$port")
    note starting
    echo "$serial" >"$folder/serial"
    while is_wanted; do
        run_app
        is_wanted || break
        count_try
        if has_failed; then
            note "failed $code"
            say "app $name has ended with exit code $code $tries times and is not started again"
            wait_while_wanted
            break
        fi
        note "restarting $code"
        say "app $name has ended with exit code $code and is started again in $rest s"
        wait_while_wanted "$rest"
    done
    note ended
}

want() { # SERIAL: an empty one ends the app
    wanted=''
    { read -r wanted <"$folder/wanted"; } 2>/dev/null
    [ "$wanted" = "$1" ] || echo "$1" >"$folder/wanted"
}

keep_listed() { # gives each app of the list a keeper, once the keeper of its last serial has ended the app
    for app in $apps; do
        split_app "$app"
        folder=$state/apps/$name keeper=''
        mkdir -p "$folder"
        want "$serial"
        { read -r keeper <"$folder/keeper"; } 2>/dev/null
        if [ -z "$keeper" ] || ! is_alive "$keeper"; then
            keep_app &
            echo "$!" >"$folder/keeper"
        fi
    done
}

end_unlisted() {
    for folder in "$state"/apps/*; do
        case "$apps," in
            *" ${folder##*/},"*) ;;
            *) [ ! -d "$folder" ] || want '' ;;
        esac
    done
}

show_status() { # writes the status of all apps to one file, if it has changed
    summary=''
    for app in $apps; do
        split_app "$app"
        status=starting
        { read -r status <"$state/apps/$name/status"; } 2>/dev/null
        summary="$summary$name $status
"
    done
    [ "$summary" != "$shown" ] || return 0
    printf '%s' "$summary" >"$state/apps.status.new"
    mv "$state/apps.status.new" "$state/apps.status"
    shown=$summary
}

keep_apps() {
    [ -d "$state/apps" ] || rm -rf "$app_logs" # the image may have been made from another session's container
    rm -rf "$state/apps" "$state/apps.status"
    mkdir -p "$state/apps" "$app_logs"
    apps='' shown=none # so that a list without apps, which were removed, is written, too
    while :; do
        read_apps
        keep_listed
        end_unlisted
        show_status
        "$runtime/bin/sleep" 1
    done
}
