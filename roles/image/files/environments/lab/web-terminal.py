#!/usr/bin/env python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A terminal in the browser: every page shows the same tmux session, which outlives the page and this server.

The page is that of Jupyter Notebook. The token is read from the file that JUPYTER_TOKEN_FILE names. Usage: web-terminal --port=PORT
"""

import sys
from typing import Any

from jupyter_server.serverapp import ServerApp
from notebook.app import TerminalHandler
from tornado import web
from traitlets.config import Config

# The page looks for its own shortcuts, such as Ctrl-B and Ctrl-S, before the terminal gets a key. Keys that are typed into the
# terminal belong to the shell and to tmux, so the page does not get these.
LEAVE_KEYS = """<script>
(function () {
    var listen = document.addEventListener;
    document.addEventListener = function (type, listener, options) {
        var own = !/^key/.test(type) ? listener : function (event) {
            if (event.target.closest && event.target.closest(".xterm")) {
                return;
            }
            if (listener.handleEvent) {
                listener.handleEvent(event);
            } else {
                listener.call(this, event);
            }
        };
        return listen.call(this, type, own, options);
    };
})();
</script>"""


@web.authenticated
def get(self: Any, _path: str = "") -> Any:
    """The page of the terminal, which begins with that script."""
    page = self.render_template("terminals.html", page_config=self.get_page_config())
    return self.write(page.replace("<head>", "<head>" + LEAVE_KEYS, 1))


TerminalHandler.get = get

config = Config()
config.ServerApp.ip = "0.0.0.0"
config.ServerApp.port_retries = 0
config.ServerApp.open_browser = False
config.ServerApp.terminado_settings = {"shell_command": ["tmux", "new-session", "-A", "-s", "web"]}
ServerApp.launch_instance(sys.argv[1:], config=config)
