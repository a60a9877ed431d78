#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Run a command on main1 with a Dask cluster over the session: the scheduler on main1, a worker in every sub.
#
#   run.sh COMMAND [ARGUMENT ...]
set -eu

dask scheduler --host main1 --no-dashboard &
scheduler=$!
# shellcheck disable=SC2016 # each container expands it
everywhere '[ "$BACKENDAI_CLUSTER_ROLE" = main ] || exec dask worker --host "$BACKENDAI_CLUSTER_HOST" --no-dashboard' &
workers=$!
code=0
"$@" || code=$?
kill "$workers" "$scheduler"
wait
exit "$code"
