#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Keeps containers from sending frames into overlay networks: drops what comes from a bridge of Docker to the Swarm's data path port,
# for this host and for every other. With "fabric", where containers are in an Ethernet segment of this host, it also drops what comes to
# this port from others than hosts: a program there reaches it past all bridges. And keeps others out of the bridges of sessions: the accounts of this host, and hosts that have
# a route through it. "start" installs the rules, "status" looks for them, "stop" removes them. All three print what differs. The
# rules are in the table mangle: Docker never changes it, so they outlast its engine, and no rule of Docker comes before them.
set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
CHAIN=CLUSTER-COMPUTE
SENDERS=CLUSTER-COMPUTE-SENDERS
# 0 without a Swarm: no rules for its port.
PORT=${2:-4789}
FABRIC='' GATEWAY=''
# The bridges of sessions: network_options() in plugins/module_utils/_agent/engine/payloads.py.
SESSIONS=cc-+
# That of all containers on overlays; it is looked after with "gateway", where the Swarm is there for sessions alone.
SHARED=docker_gwbridge
# The port of the rules, written by each "start": only root sees rules, and every user sees by this file that they are looked after.
RECORD=/run/cluster-compute-overlay-guard
# The members of the Swarm as the engine has last said: one that is stopped has not lost them.
PEERS=$RECORD.peers
ENGINE=/run/docker.pid

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

# The addresses of the Swarm's nodes. At a start of this host the engine waits for this program, so it is not asked.
peers() {
    if [ -e "$ENGINE" ] && command -v docker >/dev/null; then
        {
            timeout 5 docker network inspect --format '{{range .Peers}}{{println .IP}}{{end}}' ingress &&
                timeout 5 docker info --format '{{range .Swarm.RemoteManagers}}{{println .Addr}}{{end}}'
        } 2>/dev/null | sed 's/:[0-9]*$//' | grep -E '^[0-9.]+$' | sort -u >"$PEERS.new" && mv "$PEERS.new" "$PEERS"
    fi
    [ ! -s "$PEERS" ] || cat "$PEERS"
}

# Containers never have an address of a network of a host, and cannot forge one. Hosts behind a router are members of the Swarm.
senders() {
    echo "-i lo -j RETURN"
    ip -4 -o address show scope global | while read -r _ name _ address _; do
        case $name in docker0 | docker_gwbridge | br-* | cc-*) ;; *) echo "-s $address -j RETURN" ;; esac
    done
    peers | sed 's/.*/-s & -j RETURN/'
    echo "-j DROP"
}

# What leads from a chain of the table to one of ours, for whichever port.
jumps() { mangle -S "$1" | sed -n "s/^-A $1 \(.* -j $2\)\$/\1/p"; }

# A published port changes the destination of a packet in the table nat. Forwarded, it has been changed. Of this host's own programs,
# it still is the host, and the engine's proxy is root's. What answers a container passes.
session_rules() { # BRIDGE
    echo "FORWARD ! -i $1 -o $1 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP"
    echo "OUTPUT -o $1 -m conntrack --ctstate NEW -m owner ! --uid-owner 0 -j DROP"
}

has_rules_of() { # BRIDGE
    session_rules "$1" | while read -r rule; do
        # shellcheck disable=SC2086 # words of a rule
        mangle -C $rule 2>/dev/null || exit 1
    done
}

start_rules_of() { # BRIDGE
    session_rules "$1" | while read -r rule; do
        # shellcheck disable=SC2086 # words of a rule
        mangle -C $rule 2>/dev/null || mangle -I $rule || exit 1
    done
}

stop_rules_of() { # BRIDGE: prints what it removes
    session_rules "$1" | while read -r rule; do
        # shellcheck disable=SC2086 # words of a rule
        ! mangle -D $rule 2>/dev/null || echo "$rule"
    done
}

has_session_rules() {
    has_rules_of "$SESSIONS" || return 1
    if [ -n "$GATEWAY" ]; then
        has_rules_of "$SHARED"
    elif mangle -S | grep -q -e "-o $SHARED "; then
        return 1
    fi
}

start_session_rules() {
    start_rules_of "$SESSIONS" || return 1
    if [ -n "$GATEWAY" ]; then start_rules_of "$SHARED"; else stop_rules_of "$SHARED" >/dev/null; fi
}

# has_chain NAME PORT RULES FROM...: whether each rule is in the chain, and no other, and whether these chains lead traffic to this port
# there, and no other. Without a port, the chain is not there.
has_chain() {
    chain=$1 port=$2 rules=$3
    shift 3
    mangle -S "$chain" >/dev/null 2>&1 || { [ "$port" = 0 ] && return 0 || return 1; }
    [ "$port" != 0 ] || return 1
    [ "$(mangle -S "$chain" | grep -c '^-A')" = "$(echo "$rules" | wc -l)" ] || return 1
    for from in "$@"; do
        [ "$(jumps "$from" "$chain")" = "-p udp -m udp --dport $port -j $chain" ] || return 1
    done
    echo "$rules" | while read -r rule; do
        # shellcheck disable=SC2086 # words of a rule
        mangle -C "$chain" $rule 2>/dev/null || exit 1
    done
}

# leave CHAIN JUMPS: remove these jumps.
leave() {
    echo "$2" | while read -r jump; do
        # shellcheck disable=SC2086 # words of a rule
        [ -z "$jump" ] || mangle -D "$1" $jump
    done
}

# Of the arguments of has_chain.
start_chain() {
    chain=$1 port=$2 rules=$3
    shift 3
    if [ "$port" = 0 ]; then
        stop_chain "$chain" "$@"
        return
    fi
    { echo "*mangle" && echo ":$chain - [0:0]" && echo "$rules" | sed "s/^/-A $chain /" && echo COMMIT; } |
        iptables-restore --wait 10 --noflush || return 1
    jump="-p udp -m udp --dport $port -j $chain"
    for from in "$@"; do
        before=$(jumps "$from" "$chain")
        [ "$before" != "$jump" ] || continue
        # shellcheck disable=SC2086 # words of a rule
        mangle -I "$from" $jump || return 1
        leave "$from" "$before"
    done
}

# stop_chain NAME FROM...
stop_chain() {
    chain=$1
    shift
    mangle -S "$chain" >/dev/null 2>&1 || return 0
    for from in "$@"; do
        leave "$from" "$(jumps "$from" "$chain")"
    done
    mangle -F "$chain"
    mangle -X "$chain"
}

has_port_rules() { has_chain "$CHAIN" "$PORT" "$(rules)" INPUT FORWARD && has_chain "$SENDERS" "$SENDERS_PORT" "$FROM_HOSTS" INPUT; }

start_port_rules() {
    start_chain "$CHAIN" "$PORT" "$(rules)" INPUT FORWARD && start_chain "$SENDERS" "$SENDERS_PORT" "$FROM_HOSTS" INPUT
}

stop_port_rules() {
    stop_chain "$SENDERS" INPUT
    stop_chain "$CHAIN" INPUT FORWARD
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
    removed=$(stop_rules_of "$SESSIONS" && stop_rules_of "$SHARED")
    ! mangle -S "$CHAIN" >/dev/null 2>&1 || { stop_port_rules && removed=$CHAIN; }
    [ -z "$removed" ] || echo "removed"
}

record() { echo "$PORT${FABRIC:+ fabric}${GATEWAY:+ gateway}" >"$RECORD.new" && chmod 644 "$RECORD.new" && mv "$RECORD.new" "$RECORD"; }

usage() { echo "usage: $0 start|status|stop [PORT [fabric] [gateway]]" >&2 && exit 2; }

command -v iptables >/dev/null || { echo "iptables is missing: install it" >&2 && exit 3; }
case $PORT in *[!0-9]*) usage ;; esac
verb=${1:-}
[ "$#" -lt 3 ] || shift 2
for kind; do
    case $kind in
    fabric) FABRIC=yes ;;
    gateway) GATEWAY=yes ;;
    "$verb" | "$PORT") ;;
    *) usage ;;
    esac
done
# The timer may run at the same time as the role. A lock is for who can open its file: of any other user, it would hold up the rules.
umask 077
[ "$verb" = status ] || { exec 9>"$RECORD.lock" && chmod 600 "$RECORD.lock" && flock -w 60 9; } || {
    echo "$RECORD.lock is held for a minute" >&2 && exit 4
}
SENDERS_PORT=0 FROM_HOSTS=
[ -z "$FABRIC" ] || [ "$PORT" = 0 ] || {
    command -v ip >/dev/null || { echo "ip is missing: install iproute2" >&2 && exit 3; }
    SENDERS_PORT=$PORT FROM_HOSTS=$(senders)
}
case $verb in
start)
    installed || { start && echo "installed"; } || exit 5
    record
    ;;
status) installed || echo "missing" ;;
stop)
    rm -f "$RECORD" "$RECORD.lock" "$PEERS"
    stop
    ;;
*) usage ;;
esac
