#!/usr/bin/env bash
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Write the locks: one version of each package, with the digests of its files, for every Python and machine that is supported.
# Usage: lock_requirements.sh ENVIRONMENT, a virtual environment with uv. Versions in a lock stay if they still fit;
# LOCK_OPTIONS=--upgrade takes the newest.
set -euo pipefail
environment=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."

# lock LOCK FILE...
lock() {
    local target=$1
    shift
    # shellcheck disable=SC2086  # several options
    "$environment/bin/uv" pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes --no-annotate \
        --no-header ${LOCK_OPTIONS:-} --output-file "$target" "$@"
    {
        sed -n '/^# /p;/^#/!q' "$1"
        echo "# Written by \`make lock\` from $*."
        echo
        cat "$target"
    } >"$target.new"
    mv "$target.new" "$target"
    echo "$target: $(grep -c == "$target") packages"
}

lock requirements.lock requirements.txt
lock requirements-dev.lock requirements.txt requirements-dev.txt
lock tests/requirements/uv.lock tests/requirements/uv.txt
environments=roles/image/files/environments
lock $environments/lab/requirements.lock $environments/lab/requirements.txt
for name in code pytorch tensorflow; do
    # Their images extend that of lab: what it has, too, has the same version.
    lock $environments/$name/requirements.lock $environments/$name/requirements.txt --constraint $environments/lab/requirements.txt
done
