# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters for lists of the roles ``agent`` and ``image``, implemented in module_utils/_agents."""

from __future__ import annotations

from typing import Any, Callable, Dict

from ansible_collections.cluster.compute.plugins.module_utils._agents import provisioning, reference_image


class FilterModule:
    """Filters of the roles ``agent`` and ``image``."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {
            "busy_containers": provisioning.busy_containers,
            "package_sources": reference_image.package_sources,
            "redhat_engine_packages": provisioning.redhat_engine_packages,
            "reference_image_names": provisioning.reference_image_names,
            "store_contents": provisioning.store_contents,
        }
