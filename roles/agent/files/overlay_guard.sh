#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Keeps containers from sending frames into overlay networks: drops what comes from a bridge of Docker to the Swarm's data path port,
# for this host and for every other. "start" installs the rules, "status" looks for them, "stop" removes them. All three print what
# differs. The rules are in the table mangle: Docker never changes it, so they outlast its engine, and no rule of Docker comes before them.
set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
CHAIN=CLUSTER-COMPUTE
PORT=${2:-4789}
# The port of the rules, written by each "start": only root sees rules, and every user sees by this file that they are looked after.
RECORD=/run/cluster-compute-overlay-guard
JUMP="-p udp -m udp --dport $PORT -j $CHAIN"

mangle() { iptables --wait 10 --table mangle "$@"; }

# Frames between two ports of the same bridge pass: they reach no host. A bridge whose name Docker has not chosen may be the host's own.
rules() {
    echo "-m physdev --physdev-is-bridged -j RETURN"
    for bridge in /sys/class/net/br-*/bridge; do
        [ -d "$bridge" ] || continue
        name=${bridge%/bridge}
        name=${name##*/}
        echo "$name" | grep -qE '^br-[0-9a-f]{12}$' || echo "-i $name -j RETURN"
    done
    for bridge in docker0 docker_gwbridge br-+; do
        echo "-i $bridge -j DROP"
    done
}

# What leads from a chain of the table to ours, for whichever port.
jumps() { mangle -S "$1" | sed -n "s/^-A $1 \(.* -j $CHAIN\)\$/\1/p"; }

# Each rule is in its chain, and the chain has no other; traffic to this port is led there, and no other.
installed() {
    mangle -S "$CHAIN" >/dev/null 2>&1 || return 1
    [ "$(mangle -S "$CHAIN" | grep -c '^-A')" = "$(rules | wc -l)" ] || return 1
    for from in INPUT FORWARD; do
        [ "$(jumps "$from")" = "$JUMP" ] || return 1
    done
    rules | while read -r rule; do
        # shellcheck disable=SC2086 # words of a rule
        mangle -C "$CHAIN" $rule 2>/dev/null || exit 1
    done
}

# leave CHAIN JUMPS: remove these jumps.
leave() {
    echo "$2" | while read -r jump; do
        # shellcheck disable=SC2086 # words of a rule
        [ -z "$jump" ] || mangle -D "$1" $jump
    done
}

start() {
    { echo "*mangle" && echo ":$CHAIN - [0:0]" && rules | sed "s/^/-A $CHAIN /" && echo COMMIT; } | iptables-restore --wait 10 --noflush
    for from in INPUT FORWARD; do
        before=$(jumps "$from")
        [ "$before" != "$JUMP" ] || continue
        # shellcheck disable=SC2086 # words of a rule
        mangle -I "$from" $JUMP
        leave "$from" "$before"
    done
}

stop() {
    for from in INPUT FORWARD; do
        leave "$from" "$(jumps "$from")"
    done
    mangle -F "$CHAIN"
    mangle -X "$CHAIN"
}

record() { echo "$PORT" >"$RECORD.new" && chmod 644 "$RECORD.new" && mv "$RECORD.new" "$RECORD"; }

usage() { echo "usage: $0 start|status|stop [PORT]" >&2 && exit 2; }

command -v iptables >/dev/null || { echo "iptables is missing: install it" >&2 && exit 3; }
case $PORT in *[!0-9]*) usage ;; esac
# The timer may run at the same time as the role. A lock is for who can open its file: of any other user, it would hold up the rules.
umask 077
[ "${1:-}" = status ] || { exec 9>"$RECORD.lock" && chmod 600 "$RECORD.lock" && flock -w 60 9; } || {
    echo "$RECORD.lock is held for a minute" >&2 && exit 4
}
case ${1:-} in
start)
    installed || { start && echo "installed"; }
    record
    ;;
status) installed || echo "missing" ;;
stop)
    rm -f "$RECORD" "$RECORD.lock"
    ! mangle -S "$CHAIN" >/dev/null 2>&1 || { stop && echo "removed"; }
    ;;
*) usage ;;
esac
