#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Install the Debian packages of tests/requirements/debian.txt whose programs are not on the PATH.
# Without root or apt-get, show the command that installs them, and fail.
# Usage: packages.sh [PACKAGE ...]; with packages, only these of the list.
set -eu
list=${0%/*}/../requirements/debian.txt
# shellcheck source=/dev/null
release=$(. /etc/os-release; if [ "$ID" = debian ]; then echo "${VERSION_ID:-99}"; else echo 0; fi)

missing() { # the packages whose programs are missing, a space before each; another package may provide a program
    while read -r package program since; do
        if [ "$package" = "#" ] || [ "$release" -lt "${since:-0}" ]; then continue; fi
        case " ${*:-$package} " in *" $package "*) command -v "$program" >/dev/null || printf ' %s' "$package" ;; esac
    done <"$list"
}

packages=$(missing "$@")
[ -n "$packages" ] || exit 0
# Debian starts a service when it installs it, unless the runlevel is 1: the tests start an engine themselves.
command="apt-get update -qq && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends$packages"
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    printf 'The tests need programs of these packages, which are not on the PATH:%s. Install them as root:\n%s\n' "$packages" "$command" >&2
    exit 1
fi
echo "Installing the packages that the tests need:$packages"
sh -c "$command" >/dev/null
packages=$(missing "$@")
[ -z "$packages" ] || {
    echo "Programs of these packages are not on the PATH, although apt-get has installed the packages:$packages" >&2
    exit 1
}
