#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Keeps containers from sending frames into overlay networks: drops what comes from a bridge of Docker to the Swarm's data path port,
# for this host and for every other. And keeps others out of the bridges of sessions: the accounts of this host, and hosts that have
# a route through it. "start" installs the rules, "status" looks for them, "stop" removes them. All three print what differs. The
# rules are in the table mangle: Docker never changes it, so they outlast its engine, and no rule of Docker comes before them.
set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
CHAIN=CLUSTER-COMPUTE
# 0 without a Swarm: no rules for its port.
PORT=${2:-4789}
# The bridges of sessions: network_options() in plugins/module_utils/_agent/engine/payloads.py.
SESSIONS=cc-+
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
    for bridge in docker0 docker_gwbridge br-+ "$SESSIONS"; do
        echo "-i $bridge -j DROP"
    done
}

# What leads from a chain of the table to ours, for whichever port.
jumps() { mangle -S "$1" | sed -n "s/^-A $1 \(.* -j $CHAIN\)\$/\1/p"; }

# A published port changes the destination of a packet in the table nat. Forwarded, it has been changed. Of this host's own programs,
# it still is the host, and the engine's proxy is root's. What answers a container passes.
session_rules() {
    echo "FORWARD ! -i $SESSIONS -o $SESSIONS -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP"
    echo "OUTPUT -o $SESSIONS -m conntrack --ctstate NEW -m owner ! --uid-owner 0 -j DROP"
}

has_session_rules() {
    session_rules | while read -r rule; do
        # shellcheck disable=SC2086 # words of a rule
        mangle -C $rule 2>/dev/null || exit 1
    done
}

start_session_rules() {
    session_rules | while read -r rule; do
        # shellcheck disable=SC2086 # words of a rule
        mangle -C $rule 2>/dev/null || mangle -I $rule || exit 1
    done
}

# Each rule is in its chain, and the chain has no other; traffic to this port is led there, and no other.
has_port_rules() {
    # Without a Swarm, the chain is not there.
    mangle -S "$CHAIN" >/dev/null 2>&1 || { [ "$PORT" = 0 ] && return 0 || return 1; }
    [ "$PORT" != 0 ] || return 1
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

start_port_rules() {
    if [ "$PORT" = 0 ]; then
        stop_port_rules
        return
    fi
    { echo "*mangle" && echo ":$CHAIN - [0:0]" && rules | sed "s/^/-A $CHAIN /" && echo COMMIT; } | iptables-restore --wait 10 --noflush || return 1
    for from in INPUT FORWARD; do
        before=$(jumps "$from")
        [ "$before" != "$JUMP" ] || continue
        # shellcheck disable=SC2086 # words of a rule
        mangle -I "$from" $JUMP || return 1
        leave "$from" "$before"
    done
}

stop_port_rules() {
    for from in INPUT FORWARD; do
        leave "$from" "$(jumps "$from")"
    done
    mangle -F "$CHAIN"
    mangle -X "$CHAIN"
}

installed() { has_port_rules && has_session_rules; }

# Each kind is installed where the kernel lacks what the other needs.
start() {
    failed=0
    has_port_rules || start_port_rules || failed=1
    start_session_rules || failed=1
    return "$failed"
}

stop() {
    removed=$(session_rules | while read -r rule; do
        # shellcheck disable=SC2086 # words of a rule
        ! mangle -D $rule 2>/dev/null || echo "$rule"
    done)
    ! mangle -S "$CHAIN" >/dev/null 2>&1 || { stop_port_rules && removed=$CHAIN; }
    [ -z "$removed" ] || echo "removed"
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
    installed || { start && echo "installed"; } || exit 5
    record
    ;;
status) installed || echo "missing" ;;
stop)
    rm -f "$RECORD" "$RECORD.lock"
    stop
    ;;
*) usage ;;
esac
