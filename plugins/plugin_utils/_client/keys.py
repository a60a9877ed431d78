# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The keys of a session, all derived from a single secret that never leaves the controller.

A container that is created again gets the same host key. Its private key is stored only in the container.
"""

from __future__ import annotations

import hashlib
import hmac
import traceback
from dataclasses import dataclass
from typing import Dict, Sequence

from ...module_utils._shared.errors import ComputeError, LibraryError

try:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
except ImportError:
    CRYPTOGRAPHY_TRACE = traceback.format_exc()
else:
    CRYPTOGRAPHY_TRACE = ""

SECRET_BYTES = 32
_FOREVER = 2**64 - 1


@dataclass(frozen=True)
class KeyPair:
    """A key in the formats of OpenSSH. ``private`` leaves the controller only for the container it belongs to."""

    private: str
    public: str

    def __repr__(self) -> str:
        return f"KeyPair({self.public})"


class Identity:
    """The keys of a session. Each key is derived on request and is always the same."""

    def __init__(self, secret: bytes, session: str) -> None:
        if CRYPTOGRAPHY_TRACE:
            raise LibraryError("cryptography", CRYPTOGRAPHY_TRACE)
        if len(secret) != SECRET_BYTES:
            raise ComputeError("The session's secret has %d bytes instead of %d." % (len(secret), SECRET_BYTES))
        self._secret = secret
        self.session = session

    @property
    def authority(self) -> str:
        """The public key of the certificate authority that signs the host keys."""
        return _public(self._key("ca"), "ca")

    @property
    def cluster(self) -> KeyPair:
        """The key with which containers log in to each other."""
        return self._pair("cluster")

    @property
    def user(self) -> KeyPair:
        """The key with which the session's user logs in."""
        return self._pair("user")

    def app_token(self, app: str) -> str:
        return self._seed("app:" + app).hex()

    def host(self, hostname: str) -> KeyPair:
        return self._pair("host:" + hostname)

    def host_keys(self, hostnames: Sequence[str]) -> Dict[str, str]:
        """The public host keys by hostname, for pinning."""
        return {name: _public(self._key("host:" + name), name) for name in hostnames}

    def certificate(self, hostname: str, principals: Sequence[str]) -> str:
        """The certificate of a host key for these names. It does not expire."""
        builder = (
            serialization.SSHCertificateBuilder()
            .public_key(self._key("host:" + hostname).public_key())
            .type(serialization.SSHCertificateType.HOST)
            .key_id((f"{self.session} {hostname}").encode())
            .valid_principals([name.encode() for name in principals])
            .valid_after(0)
            .valid_before(_FOREVER)
        )
        return _line(builder.sign(self._key("ca")).public_bytes(), hostname)

    def owns(self, private: bytes) -> bool:
        """Return whether this is the user's private key. The format has a random part, so texts of the same key differ."""
        try:
            key = serialization.load_ssh_private_key(private, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            return False
        return isinstance(key, Ed25519PrivateKey) and key.private_bytes_raw() == self._seed("user")

    def _seed(self, label: str) -> bytes:
        """HKDF-Expand (RFC 5869) of a single block. The session is part of the input: no two sessions share a key."""
        info = f"cluster.compute/1\0{self.session}\0{label}"
        return hmac.new(self._secret, info.encode() + b"\x01", hashlib.sha256).digest()

    def _key(self, label: str) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self._seed(label))

    def _pair(self, label: str) -> KeyPair:
        key = self._key(label)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        )
        return KeyPair(private.decode(), _public(key, label.rsplit(":", maxsplit=1)[-1]))


def _public(key: Ed25519PrivateKey, comment: str) -> str:
    form = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return _line(form, comment)


def _line(form: bytes, comment: str) -> str:
    return f"{form.decode()} cluster.compute-{comment}"
