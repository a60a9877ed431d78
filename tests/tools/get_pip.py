# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A substitute for the get-pip.py that ansible-test downloads: unpacks the pip that Python bundles."""

from __future__ import annotations

import ensurepip
import glob
import os
import sysconfig
import zipfile

# Distributions keep the wheels of ensurepip in a folder of their own: https://docs.python.org/3/using/configure.html
FOLDER = sysconfig.get_config_var("WHEEL_PKG_DIR") or os.path.join(os.path.dirname(ensurepip.__file__), "_bundled")
WHEEL = glob.glob(os.path.join(FOLDER, "pip-*.whl"))[0]
# To let it install the same pip, ansible-test would compile every file of it, and remove all of them once it has installed the rest.
zipfile.ZipFile(WHEEL).extractall(sysconfig.get_path("purelib"))
