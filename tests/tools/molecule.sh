#!/usr/bin/env bash
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Run all molecule scenarios, or the given scenarios, in sequence. Usage: molecule.sh [SCENARIO ...]
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH=$PWD/.venv/bin:$PATH MOLECULE_COMMAND_BORDERS=false
[[ -t 1 ]] || export NO_COLOR=1

if (($# == 0)); then
    for file in extensions/molecule/*/molecule.yml; do set -- "$@" "$(basename "$(dirname "$file")")"; done
fi
failed=()
for scenario in "$@"; do
    echo "--- scenario $scenario"
    molecule test --scenario-name "$scenario" </dev/null || failed+=("$scenario")
done
if ((${#failed[@]})); then
    echo "failed scenarios: ${failed[*]}" >&2
    exit 1
fi
echo "$# scenarios passed: $*"
