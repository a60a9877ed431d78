# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.plugin_utils._client.keys import SECRET_BYTES, Identity

SECRET = bytes(range(SECRET_BYTES))


def keygen(*arguments: str) -> str:
    """The output of OpenSSH itself."""
    return subprocess.run(["ssh-keygen", *arguments], capture_output=True, text=True, check=True).stdout


def test_the_same_secret_and_session_give_the_same_keys_again() -> None:
    # A change here would give every living session other keys at its next repair.
    assert Identity(SECRET, "session").host("sub1").public == Identity(SECRET, "session").host("sub1").public
    assert Identity(SECRET, "session").authority.split()[1] == (
        "AAAAC3NzaC1lZDI1NTE5AAAAIH/kgrZG2/vSs702pbHgVnucZFCmMy2wixc6P2ESEmbA"
    )


def test_every_key_is_another_one() -> None:
    here, there = Identity(SECRET, "session"), Identity(SECRET, "other")
    keys = [one.public for one in (here.user, here.cluster, here.host("main1"), here.host("sub1"), there.user)]
    keys += [here.authority, there.authority, here.host("user").public, here.host("ca").public]

    assert len({key.split()[1] for key in keys}) == len(keys)


def test_a_certificate_names_its_host_for_good(tmp_path: Path) -> None:
    identity = Identity(SECRET, "session-id")
    certificate = tmp_path / "cert.pub"
    certificate.write_text(identity.certificate("sub1", ["sub1", "10.0.0.3", "uuid"]) + "\n")

    shown = subprocess.run(
        ["ssh-keygen", "-L", "-f", str(certificate)], capture_output=True, text=True, check=True
    ).stdout
    assert "host certificate" in shown
    assert 'Key ID: "session-id sub1"' in shown
    assert "Valid: forever" in shown
    assert shown.split("Principals:")[1].split("Critical")[0].split() == ["sub1", "10.0.0.3", "uuid"]


def test_openssh_reads_the_private_keys(tmp_path: Path) -> None:
    pair = Identity(SECRET, "session").user
    key = tmp_path / "key"
    key.write_text(pair.private)
    key.chmod(0o600)

    shown = keygen("-y", "-f", str(key))
    assert shown.split()[:2] == pair.public.split()[:2]


@pytest.mark.parametrize(
    ("text", "mine"),
    [
        (Identity(SECRET, "session").user.private, True),
        (Identity(SECRET, "session").cluster.private, False),
        (Identity(SECRET, "other").user.private, False),
        ("nonsense", False),
        ("", False),
    ],
)
def test_the_user_s_key_is_known_by_itself(text: str, mine: bool) -> None:
    assert Identity(SECRET, "session").owns(text.encode()) is mine


def test_a_secret_of_another_length_is_refused() -> None:
    with pytest.raises(ComputeError, match="has 5 bytes instead of 32"):
        Identity(b"short", "session")


def test_no_key_is_shown_by_accident() -> None:
    pair = Identity(SECRET, "session").user

    assert "PRIVATE" not in repr(pair)
