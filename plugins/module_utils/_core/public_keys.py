# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Public keys of SSH for ``authorized_keys``: each on one line, and without options, which could run a command."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import base64
import binascii
from typing import Any, List, Tuple

from .errors import InputError

MOST, _LONGEST = 100, 4096
_LEAST_MODULUS = 256
# The types that sshd accepts, and how many parts their keys have.
_PARTS = {
    "ssh-ed25519": 2,
    "ssh-rsa": 3,
    "ecdsa-sha2-nistp256": 3,
    "ecdsa-sha2-nistp384": 3,
    "ecdsa-sha2-nistp521": 3,
    "sk-ssh-ed25519@openssh.com": 3,
    "sk-ecdsa-sha2-nistp256@openssh.com": 4,
}
_RULE = "must be a public key on one line, as in id_ed25519.pub: TYPE KEY COMMENT, without options; TYPE is one of: %s"


def check_public_keys(variable: str, value: Any) -> Tuple[str, ...]:
    """The lines of a list of keys; a string is a single key."""
    keys = [value] if isinstance(value, str) else value
    if not isinstance(keys, (list, tuple)) or len(keys) > MOST:
        raise InputError(variable, value, "must be a list of at most %d public keys" % MOST)
    return tuple(dict.fromkeys(check_public_key(variable, key) for key in keys))


def check_public_key(variable: str, value: Any) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if "PRIVATE KEY" in text:
        raise InputError(variable, "a private key", "must be the public key, which is in the file that ends with .pub")
    words = text.split(" ")
    if not text.isprintable() or len(text) > _LONGEST or len(words) < 2 or not _is_key(words[0], words[1]):
        raise InputError(variable, value, _RULE % ", ".join(_PARTS))
    return text


def _is_key(kind: str, text: str) -> bool:
    """Whether the text is a key of this type: the type again, and the numbers of the key, each after its length."""
    try:
        rest = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return False
    parts: List[bytes] = []
    while len(rest) >= 4:
        end = 4 + int.from_bytes(rest[:4], "big")
        if len(rest) < end:
            return False
        parts.append(rest[4:end])
        rest = rest[end:]
    if rest or len(parts) != _PARTS.get(kind) or parts[0] != kind.encode() or not all(parts):
        return False
    return kind != "ssh-rsa" or len(parts[2]) >= _LEAST_MODULUS
