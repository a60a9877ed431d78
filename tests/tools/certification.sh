#!/usr/bin/env bash
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Check the built and installed collection with the versions that collections are certified with: ansible-lint and
# ansible-test sanity. Usage: certification.sh ENVIRONMENT, a virtual environment with both.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
environment=$(cd "$1" && pwd)
export PATH=$environment/bin:$PATH
unset ANSIBLE_CONFIG

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ansible-galaxy collection build --output-path "$work" "$root" >"$work/log"
ansible-galaxy collection install --offline --force -p "$work" "$work"/*.tar.gz >>"$work/log"
ansible-lint --version
(
    cd "$work/ansible_collections/cluster/compute"
    ANSIBLE_COLLECTIONS_PATH=$work ansible-lint --offline --profile production --strict
)
# The checkout has content that the archive does not have, such as the molecule scenarios.
(cd "$root" && ANSIBLE_CONFIG=$root/ansible.cfg ansible-lint --offline --profile production --strict)
"$root/tests/tools/sanity.sh" --environment "$environment"
