# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Divide the proof among containers, bound how many they prove at a time, and write the script that does it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Dict, Iterator, List, Sequence, Tuple

from ...module_utils._agent.ssh.config_files import CLIENT_CONFIG
from ...module_utils._shared.constants import RUNTIME_PATH
from ...module_utils._shared.documents.plan import Plan, Resources

# The connections that a container opens at the same time: more do not end earlier. Each client is a process of that container
# that takes 2 MB of its memory; PID 1, sshd and the login of the prover take 6 MB.
MOST_WORKERS = 8
WORKER_MILLICPUS = 125
WORKER_MEMORY = 3 << 20
OWN_MEMORY = 8 << 20
# main1 proves so many others itself. In a larger session, it proves the first container of each group, which proves the rest.
GROUP = 16
# More time for a session of many: seconds for each container.
EXTRA = 0.25

# No more is read from the shell of another container, and shown of its answer.
MOST_OF_SHELL, MOST_OF_ANSWER = 1 << 16, 300

# Runs the words behind it as programs of users run a command: by a shell in that of the login. It may read other files (BASH_ENV), as
# that of `everywhere` does.
_INNER = '{bin}/sh -c \'exec "${{SHELL:-{bin}/sh}}" -c "$*"\' sh '.format(bin=RUNTIME_PATH + "/bin")

# Runs the script that arrives on stdin, which needs its own text for other containers.
START = "{bin}/sh -c 's=$({bin}/busybox cat); eval \"$s\"' prove".format(bin=RUNTIME_PATH + "/bin")

# The client's options: one attempt, because the script itself repeats it, and a cheap cipher that every OpenSSH accepts.
# What is exchanged is no secret; the keys, the key exchange and the strict host key check are the session's own.
OPTIONS = "-T -o BatchMode=yes -o ConnectionAttempts=1 -o AddressFamily=inet -o Ciphers=^aes128-gcm@openssh.com"

# The program that a plain `ssh` is in a session's container, unless the image or the home puts another first.
FIRST = RUNTIME_PATH + "/unprivileged/ssh"

# Runs in any image: it needs nothing but the runtime. Login shells may print (.bashrc, BASH_ENV), even without an end. So every
# answer is a line that begins with the mark: "MARK yes HOST", or "MARK no HOST REASON". An argument is a container, or a
# container and those that it proves in turn: HOST:WORKERS:HOST,HOST. Each worker has every n-th argument. The first is reached as
# users reach it, by a plain `ssh`. If that is another program than the runtime's, it connects once more, and what keeps it from
# that is named with the first option that is not the session's.
_TEMPLATE = """
mark=$1; seconds=$2; workers=$3; shift 3
clock() {
    read -r up _ </proc/uptime
    up=${up%%.*}
}
clock
late=$((up + seconds))
say() {
    echo "
$mark $*"
}
login() {
    @bin@/busybox timeout -s KILL "$((left + 1))" $client @options@ -o ConnectTimeout="$connect" "$1" "$2" 2>&1 |
        @bin@/busybox head -c @shell@
}
enter() {
    connect=5
    [ "$left" -gt 5 ] || connect=$left
    case $1 in
    *:*)
        members=${1#*:}
        part="$((left - 1)) ${members%%:*} $(echo "${members#*:}" | @bin@/busybox tr , ' ')"
        echo "$s" | login "${1%%:*}" "$ask; exec "@start@" $mark $part" ;;
    *) login "$1" "$ask" </dev/null ;;
    esac
}
option() {
    ours="
$(@bin@/ssh -F @config@ -G "$1")
"
    files=$("$usual" -v -G "$1" 2>&1 | @bin@/busybox sed -n 's/\\r//; s/.*Reading configuration data //p')
    "$usual" -G "$1" | while read -r name value; do
        case $ours in
        *"
$name $value
"*) continue ;;
        esac
        found=$(@bin@/busybox grep -i -n "^[[:space:]]*$name[[:space:]=]" /dev/null $files | @bin@/busybox head -n 1)
        [ -n "$found" ] || continue
        echo "; $found" | @bin@/busybox tr -s '[:space:]' ' '
        return
    done
}
plain() {
    [ "$usual" != @first@ ] || return 0
    answer="@none@"
    [ -n "$usual" ] || return 1
    new=$(@bin@/busybox timeout -s KILL "$((left / 2 + 1))" "$usual" "$1" "$ask" </dev/null 2>&1 | @bin@/busybox head -c @shell@)
    case $new in
    *"reached:$1;"*) return 0 ;;
    esac
    new=$(echo "$new" | @bin@/busybox tail -n 1 | @bin@/busybox tr -d '\\r')
    answer="@other@ $usual: ${new:-no answer}$(option "$1" </dev/null 2>/dev/null)"
    return 1
}
prove() {
    host=${1%%:*}
    answer=
    while :; do
        clock
        left=$((late - up))
        [ "$left" -gt 0 ] || left=1
        new=$(enter "$1")
        answer=${new:-$answer}
        case $answer in
        *"reached:$host;"*)
            members=$answer
            [ "$turn" -gt 0 ] || plain "$host" || break
            say "yes $host"
            [ "$host" = "$1" ] || echo "$members" | @bin@/busybox grep "^$mark "
            return ;;
        *refused*|*"timed out"*|*"No route"*|*unreachable*|*reset*|*"closed by"*)
            clock
            [ "$up" -ge "$late" ] || { @bin@/busybox sleep 0.2; continue; } ;;
        esac
        break
    done
    say "no $host $(echo "$answer" | @bin@/busybox tail -n 1 | @bin@/busybox head -c @answer@)"
}
say begun
ask=@ask@
usual=$(command -v ssh)
worker=0
while [ "$worker" -lt "$workers" ]; do
    {
        turn=0
        for entry in "$@"; do
            client="@bin@/ssh -F @config@"
            [ "$turn$usual" != "0@first@" ] || client=$usual
            [ "$((turn % workers))" -ne "$worker" ] || prove "$entry"
            turn=$((turn + 1))
        done
    } &
    worker=$((worker + 1))
done
wait
"""


def _script() -> str:
    text = _TEMPLATE
    for word, value in {
        "bin": RUNTIME_PATH + "/bin",
        "config": CLIENT_CONFIG,
        "options": OPTIONS,
        "shell": str(MOST_OF_SHELL),
        "answer": str(MOST_OF_ANSWER),
        "first": FIRST,
        "none": "a login there finds no ssh in its PATH, which .bashrc or BASH_ENV may have set",
        "other": "the first ssh in the PATH of a login there does not connect,",
        "start": shlex.quote(START),
        "ask": shlex.quote(_INNER + shlex.quote('echo "reached:$BACKENDAI_CLUSTER_HOST;"')),
    }.items():
        text = text.replace(f"@{word}@", value)
    return text


SCRIPT = _script()


@dataclass(frozen=True)
class Group:
    """A container that ``main1`` proves, and the members that this one proves in turn, ``workers`` at a time."""

    head: str
    members: Tuple[str, ...] = ()
    workers: int = 1

    def __str__(self) -> str:
        """The argument of the script."""
        return "%s:%d:%s" % (self.head, self.workers, ",".join(self.members)) if self.members else self.head


@dataclass(frozen=True)
class Proof:
    """The groups that ``main1`` proves, ``workers`` at a time."""

    groups: Tuple[Group, ...] = ()
    workers: int = MOST_WORKERS

    @classmethod
    def of(cls, plan: Plan) -> Proof:
        """A small session is proved by ``main1``; a larger one by one container of each group, on the group's own agent."""
        others = plan.containers[1:]
        by_agent: Dict[str, List[str]] = {}
        for container in others:
            by_agent.setdefault(container.agent, []).append(container.hostname)
        workers = workers_of(plan.main.resources)
        if len(others) <= GROUP:
            return cls(tuple(Group(container.hostname) for container in others), workers)
        resources = {container.hostname: container.resources for container in others}
        runs = [names[first : first + GROUP] for names in by_agent.values() for first in range(0, len(names), GROUP)]
        return cls(tuple(Group(run[0], tuple(run[1:]), workers_of(resources[run[0]])) for run in runs), workers)

    def heads(self) -> Proof:
        """The same without the members of groups: a login to each container that ``main1`` proves itself."""
        return Proof(tuple(Group(group.head) for group in self.groups), self.workers)

    @classmethod
    def direct(cls, hostnames: Sequence[str]) -> Proof:
        """``main1`` proves all of them itself."""
        return cls(tuple(Group(name) for name in hostnames))

    def command(self, mark: str, seconds: int) -> str:
        """The command that runs the script on ``main1``."""
        return " ".join([_INNER + shlex.quote(START), mark, str(seconds), str(self.workers), *map(str, self.groups)])

    def pairs(self, main: str) -> Iterator[Tuple[str, str]]:
        """Every container after the one that proves it; the head of a group precedes its members."""
        for group in self.groups:
            yield main, group.head
            for member in group.members:
                yield group.head, member


def workers_of(resources: Resources) -> int:
    """The connections that a container can open at the same time without harm; without limits, the most that are useful.

    >>> workers_of(Resources(millicpus=1000, memory=64 << 20)), workers_of(Resources(millicpus=2000, memory=16 << 20))
    (8, 2)
    """
    shares = [MOST_WORKERS]
    if resources.millicpus:
        shares.append(resources.millicpus // WORKER_MILLICPUS)
    if resources.memory:
        shares.append((resources.memory - OWN_MEMORY) // WORKER_MEMORY)
    return max(1, min(shares))


def seconds_for(timeout: int, size: int) -> int:
    """The deadline of the proof of a session.

    >>> seconds_for(60, 3), seconds_for(60, 400)
    (60, 160)
    """
    return timeout + int(EXTRA * size)
