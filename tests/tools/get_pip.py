# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A substitute for the get-pip.py that ansible-test downloads: installs with the pip that Python bundles."""

from __future__ import annotations

import ensurepip
import glob
import os
import runpy
import sys
import sysconfig

# Distributions keep the wheels of ensurepip in a folder of their own: https://docs.python.org/3/using/configure.html
FOLDER = sysconfig.get_config_var("WHEEL_PKG_DIR") or os.path.join(os.path.dirname(ensurepip.__file__), "_bundled")
WHEEL = glob.glob(os.path.join(FOLDER, "pip-*.whl"))[0]
UNKNOWN = ("--no-setuptools", "--no-wheel")  # options of get-pip.py, not of pip

sys.path.insert(0, WHEEL)
sys.argv = ["pip", "install", *[argument for argument in sys.argv[1:] if argument not in UNKNOWN]]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
