# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The other end of warm_playbook.py: a process that has imported Ansible, and forks for each run of ansible-playbook or another program.

Usage: warm_ansible.py DESCRIPTOR, of a socket to the tests. It ends with that socket, or at an empty message. Runs have home directories
of their own.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import socket
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = "ansible_collections.cluster.compute.plugins"
PACKED = "ansiballz_cache"  # Ansible's directory for packed modules
READ_AT_IMPORT = ("ANSIBLE_", "PYTHON", "LD_")  # variables whose other values a run would not notice
LONGEST = 1 << 17  # bytes of the arguments of a run


def load() -> None:
    """Import what playbooks use: Ansible, and the collection, which Ansible's loader compiles at each start of a program."""
    for cli in ("adhoc", "inventory", "playbook"):
        importlib.import_module(f"ansible.cli.{cli}")
    from ansible.plugins import loader

    loader.init_plugin_loader()
    # A run loads all plugins of these kinds, and parses their documentation, before its first task. Vars plugins must stay
    # unloaded: Ansible makes the instances that read group_vars beside an inventory only as it loads their classes.
    # https://github.com/ansible/ansible/blob/devel/lib/ansible/vars/plugins.py
    for kind in ("become", "callback", "connection", "inventory", "shell", "strategy"):
        list(getattr(loader, f"{kind}_loader").all(class_only=True))
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        folder, *_others = path.relative_to(ROOT / "plugins").parts
        if folder in ("action", "callback", "doc_fragments", "module_utils", "modules", "plugin_utils"):
            importlib.import_module(".".join((PLUGINS, *path.relative_to(ROOT / "plugins").with_suffix("").parts)))
    # Actions on an agent that is this machine import it.
    importlib.import_module("docker")
    # A fork copies a page as soon as the garbage collector looks at an object on it: https://docs.python.org/3/library/gc.html#gc.freeze
    gc.collect()
    gc.freeze()
    # The program configures its loader itself, and would warn that this has been done.
    warnings.filterwarnings("ignore", "AnsibleCollectionFinder has already been configured")


def serve(connection: socket.socket) -> None:
    """Fork for each request until the tests have closed their end of the socket."""
    while True:
        request, descriptors, _flags, _address = socket.recv_fds(connection, LONGEST, 3)
        _reap(0 if request == b"" else os.WNOHANG)
        if not request:
            return
        if os.fork() == 0:
            with _end_of_process():
                connection.close()
                _watch(json.loads(request), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


@contextmanager
def _end_of_process() -> Iterator[None]:
    """A fork ends here in any case: what follows is for the process that serves."""
    try:
        yield
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _reap(options: int) -> None:
    """Wait for runs that have ended, so that their processor time is counted."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def _watch(request: dict[str, Any], output: int, status: int, errors: int | None = None) -> NoReturn:
    """Fork once more for the run itself, and write its process and its exit code. Without ``errors``, they are in its output."""
    pid = os.fork()
    if pid == 0:
        os.close(status)
        _play(request, output, output if errors is None else errors)
    for descriptor in {output, errors} - {None}:
        os.close(descriptor)
    with suppress(BrokenPipeError):
        os.write(status, b"%d\n" % pid)
        os.write(status, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)


def _play(request: dict[str, Any], output: int, errors: int) -> NoReturn:
    from ansible import constants
    from ansible.utils.path import cleanup_tmp_file

    os.chdir(request["cwd"])
    os.dup2(output, 1)
    os.dup2(errors, 2)
    for descriptor in {output, errors}:
        os.close(descriptor)
    cli = request.get("cli", "playbook")
    sys.argv = [f"ansible-{cli}", *request["arguments"]]
    # The directory for temporary files was made at the import, and the first run that ends would remove it.
    atexit._clear()
    common = Path(constants.DEFAULT_LOCAL_TMP, PACKED)
    _move(request["environment"])
    temporary = Path(constants.DEFAULT_LOCAL_TMP).parent
    temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
    own = tempfile.mkdtemp(prefix=f"ansible-local-{os.getpid()}", dir=temporary)
    # Modules are packed once for all runs: to pack one takes as long as to import Ansible.
    common.mkdir(exist_ok=True)
    Path(own, PACKED).symlink_to(common)
    constants.DEFAULT_LOCAL_TMP = own
    atexit.register(cleanup_tmp_file, own)
    exec(request.get("before", ""), {})
    _leave(sys.modules[f"ansible.cli.{cli}"].main)


def _move(environment: dict[str, str]) -> None:
    """Take over the environment of a run, with its home directory, whose name Ansible has read when it was imported."""
    from ansible import constants

    old, new = os.environ["HOME"], environment["HOME"]
    differing = {
        name for name, _value in {*os.environ.items()} ^ {*environment.items()} if name.startswith(READ_AT_IMPORT)
    }
    if differing:
        raise RuntimeError(f"the program would read other values of {', '.join(sorted(differing))}")
    os.environ.clear()
    os.environ.update(environment)
    for name, value in list(vars(constants).items()):
        if isinstance(value, str) and value.startswith(old):
            setattr(constants, name, value.replace(old, new))
        elif isinstance(value, list) and any(str(path).startswith(old) for path in value):
            setattr(constants, name, [path.replace(old, new) for path in value])


def _leave(main: Callable[[], None]) -> NoReturn:
    """Run the program and end as Python does, but keep all objects: to destroy them would copy every page of this process."""
    gc.disable()  # A collection would copy pages, too.
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    del sys.path[0]  # Ansible's programs do not find the tests' modules, either.
    with tempfile.TemporaryDirectory() as home:
        os.environ["HOME"] = home
        load()
        serve(socket.socket(fileno=int(sys.argv[1])))
