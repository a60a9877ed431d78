# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import io
import tarfile

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.archives import Entry, pack_archive


def test_the_archive_holds_owners_and_modes() -> None:
    packed = pack_archive([Entry("/home/work", None, 0o700, 5, 6), Entry("/home/work/ä", b"text", 0o600, 5, 6)])

    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        folder, file = archive.getmembers()
        content = archive.extractfile(file)
        assert (folder.name, folder.isdir(), folder.mode, folder.uid, folder.gid) == ("home/work", True, 0o700, 5, 6)
        assert (file.name, file.mode) == ("home/work/ä", 0o600)
        assert folder.mtime == file.mtime > 0
        assert content is not None
        assert content.read() == b"text"


def test_an_archive_is_packed_for_the_folder_that_it_is_unpacked_in() -> None:
    packed = pack_archive([Entry("/home/work", None), Entry("/home/work/b", b"text")], folder="/home")

    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        assert archive.getnames() == ["work", "work/b"]
