# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps on a host by what an earlier step has left there: a process (``module_utils/_worker/worker.py``), or else the files of its
module (``library.py`` beside it), from which a process starts.
"""

from __future__ import annotations

import json
import re
import shlex
from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible.release import __version__

from ...module_utils._shared.codec import Json, ModuleResult
from ...module_utils._steps.step import noun_of
from ...module_utils._worker.module import AskedStep

if TYPE_CHECKING:
    from ansible.plugins.action import ActionBase

_PLUGINS = Path(__file__).parents[2]
_PYTHON, _INTERPRETER = "/usr/bin/python3", re.compile(r"/[A-Za-z0-9@%+=:,./_-]+")
# Exit codes: the host has neither (EX_TEMPFAIL in sysexits.h), or the shell cannot run or find the Python.
_ABSENT = (75, 126, 127)
# Both run on the host, in any Python 3. What they use must belong to the same user: others may own the directories above it.
_CLIENT = """
import os, socket, stat, struct, sys
base, start, *names = sys.argv[1:]
directory = os.path.expanduser(os.path.expandvars(base)) + "-" + os.uname().nodename.partition(".")[0]
steps = socket.socket(socket.AF_UNIX)
try:
    steps.connect(os.path.join(directory, "steps"))
    user = struct.unpack("3i", steps.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
except OSError:
    try:
        library = os.open(directory + ".library", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        about = os.fstat(library)
        if about.st_uid == os.geteuid() and not stat.S_IMODE(about.st_mode) & 0o077:
            python = os.readlink("python", dir_fd=library)
            os.utime(library)
            os.set_inheritable(library, True)
            os.execv(python, [python, "-c", start, "/proc/self/fd/%%d" %% library, directory, *names])
    except OSError:
        pass
    sys.exit(%d)
if user != os.geteuid():
    sys.exit(%d)
steps.sendall(sys.stdin.buffer.read())
steps.shutdown(socket.SHUT_WR)
sys.stdout.buffer.write(steps.makefile("rb").read())
""" % (_ABSENT[0], _ABSENT[0])
# Nothing is imported from the working directory. A library that a cleaner of files has damaged loses its Python: it is replaced.
_START = """
import sys
sys.path[0], directory, module, noun = sys.argv[1:]
import importlib, os
try:
    importlib.import_module("ansible_collections.cluster.compute.plugins.module_utils._steps." + noun)
    step = importlib.import_module("ansible_collections.cluster.compute.plugins.modules." + module)
except Exception:
    try:
        os.unlink(sys.path[0] + "/python")
    finally:
        sys.exit(%d)
step.STEPS.serve_once(sys.stdin.read(), directory)
""" % _ABSENT[0]


def answer(action: ActionBase, module: str, options: Json, interpreter: str) -> ModuleResult | None:
    """The result of a step of this module as Ansible returns it; None if the host has nothing for it.

    ``interpreter`` is the Python that the inventory names for the host, empty if Ansible looks for one.
    """
    if not may_stay(action):
        return None
    noun = noun_of(options["call"])
    python = interpreter if _INTERPRETER.fullmatch(interpreter) else _PYTHON
    command = [
        python,
        "-I",
        "-S",
        "-c",
        one_line(_CLIENT),
        directory(action, module, interpreter),
        one_line(_START),
        module,
        noun,
    ]
    request = AskedStep(options, action._task.check_mode, action._task.diff)
    # A value from a vault becomes text here.
    text = json.dumps(vars(request), default=str)
    done = action._low_level_execute_command(shlex.join(command), in_data=text.encode())
    return None if done["rc"] in _ABSENT else _parsed(done)


def one_line(program: str) -> str:
    """A program of Python as one line without quotes and exclamation marks: shells of the csh family read them in any quotes.

    >>> eval(one_line("1 + 1").replace("exec", "eval"))
    2
    """
    return f'exec(__import__("base64").b64decode("{b64encode(program.encode()).decode()}"))'


def may_stay(action: ActionBase) -> bool:
    """Return whether steps use what others have left on the host, and leave it.

    A task must not set an environment of its own, and a request must be on no disk.
    """
    return bool(action._is_pipelining_enabled("new") and not any(action._task.environment or ()))


def directory(action: ActionBase, module: str, interpreter: str) -> str:
    """The directory of the process for this library, this Ansible, this module and this Python, without the host.

    The host adds its name. C(~) is the home of the user of the step.
    """
    digest = sha256(f"{library()} {__version__} {module} {interpreter}".encode()).hexdigest()
    return f"{action.get_shell_option('remote_tmp', '~/.ansible/tmp')}/cluster-compute-{digest[:16]}"


@lru_cache(maxsize=1)
def library() -> str:
    """A digest of what modules import."""
    files = [*_PLUGINS.glob("modules/*_step.py"), *_PLUGINS.glob("module_utils/**/*.py")]
    return sha256(b"\0".join(path.read_bytes() for path in sorted(files))).hexdigest()


def _parsed(done: Json) -> ModuleResult:
    """The answer, which is one line, without what only Ansible says.

    Without an answer, it is the failure by which Ansible reports a module that wrote no JSON.
    """
    try:
        found: Any = json.loads(done["stdout"].rstrip().rpartition("\n")[2])
    except ValueError:
        found = None
    if isinstance(found, dict):
        return {name: value for name, value in found.items() if not name.startswith("_ansible_")}
    said = {"module_stdout": done["stdout"], "module_stderr": done["stderr"]}
    return {"failed": True, "rc": done["rc"] or None, **said}
