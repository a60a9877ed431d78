#!/usr/bin/env python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TensorBoard, which has no login, below a path that is the app's token. Neither the list of processes nor a log shows it.

Usage: tensorboard-with-token FOLDER
"""

import os
import pathlib
import sys
import threading

from tensorboard import default, program

token = pathlib.Path(os.environ["APP_TOKEN_FILE"]).read_text().strip()
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
board = program.TensorBoard(default.get_plugins())
options = {"logdir": folder, "host": "0.0.0.0", "port": os.environ["APP_PORT"], "path_prefix": "/" + token}
board.configure(argv=[None, *(f"--{name}={value}" for name, value in options.items())])
board.launch()
print(f"TensorBoard shows {folder} at port {options['port']}", flush=True)
threading.Event().wait()
