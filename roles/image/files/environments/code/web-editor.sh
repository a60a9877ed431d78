#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The editor code-server. Without arguments, it is the app: its password, the app's token, reaches it by a pipe, so that neither the
# list of processes nor an environment nor a file shows it. Arguments such as --install-extension FILE are passed on.
# CODE_EXTENSIONS names the directory of the extensions.
set -- --extensions-dir "${CODE_EXTENSIONS:-$HOME/.local/share/code-server/extensions}" "$@"
[ "$#" -eq 2 ] || exec /opt/code-server/lib/node /opt/code-server --config /dev/null "$@"
token=$(cat "$APP_TOKEN_FILE") || exit
exec /opt/code-server/lib/node /opt/code-server --config /dev/fd/3 "$@" "$HOME" 3<<END
bind-addr: 0.0.0.0:$APP_PORT
auth: password
password: "$token"
i18n: /opt/code-server/login.json
disable-telemetry: true
disable-update-check: true
END
