#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Run a command on main1 with a Ray cluster over the session: the head on main1, where no tasks run, and a worker in every sub.
#
#   run.sh COMMAND [ARGUMENT ...]
set -eu

# --node-ip-address: over several agents, a container also has an address for the way out, which Ray would take.
# The head does not look for another one at RAY_ADDRESS.
env -u RAY_ADDRESS ray start --head --port 6379 --num-cpus 0 --include-dashboard false --disable-usage-stats \
    --node-ip-address "$(hostname -i)" --object-store-memory 100000000
# shellcheck disable=SC2016 # each container expands it
everywhere '[ "$BACKENDAI_CLUSTER_ROLE" = main ] || exec ray start --address "$RAY_ADDRESS" --num-cpus 1 --disable-usage-stats \
    --node-ip-address "$(hostname -i)" --object-store-memory 100000000 --block' &
workers=$!
code=0
"$@" || code=$?
kill "$workers"
ray stop
wait
exit "$code"
