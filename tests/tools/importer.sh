#!/usr/bin/env bash
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Import the built collection as Galaxy does: galaxy-importer must end without an error and without a warning.
# Usage: importer.sh ENVIRONMENT, a virtual environment with galaxy-importer.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
environment=$(cd "$1" && pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$root/.venv/bin/ansible-galaxy" collection build --output-path "$work" "$root" >"$work/log"
# `make ansible-lint` checks all that is in the archive, by stricter rules, and `make artifact` reads its documentation in one start of
# ansible-doc instead of twenty.
export PATH=$environment/bin:$PATH HOME=$work GALAXY_IMPORTER_RUN_ANSIBLE_LINT=false GALAXY_IMPORTER_RUN_ANSIBLE_DOC=false
unset ANSIBLE_CONFIG
cd "$work"
python -m galaxy_importer.main cluster-compute-*.tar.gz >output 2>&1 || { cat output; exit 1; }
if grep -E '^(ERROR|WARNING)' output; then
    echo "galaxy-importer has warnings or errors" >&2
    exit 1
fi
grep "^Importer processing completed successfully" output
