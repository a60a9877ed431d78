#!/usr/bin/env bash
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Start hosts as containers, let the user admin in by SSH, and write their addresses and host keys into the lab's directory. A host that
# exists stays. This is one script because a task of Ansible takes as much processor time as the start of a container.
# Usage: start.sh DIRECTORY NAME LABEL [AGENT IMAGE BOOTS] ..., where BOOTS is True for a host that boots systemd
set -euo pipefail
directory=$1 name=$2 label=$3
shift 3
known=$directory/known_hosts
mkdir -p "$directory/addresses"
chmod 700 "$directory/addresses"
[[ -e $directory/id_agents ]] || ssh-keygen -q -t ed25519 -N '' -C "$name" -f "$directory/id_agents"
docker network inspect "$name" >/dev/null 2>&1 || docker network create --label "$label" "$name"

# Where the local engine cannot make privileged containers, the capabilities that it can give will do.
rights=(--privileged)
docker run --rm --privileged --network none "$2" true ||
    rights=(--cap-add=ALL --cap-drop=SYS_RESOURCE --security-opt=seccomp=unconfined
        --security-opt=apparmor=unconfined --security-opt=systempaths=unconfined "--device-cgroup-rule=a *:* rwm")

# All hosts share the directory /srv/shared, like hosts that mount a file server.
start() {
    local agent=$1 image=$2 boots=$3 options boot
    if [[ $boots == True ]]; then
        # systemd gets cgroups of its own, which the engine mounts read-only for a container that is not privileged.
        options=(--cgroupns=private --stop-signal=SIGRTMIN+3 --env=container=docker --tmpfs=/run/lock)
        # shellcheck disable=SC2016  # the host expands it
        boot='for mounted in /sys/fs/cgroup /sys/fs/cgroup/*/; do mount -o remount,bind,rw "$mounted" 2>/dev/null; done;
            exec /sbin/init'
    else
        options=(--cgroupns=host --volume=/sys/fs/cgroup:/sys/fs/cgroup:rw)
        boot='mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e'
    fi
    # Little processor time: no RSA key, which takes a second, and no post-quantum key exchange, which takes ten times as long as a login.
    boot="key=/etc/ssh/ssh_host_ed25519_key; [ -e \$key ] || ssh-keygen -q -t ed25519 -N '' -f \$key
        printf '%s\n' 'KexAlgorithms curve25519-sha256' \"HostKey \$key\" >/etc/ssh/sshd_config.d/quick.conf; $boot"
    docker run --detach --name "$name-$agent" --hostname "$agent" --network "$name" --label "$label" "${rights[@]}" "${options[@]}" \
        --volume /var/lib/docker --tmpfs /run --tmpfs /tmp --volume "$directory/shared:/srv/shared" \
        "$image" sh -c "mount -o remount,rw /sys; $boot"
}

# The host prints its host key, which it makes at its start. An engine that a login starts has as few versions of the API as Docker 29.
let_in='echo DOCKER_MIN_API_VERSION=1.44 >>/etc/environment; umask 077; mkdir -p /home/admin/.ssh; cat >/home/admin/.ssh/authorized_keys; chown -R admin:admin /home/admin/.ssh
    timeout 60 sh -c "until [ -s /etc/ssh/ssh_host_ed25519_key.pub ]; do sleep 0.2; done"; cat /etc/ssh/ssh_host_ed25519_key.pub'
(umask 077 && : >"$known")
for ((rest = $#; rest > 0; rest -= 3)); do
    docker container inspect "$name-$1" >/dev/null 2>&1 || start "$1" "$2" "$3"
    address=$(docker inspect --format '{{ range .NetworkSettings.Networks }}{{ .IPAddress }}{{ end }}' "$name-$1")
    echo "$address $(docker exec --interactive "$name-$1" sh -c "$let_in" <"$directory/id_agents.pub")" >>"$known"
    printf %s "$address" >"$directory/addresses/$1"
    shift 3
done

# A host that boots systemd accepts logins only when it has booted.
login() {
    ssh -F none -i "$directory/id_agents" -o IdentitiesOnly=yes -o BatchMode=yes -o UserKnownHostsFile="$known" \
        -o GlobalKnownHostsFile=/dev/null "admin@$1" true
}
for file in "$directory"/addresses/*; do
    attempts=0
    until login "$(<"$file")"; do
        ((++attempts < 120))
        sleep 0.5
    done
done
