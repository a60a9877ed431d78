#!/usr/bin/env bash
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Run ansible-test sanity on the collection as users install it, with every Python that works on this machine.
# Usage: sanity.sh [--environment FOLDER] [--short | ARGUMENT of `ansible-test sanity` ...]
# --short: without what other steps of `make test` check by stricter rules (ruff has rules of pylint; `make certification` runs its
# own), and with imports by the oldest and the newest Python only.
# FOLDER is a virtual environment with the ansible-core to test with; without it, .venv of the checkout is used.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
environment=$root/.venv
if [[ ${1:-} == --environment ]]; then
    environment=$2
    shift 2
fi

# The shims of version managers fail for all versions but the active version: the real interpreters go first.
if command -v pyenv >/dev/null; then
    for folder in "$(pyenv root)"/versions/*/bin; do PATH=$folder:$PATH; done
fi
export PATH=$environment/bin:$PATH

# ansible-test keeps its own virtual environments in the home folder: give it a folder that stays between runs.
export HOME=$root/.cache/sanity
mkdir -p "$HOME/.ansible/test/cache"

# ansible-test downloads the installer of pip from Ansible's file server. This substitute works without that server: it takes the pip
# that Python bundles.
for version in 23_1_2 24_2 25_2; do
    cp "$root/tests/tools/get_pip.py" "$HOME/.ansible/test/cache/get_pip_$version.py"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ansible-galaxy collection build --output-path "$work" "$root" >"$work/log"
installed=$work/ansible_collections/cluster/compute
mkdir -p "$installed"
cd "$installed"
tar -xzf "$work"/*.tar.gz
if compgen -G "tests/sanity/ignore-*" >/dev/null; then
    echo "tests/sanity contains ignore files: the collection must pass without them" >&2
    exit 1
fi
sanity() { ansible-test sanity --color no "$@" 2>&1 | tee -a "$work/output"; }

working() { # the versions of Python that this ansible-core tests with, and that are here, the oldest first
    for version in $(python -c 'from ansible_test._util.target.common import constants
print(*constants.REMOTE_ONLY_PYTHON_VERSIONS, *constants.CONTROLLER_PYTHON_VERSIONS)'); do
        "python$version" -c '' 2>/dev/null && echo "$version"
    done | sort --version-sort
}

# A file that imports all files that `find` finds by these tests. ansible-test forgets what a file has imported before it imports the next
# one: with each file of its own, it would compile all of them forty times.
everything() {
    find plugins -name '*.py' ! -name __init__.py "$@" | sort | sed 's#/#.#g; s#^#import ansible_collections.cluster.compute.#; s#\.py$##'
}

if [[ ${1:-} == --short ]]; then
    skipped=(compile import ansible-doc changelog pep8 pylint shellcheck yamllint)
    sanity "${skipped[@]/#/--skip-test=}"
    mapfile -t versions < <(working | sed -n '1p;$p' | uniq)
    # On agents, no import of Ansible's other parts is allowed.
    everything -path 'plugins/module_utils/*' >"$work/for_agents.py"
    everything ! -path 'plugins/module*' >"$work/for_controllers.py"
    mv "$work/for_agents.py" plugins/module_utils/
    mv "$work/for_controllers.py" plugins/plugin_utils/
    sanity --test import "${versions[@]/#/--target-python=}" plugins/modules/ plugins/{module_utils,plugin_utils}/for_*.py
else
    sanity "$@"
fi
# Without the program shellcheck, this test only warns; it must run.
if grep -q "WARNING.*shellcheck" "$work/output"; then
    echo "shellcheck did not run: add it to the path (requirements-dev.txt installs it)" >&2
    exit 1
fi
echo "sanity passed"
