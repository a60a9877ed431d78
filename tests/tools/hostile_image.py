# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image whose settings and files fit no program but its own: everything that images have been seen with, at once."""

from __future__ import annotations

from ssh_lab import Member

# What images set for their own programs, each of which would keep those of the SSH runtime from working.
SETTINGS = {
    "LD_PRELOAD": "/lib/newer.so",
    "LD_LIBRARY_PATH": "/lib/newer",
    "LD_DEBUG": "all",
    "GLIBC_TUNABLES": "glibc.malloc.check=3",
    "OPENSSL_CONF": "/opt/fips.cnf",
    "OPENSSL_MODULES": "/opt/modules",
    "LC_ALL": "de_DE.ISO-8859-1",
    "LOCPATH": "/opt/locale",
    "HOSTALIASES": "/opt/aliases",
    "TMPDIR": "/nowhere",
}
FIPS = b"""openssl_conf = all
[all]
providers = some
alg_section = properties
[some]
fips = fips
[fips]
activate = 1
[properties]
default_properties = fips=yes
"""
CLIENT = b"""NoSuchOption yes
Host *
    Port 2222
    ProxyCommand /bin/false
    RemoteCommand /bin/false
    Ciphers aes256-cbc
    PubkeyAuthentication no
    AddressFamily inet6
"""
HOSTILE: list[Member] = [
    ("opt", None, 0o700),
    ("etc/ssh", None, 0o700),
    ("etc/ssh/ssh_config", CLIENT, 0o644),
    ("etc/ssh/sshrc", b"sleep 1000\n", 0o644),
    ("etc/nologin", b"System is booting up.\n", 0o644),
    ("etc/hosts.deny", b"ALL: ALL\n", 0o644),
    ("etc/hosts.allow", b"ALL: ALL: spawn /bin/touch /spawned: DENY\n", 0o644),
    ("etc/nsswitch.conf", b"passwd: sss\ngroup: sss\nhosts: nis [!UNAVAIL=return]\n", 0o644),
    ("etc/ld.so.preload", b"/lib/newer.so\n", 0o644),
    ("opt/fips.cnf", FIPS, 0o644),
    ("opt/aliases", b"sub1 elsewhere.invalid\n", 0o644),
    ("usr/lib/ssl/openssl.cnf", FIPS, 0o644),
    ("usr/bin/ssh", b"#!/bin/sh\necho not OpenSSH; exit 1\n", 0o755),
    ("usr/bin/scp", b"#!/bin/sh\nexit 1\n", 0o755),
    # Root alone can run it.
    ("bin/bash", b"#!/bin/sh\nexit 1\n", 0o700),
    ("run/sshd", None, 0o777),
    ("tmp", None, 0o755),
    ("usr", None, 0o700),
    ("usr/bin", None, 0o700),
    ("var", None, 0o700),
]
