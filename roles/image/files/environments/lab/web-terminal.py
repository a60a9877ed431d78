#!/usr/bin/env python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A terminal in the browser: every page shows the same tmux session, which outlives the page and this server.

The page is that of Jupyter Notebook. The token is read from the file that JUPYTER_TOKEN_FILE names. Usage: web-terminal --port=PORT
"""

import sys

from jupyter_server.serverapp import ServerApp
from traitlets.config import Config

config = Config()
config.ServerApp.ip = "0.0.0.0"
config.ServerApp.port_retries = 0
config.ServerApp.open_browser = False
config.ServerApp.terminado_settings = {"shell_command": ["tmux", "new-session", "-A", "-s", "web"]}
ServerApp.launch_instance(sys.argv[1:], config=config)
