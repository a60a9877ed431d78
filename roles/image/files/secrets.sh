#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The secrets of a session, sourced by init.sh, which is PID 1. They are on a tmpfs, so they are gone with every end of the container.
# The controller sends them after each start, with .complete as the last file. /etc/cluster-compute/secrets has the seconds to
# wait for them; it is empty in a session without secrets.
#
# shellcheck disable=SC2154 # init.sh and life.sh set config, state, runtime and clock

secrets=/run/secrets

await_secrets() { # returns when the secrets are there and their variables are set; ends the container if they do not arrive
    [ -s "$config/secrets" ] || return 0
    read -r seconds <"$config/secrets"
    read_clock
    limit=$((clock + seconds * 100))
    : >"$state/.waits_for_secrets" # reports of the agent look for it
    while [ ! -f "$secrets/.complete" ]; do
        if [ "$clock" -ge "$limit" ]; then
            say "the session's secrets did not arrive within $seconds s; run cluster_session.yml again to repair the session"
            exit 82
        fi
        "$runtime/bin/sleep" 0.1
        read_clock
    done
    rm -f "$state/.waits_for_secrets"
    # shellcheck disable=SC1091 # made by the controller
    . "$secrets/.environment"
}

sshd_settings() { # prints the path of sshd's configuration: with the variables of secrets, it is on their tmpfs, too
    if [ ! -s "$config/secrets" ] || [ ! -s "$secrets/.set_env" ]; then
        echo "$config/sshd_config"
        return
    fi
    IFS= read -r variables <"$secrets/.set_env"
    umask 077
    while IFS= read -r line; do
        case $line in
            'SetEnv '*) line="SetEnv $variables ${line#SetEnv }" ;;
        esac
        printf '%s\n' "$line"
    done <"$config/sshd_config" >"$secrets/.sshd_config"
    echo "$secrets/.sshd_config"
}
