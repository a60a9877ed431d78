# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layer of an image that is made of a container: what it keeps of hostile exports, and that no secret is in it."""

from __future__ import annotations

import doctest
import io
import os
import random
import tarfile
from collections.abc import Collection, Iterator

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import kept_files
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError

SECRET, OWN = b"the secret", b"the result"
SECRETS = [
    "home/work/.ssh/id_ed25519",
    "root/.ssh/config",
    "opt/.ssh/id_rsa",
    "etc/cluster-compute/ssh_host_ed25519_key",
    "etc/cluster-compute/id_cluster",
    "etc/cluster-compute/app/lab/token",
    "etc/cluster-compute/command",
    "etc/ssh/ssh_host_ecdsa_key",
    "home/work/.bash_history",
    "home/work/.python_history",
    "root/.ash_history",
    "home/work/.zsh_history",
    "home/work/.ipython/profile_default/history.sqlite",
    "home/work/.ipython/profile_default/history.sqlite-journal",
    "home/work/.local/share/fish/fish_history",
    "home/work/.local/share/jupyter/runtime/kernel-1.json",
    "home/work/.netrc",
    "home/work/id_container",
    "home/work/.cache/huggingface/token",
    "home/work/.docker/config.json",
    "home/work/.aws/credentials",
]
LEFT_OUT = ["tmp/x", "var/tmp/a/b", "run/secrets/token", "dev/shm/x", "proc/1/environ", "etc/hosts", "job/hostfile"]
LEFT_OUT += [
    "etc/ssh/ssh_known_hosts",
    "opt/cluster-compute/bin/sh",
    "var/log/cluster-compute/lab.log",
    "etc/mpi/hydra",
]
KEPT = ["etc/passwd", "home/work/.profile", "home/work/.local/lib/a.py", "usr/lib/history.py", "opt/venv/history"]
KEPT += ["home/work/.sshrc", "var/lib/dpkg/status", "etc/cluster-computer", "tmpfiles/x", "home/work/runs/1"]

# Name, type, and the content of a file or the target of a link.
Item = tuple[str, bytes, "bytes | str"]


def file(name: str, content: bytes = OWN) -> Item:
    return name, tarfile.REGTYPE, content


def link(name: str, target: str) -> Item:
    return name, tarfile.LNKTYPE, target


def export(*items: Item) -> list[bytes]:
    """The pieces of an archive, which cut its blocks anywhere."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, more in items:
            member = tarfile.TarInfo(name)
            member.type, member.uid, member.mode = kind, 1000, 0o640
            content = more if isinstance(more, bytes) else b""
            member.size = len(content)
            member.linkname = more if isinstance(more, str) else ""
            tar.addfile(member, io.BytesIO(content))
    text = buffer.getvalue()
    return [text[start : start + 700] for start in range(0, len(text), 700)]


def made(
    items: Collection[Item], changed: Collection[str] | None = None, deleted: Collection[str] = (), most: int = 1 << 30
) -> dict[str, tarfile.TarInfo]:
    """The entries of the layer. Hard links must lead to files of the same layer that come before."""
    spent = 0

    def spend(size: int) -> None:
        nonlocal spent
        spent += size
        if spent > most:
            raise StateError("too much")

    target = io.BytesIO()
    layer = kept_files.Layer(target, changed, spend)
    if layer.add_export(export(*items)):
        layer.add_names(export(*items))
    layer.add_deleted(deleted)
    if layer.tainted:
        source, target = target, io.BytesIO()
        source.seek(0)
        kept_files.without_paths(source, target, layer.tainted)
    assert SECRET not in target.getvalue()
    return read(target.getvalue())


def read(text: bytes) -> dict[str, tarfile.TarInfo]:
    found: dict[str, tarfile.TarInfo] = {}
    with tarfile.open(fileobj=io.BytesIO(text)) as tar:
        for member in tar:
            assert member.name not in found
            assert not member.islnk() or found[member.linkname].isreg()
            found[member.name] = member
    return found


@pytest.mark.parametrize("path", SECRETS)
def test_secrets_and_links_to_them_are_left_out(path: str) -> None:
    assert kept_files.is_secret(path)
    for before in (True, False):
        named, other = file(path, SECRET), link("usr/other", path)
        if not before:
            named, other = file("usr/other", SECRET), link(path, "usr/other")
        items = [file("usr/mine"), named, other, link("zz/third", other[0] if before else "usr/other")]
        for changed in (None, [item[0] for item in items]):
            assert list(made(items, changed)) == ["usr/mine"]


def test_a_secret_that_a_file_left_out_has_under_another_name() -> None:
    items = [file("tmp/x", SECRET), link("home/work/.ssh/key", "tmp/x"), link("usr/y", "tmp/x"), file("usr/z")]
    assert list(made(items)) == ["usr/z"]


@pytest.mark.parametrize("path", LEFT_OUT)
def test_what_is_of_no_use_is_left_out(path: str) -> None:
    assert not made([file(path)])
    assert not made([file(path)], [path])


def test_what_is_kept() -> None:
    assert list(made([file(path) for path in KEPT])) == KEPT
    assert list(made([file(path) for path in KEPT], KEPT[:2])) == KEPT[:2]


def test_an_image_of_one_layer_has_the_places_that_programs_need() -> None:
    places = [("tmp", tarfile.DIRTYPE, ""), ("var/run", tarfile.SYMTYPE, "/run"), ("dev", tarfile.DIRTYPE, "")]
    assert list(made([*places, file("run", b"no directory")])) == ["tmp", "var/run", "dev"]
    assert not made(places, ["tmp", "var/run", "dev"])


def test_files_stay_whole_under_their_other_names() -> None:
    """The engine writes the content with the first name, which may be no part of the layer."""
    items = [file("tmp/x"), file("bin/base"), link("usr/a", "tmp/x"), link("usr/b", "tmp/x"), link("usr/c", "bin/base")]
    items.append(link("usr/d", "usr/nothing"))
    layer = made(items, ["tmp/x", "usr/a", "usr/b", "usr/c", "usr/d"])
    assert {name: (one.size, one.linkname) for name, one in layer.items()} == {
        "usr/a": (len(OWN), ""),
        "usr/b": (0, "usr/a"),
        "usr/c": (len(OWN), ""),
    }
    assert {one.mode for one in layer.values()} == {0o640}


def test_deleted_files_are_marked() -> None:
    deleted = ["usr/bin/tool", "top", "tmp/x", "home/work/.ssh", "usr/.wh.x", "", "a/\ufffd"]
    assert list(made([file("usr/new")], ["usr/new"], deleted)) == ["usr/new", "usr/bin/.wh.tool", ".wh.top"]


def test_nothing_but_files_directories_and_links_is_kept() -> None:
    kinds = [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE]
    items = [*((f"usr/{number}", kind, "") for number, kind in enumerate(kinds)), ("usr/s", tarfile.SYMTYPE, "/etc")]
    assert list(made(items)) == ["usr/s"]


@pytest.mark.parametrize(
    "name", ["../etc/passwd", "usr/../../x", "usr/.wh.bin", ".wh..wh..opq", "usr/.wh.x/y", "./.wh.a"]
)
def test_names_that_no_layer_may_have(name: str) -> None:
    layer = made([file(name), link("usr/l", name), file("/usr/kept")])
    assert {name: one.isreg() for name, one in layer.items()} == {"usr/kept": True, "usr/l": True}


def test_the_root_itself_is_no_entry() -> None:
    assert not made([("/", tarfile.DIRTYPE, ""), (".", tarfile.DIRTYPE, ""), ("./", tarfile.DIRTYPE, "")])


def test_names_and_attributes_of_files_survive() -> None:
    odd, long = "usr/\udcff\udcfe", "usr/" + "ä" * 300
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in (odd, long):
            member = tarfile.TarInfo(name)
            member.pax_headers = {"SCHILY.xattr.security.capability": "\x01\udcff\x00", "mtime": "12.5", "comment": "x"}
            tar.addfile(member)
    target = io.BytesIO()
    # Go shows each byte that is not UTF-8 as U+FFFD.
    layer = kept_files.Layer(target, {"usr/\ufffd\ufffd", long}, lambda _size: None)
    assert not layer.add_export([buffer.getvalue()])
    layer.add_deleted([])
    found = read(target.getvalue())
    assert list(found) == [odd, long]
    assert found[odd].pax_headers["SCHILY.xattr.security.capability"] == "\x01\udcff\x00"
    assert (found[long].mtime, "comment" in found[long].pax_headers) == (12.5, False)


def test_a_layer_is_bounded() -> None:
    with pytest.raises(StateError):
        made([file(f"usr/{number}") for number in range(9)], most=9000)
    assert len(made([file(f"usr/{number}") for number in range(9)], most=16000)) == 9


def test_an_archive_is_not_kept_in_memory() -> None:
    members = kept_files.kept_members(io.BytesIO(b"".join(export(*(file(f"usr/{number}") for number in range(50))))))
    assert sum(1 for _member in members) == 50


def hostile(source: random.Random) -> Iterator[Item]:
    """Files under harmless and secret names, and links between all of them, in any order."""
    names = [*SECRETS[:6], *LEFT_OUT[:3], *KEPT, "usr/a", "usr/b", "usr/c", "../up", "usr/.wh.a", "/etc/x", "./y"]
    source.shuffle(names)
    files: list[str] = []
    groups: dict[str, list[str]] = {}
    for name in names:
        if files and source.random() < 0.5:
            groups[source.choice(files)].append(name)
        else:
            files.append(name)
            groups[name] = []
    for first, others in groups.items():
        is_secret = any(kept_files.is_secret(name) for name in (first, *others))
        yield file(first, SECRET if is_secret else OWN)
        yield from (link(name, first) for name in others)
    yield source.choice(names) + "/below", tarfile.SYMTYPE, source.choice(["/", "..", "usr/a"])


@pytest.mark.parametrize("seed", range(60 * int(os.environ.get("FUZZ", "1"))))
def test_no_order_of_names_and_links_keeps_a_secret(seed: int) -> None:
    source = random.Random(f"{os.environ.get('SEED', '')}-{seed}")
    items = list(hostile(source))
    changed = None if source.random() < 0.5 else {kept_files.plain(item[0]) for item in items if source.random() < 0.8}
    secrets = {item[0] for item in items if item[2] == SECRET}
    secrets |= {item[0] for item in items if item[1] == tarfile.LNKTYPE and item[2] in secrets}
    if changed is not None:
        # All names of a file are changed when one of them is new.
        changed |= {kept_files.plain(name) for name in secrets}
    layer = made(items, changed)
    assert not [name for name in layer if kept_files.is_left_out(name) or ".wh." in name or ".." in name]
    plain = [item[0] for item in items if item[1] != tarfile.SYMTYPE and item[0] not in secrets and ".." not in item[0]]
    wanted = {kept_files.plain(name) for name in plain}
    wanted = {name for name in wanted if not kept_files.is_left_out(name) and ".wh." not in name}
    assert {name for name, one in layer.items() if not one.issym()} == (wanted if changed is None else wanted & changed)


def test_examples() -> None:
    assert doctest.testmod(kept_files).failed == 0
