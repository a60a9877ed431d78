# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.container_files import (
    merged_group,
    merged_passwd,
    merged_shadow,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import User
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError

ROOT = "root:x:0:0:root:/root:/bin/sh\n"
WORK = "work:x:1000:1000::/home/work:/bin/sh\n"
SSHD = "sshd:x:999:65534::/run/sshd:/usr/sbin/nologin\n"
SSHD_998 = SSHD.replace("999", "998")
BOB = "bob:x:1000:1000::/home/bob:/bin/zsh\n"


@pytest.mark.parametrize(
    ("image", "wanted"),
    [
        ("", ROOT + WORK + SSHD),
        ("root:*:0:0:Me:/:/bin/ash\n", "root:*:0:0:Me:/:/bin/ash\n" + WORK + SSHD),
        (ROOT + BOB, ROOT + WORK + BOB + SSHD),
        (BOB + ROOT.rstrip(), ROOT + WORK + BOB + SSHD),
        (ROOT + "work:x:7:7::/x:/bin/false\n" + BOB, ROOT + WORK + BOB + SSHD),
        (ROOT + "sshd:x:74:74::/var/empty:/sbin/nologin\n", ROOT + WORK + "sshd:x:74:74::/var/empty:/sbin/nologin\n"),
        (
            ROOT + "a:x:999:1::/:/x\n\n+::::::\n",
            ROOT + WORK + "a:x:999:1::/:/x\n+::::::\n" + SSHD.replace("999", "998"),
        ),
        (ROOT + "workshop:x:5:5::/:/x\n", ROOT + WORK + "workshop:x:5:5::/:/x\n" + SSHD),
        (ROOT + "odd:x:5:5:a\x0bb\udcff:/:/x\n", ROOT + WORK + "odd:x:5:5:a\x0bb\udcff:/:/x\n" + SSHD),
    ],
)
def test_the_accounts_are_certain_and_the_image_s_own_stay(image: str, wanted: str) -> None:
    merged = merged_passwd(image, User(), "/bin/sh")

    assert merged == wanted
    assert merged_passwd(merged, User(), "/bin/sh") == merged


def test_sshd_never_gets_the_user_s_uid() -> None:
    assert "sshd:x:998:" in merged_passwd("", User(uid=999, gid=999), "/bin/sh")


@pytest.mark.parametrize(
    ("image", "wanted"),
    [
        ("", "root:x:0:\nwork:x:1000:\n"),
        ("root:x:0:\nbob:x:1000:\nvideo:x:44:work\n", "root:x:0:\nwork:x:1000:\nbob:x:1000:\nvideo:x:44:work\n"),
        ("work:x:5:\n", "root:x:0:\nwork:x:1000:\n"),
    ],
)
def test_groups(image: str, wanted: str) -> None:
    assert merged_group(image, User()) == wanted


@pytest.mark.parametrize(
    ("image", "wanted"),
    [
        ("", ""),
        ("root:*:1:::::\n", "root:*:1:::::\n"),
        ("root:*:1:::::\nwork:!:1:::::1:\n", "root:*:1:::::\nwork:*:::::::\n"),
    ],
)
def test_a_locked_password_locks_no_user_out(image: str, wanted: str) -> None:
    assert merged_shadow(image, User()) == wanted


def test_sshd_gets_a_higher_uid_if_the_image_uses_all_of_the_system() -> None:
    image = "".join(f"u{uid}:x:{uid}:{uid}::/:/bin/sh\n" for uid in range(1, 1002))
    assert "\nsshd:x:1002:65534:" in merged_passwd(image, User(), "/bin/sh")


def test_an_image_without_an_unused_uid_is_refused() -> None:
    image = "".join(f"u{uid}:x:{uid}:{uid}::/:/bin/sh\n" for uid in range(1, 65534))
    with pytest.raises(ComputeError, match="uses all user IDs below 65534"):
        merged_passwd(image, User(), "/bin/sh")


@pytest.mark.parametrize(
    ("image", "groups", "wanted"),
    [
        ("", [44], ["device44:x:44:work"]),
        ("video:x:44:", [44], ["video:x:44:work"]),
        ("video:x:44:bob,work\nrender:x:105", [44, 105], ["video:x:44:bob,work", "render:x:105:work"]),
    ],
)
def test_the_user_is_a_member_of_the_groups_that_may_use_devices(
    image: str, groups: list[int], wanted: list[str]
) -> None:
    assert merged_group(image, User(), groups).splitlines() == ["root:x:0:", "work:x:1000:", *wanted]
