#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Keeps containers from sending frames into overlay networks: drops what comes from a bridge of Docker to UDP 4789, for this host
# and for every other. "start" installs the rules, "status" looks for them, "stop" removes them. All three print what differs.
# The rules are in the table mangle: Docker never changes it, so they outlast its engine, and no rule of Docker comes before them.
set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
CHAIN=CLUSTER-COMPUTE
PORT=4789

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

# Each rule is in its chain, and the chain has no other.
installed() {
    mangle -S "$CHAIN" >/dev/null 2>&1 || return 1
    [ "$(mangle -S "$CHAIN" | grep -c '^-A')" = "$(rules | wc -l)" ] || return 1
    for from in INPUT FORWARD; do
        mangle -C "$from" -p udp --dport "$PORT" -j "$CHAIN" 2>/dev/null || return 1
    done
    rules | while read -r rule; do
        # shellcheck disable=SC2086 # words of a rule
        mangle -C "$CHAIN" $rule 2>/dev/null || exit 1
    done
}

start() {
    { echo "*mangle" && echo ":$CHAIN - [0:0]" && rules | sed "s/^/-A $CHAIN /" && echo COMMIT; } | iptables-restore --wait 10 --noflush
    for from in INPUT FORWARD; do
        mangle -C "$from" -p udp --dport "$PORT" -j "$CHAIN" 2>/dev/null || mangle -I "$from" -p udp --dport "$PORT" -j "$CHAIN"
    done
}

stop() {
    for from in INPUT FORWARD; do
        while mangle -D "$from" -p udp --dport "$PORT" -j "$CHAIN" 2>/dev/null; do :; done
    done
    mangle -F "$CHAIN"
    mangle -X "$CHAIN"
}

command -v iptables >/dev/null || { echo "iptables is missing: install it" >&2 && exit 3; }
case ${1:-} in
start) installed || { start && echo "installed"; } ;;
status) installed || echo "missing" ;;
stop) ! mangle -S "$CHAIN" >/dev/null 2>&1 || { stop && echo "removed"; } ;;
*) echo "usage: $0 start|status|stop" >&2 && exit 2 ;;
esac
