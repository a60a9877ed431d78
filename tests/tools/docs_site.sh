#!/usr/bin/env bash
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Build the documentation site: the pages of the checkout, and the reference of all modules, roles and plugins of the built
# collection. A warning fails the build. Usage: docs_site.sh ENVIRONMENT TARGET
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
environment=$(cd "$1" && pwd)
mkdir -p "$2"
target=$(cd "$2" && pwd)
export PATH=$environment/bin:$PATH
unset ANSIBLE_CONFIG

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ansible-galaxy collection build --output-path "$work" "$root" >log
ansible-galaxy collection install --offline --force -p "$work" "$work"/*.tar.gz >>log 2>&1

source=$work/source
mkdir -p "$source/reference"
cp "$root"/docsite/* "$source"
# Pages link to each other, and to files of the checkout, by their paths there.
(cd "$root" && git ls-files -z --cached --others --exclude-standard -- '*.md' '*.rst' '*.svg' '*.png' 'docs/*.json' LICENSE requirements.txt \
    examples extensions/grafana extensions/patterns plugins/modules tests/requirements |
    grep -zvE '^(docsite|docs/docsite)/' | xargs -0 cp --parents --target-directory="$source")
ANSIBLE_COLLECTIONS_PATH=$work antsibull-docs collection --use-current --squash-hierarchy --fail-on-error \
    --dest-dir "$source/reference" cluster.compute
sphinx-build --quiet --fail-on-warning --keep-going --jobs auto --builder html "$source" "$target"
echo "built $(find "$target" -name '*.html' | wc -l) pages: $target/index.html"
