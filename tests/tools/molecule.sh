#!/usr/bin/env bash
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Run all molecule scenarios, or the given scenarios, in sequence. A scenario that fails runs a second time, openly, and must then
# pass, as the tests on an engine do (see Makefile). Usage: molecule.sh [SCENARIO ...]
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH=$PWD/.venv/bin:$PATH MOLECULE_COMMAND_BORDERS=false
[[ -t 1 ]] || export NO_COLOR=1
reports=.cache/reports
mkdir -p "$reports"

if (($# == 0)); then
    for file in extensions/molecule/*/molecule.yml; do set -- "$@" "$(basename "$(dirname "$file")")"; done
fi
# The result of a run, as pytest writes it, for tests/tools/steps.py.
passes() {
    local scenario=$1 run=$2 failure=
    echo "--- scenario $scenario, run $run"
    python tests/tools/warm_playbook.py molecule test --scenario-name "$scenario" </dev/null || failure='<failure message="see the output of molecule"/>'
    printf '<testsuite><testcase name="molecule scenario %s">%s</testcase></testsuite>\n' "$scenario" "$failure" \
        >"$reports/molecule-$scenario.$run.xml"
    [[ -z $failure ]]
}
# SECOND is "later" for the first run only, and "now" for the second one only.
failed=()
for scenario in "$@"; do
    { [[ ${SECOND:-} != now ]] && passes "$scenario" 1; } || { [[ ${SECOND:-} != later ]] && passes "$scenario" 2; } || failed+=("$scenario")
done
if ((${#failed[@]})); then
    echo "failed scenarios: ${failed[*]}" >&2
    exit 1
fi
echo "$# scenarios passed: $*"
