#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Starts the program of the runtime that has the name by which this script is called, without the image's settings for its own programs.
# ssh, scp and sftp come first in PATH: to the containers of this session they connect with the session's configuration alone, whatever
# the image or the home contains. For any other host, the image's own program runs, if it has one.

set -f
runtime=/opt/cluster-compute
box=$runtime/bin/busybox
config=/etc/cluster-compute/ssh_config
name=${0##*/}
# shellcheck source=roles/image/files/own_environment.sh
. "$runtime/libexec/own_environment.sh"

is_member() { # [USER@]HOST: whether it is a container of this session
    host=${1##*@}
    [ -n "$host" ] && [ -r "$config" ] || return 1
    # The shell would read a line of a thousand names for longer than ssh takes to start.
    case $("$box" sed -n 's/^Host \(.*\)/ \1 /p' "$config") in
        *" $host "*) ;;
        *) return 1 ;;
    esac
}

read_options() { # ARGUMENT ...: sets destination, and given to the configuration that the caller names
    given='' destination='' OPTIND=1
    while getopts ':1246ab:c:e:fgi:kl:m:no:p:qstvxAB:CD:E:F:GI:J:KL:MNO:P:Q:R:S:TVw:W:XYy' option; do
        [ "$option" != F ] || given=$OPTARG
    done
    shift $((OPTIND - 1))
    destination=${1-}
    case $destination in
        ssh://*) destination=${destination#ssh://} destination=${destination%%/*} destination=${destination%:*} ;;
    esac
}

copies_to_member() { # ARGUMENT ...: whether one of them is at a container of this session
    for word in "$@"; do
        case $word in
            -*) continue ;;
            scp://* | sftp://*) word=${word#*://} word=${word%%/*} ;;
        esac
        ! is_member "${word%%:*}" || return 0
    done
    return 1
}

run_of_image() { # ARGUMENT ...: becomes the image's program, if it has one. It gets all that the image sets
    rest=$PATH:
    while [ -n "$rest" ]; do
        program=${rest%%:*}/$name
        rest=${rest#*:}
        case $program in
            "$runtime"/* | /"$name") ;;
            *) [ ! -f "$program" ] || [ ! -x "$program" ] || exec "$program" "$@" ;;
        esac
    done
}

with_settings() { # OPTION ... -- PROGRAM ...: becomes setpriv. The program is the user's: it gets the variables back
    options=
    while [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    shift
    for variable in $image_settings; do
        eval "[ -z \"\${$variable+set}\" ] || set -- \"$variable=\$$variable\" \"\$@\""
    done
    forget_image_settings
    # shellcheck disable=SC2086 # words
    exec "$runtime/libexec/setpriv" $options -- "$box" env -- "$@"
}

case $name in
    ssh)
        read_options "$@"
        if [ "$given" = "$config" ] || is_member "$destination"; then
            [ -n "$given" ] || set -- -F "$config" "$@"
        else
            run_of_image "$@"
        fi
        ;;
    scp | sftp)
        copies_to_member "$@" || run_of_image "$@"
        # The library has this locale in itself. It shows names of files as they are.
        export LC_ALL=C.UTF-8
        set -- -S "$runtime/bin/ssh" "$@"
        ;;
    setpriv)
        case " $* " in
            *' -- '*) with_settings "$@" ;;
        esac
        ;;
esac
forget_image_settings
exec "$runtime/libexec/$name" "$@"
