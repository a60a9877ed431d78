# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A front end for accounts that may not use Docker: it runs the playbooks as a service account, for the caller.

sudo or a forced command of SSH starts it as the service account (docs/policy.md). The caller chooses a command, a name
and the values of some variables. The owner, the inventory and all other variables are fixed. Nothing that the caller
writes is a template.

What reaches into a session is ssh with the keys of that session, which the caller owns. No path of the caller is opened
here: files are archives on standard input and output, packed and unpacked by the caller and in the container.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import posixpath
import pwd
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator, NoReturn

# Python runs this program isolated. What it shares with the command is in the directory beside its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "command"))

from cluster_compute.programs import run
from cluster_compute.words import (
    RESULTS,
    RUNTIME,
    MisuseError,
    Verb,
    app_lines,
    apps_of,
    argument,
    attached,
    check_hosts,
    check_name,
    document_of,
    has_terminal,
    queue_of,
    why_of,
)
from cluster_compute.words import parsed as parsed_words

del sys.path[0]
CONFIG = Path(__file__).resolve().parent / "front_end.json"
OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9])?")
# The variables of a launch that a caller may set, without their prefix. The policy of the site limits their values.
VARIABLES = (
    "after agents agents_policy apps authorized_keys bootstrap cluster_mode cluster_size command command_timeout "
    "count cpu_pinning cpus environment gpus grace idle_timeout image lifetime like memory mounts no_new_privileges "
    "not_before on_failure on_lost pending_timeout per_agent pids preset priority read_only_root resource_group roles "
    "shm strategy terminate_when_done torchrun "
    "torchrun_nodes torchrun_restarts wait"
)
# What an owner runs at a time: a playbook takes about 100 MB of this machine for as long as it waits, a connection about 10 MB.
MOST = {"playbooks": 4, "connections": 32}
# A process, when it has begun, and what it does.
PLACE = re.compile(r"(\d+) (\d+) (.+)")
TEMPLATE = re.compile(r"\{\{|\{%|\{#|#jinja2:")
# What stands for itself in no text of YAML between quotes, or ends it.
UNPRINTABLE = re.compile(r"[^ !#-\[\]-~]")
_NAME, _SIZE = argument("name", type=check_name), argument("size", type=int)
_WORDS, _ON = argument("words", nargs=argparse.REMAINDER), argument("--on", type=check_hosts)
_FILE, _APP = argument("--file", action="store_true"), argument("--app", default="")
_COPY, _ALL = (_NAME, _ON, argument("path")), argument("--all", action="store_true")
_CONNECT = (_NAME, argument("on", nargs="?", type=check_hosts, metavar="host"))
VERBS = {
    "launch": Verb("launch or repair a session: launch NAME [VARIABLE=VALUE …]", _NAME, _WORDS, runs="cluster_session"),
    "scale": Verb("give a session that runs another size: scale NAME SIZE", _NAME, _SIZE, runs="cluster_session"),
    "list": Verb("list the sessions of the caller", runs="sessions"),
    "logs": Verb("show the logs of a session", _NAME, runs="session_logs"),
    "why": Verb("show the state of a session and its reason", _NAME, runs="sessions session_info"),
    "queue": Verb("list the waiting sessions of the caller in the order of the queue", runs="sessions session_info"),
    "show": Verb("show a session that runs or has ended; with --file its session file", _NAME, _FILE, runs="sessions"),
    "restart": Verb(
        "restart containers in place: restart NAME [--on …] [--app APP]", _NAME, _ON, _APP, runs="session_restart"
    ),
    "end": Verb("end a session", _NAME, runs="terminate"),
    "enter": Verb("log in to main1 of a session, or run a command there: enter NAME [COMMAND …]", _NAME, _WORDS),
    "exec": Verb("run a command: exec NAME [--on main1,sub1 | --all] -- COMMAND …", _NAME, _ON, _ALL, has_command=True),
    "copy-to": Verb("unpack the tar archive on standard input: copy-to NAME [--on sub1] DIRECTORY", *_COPY),
    "copy-from": Verb("write a file or directory as a tar archive: copy-from NAME [--on sub1] PATH", *_COPY),
    "apps": Verb("show the apps of a session, and how to open them", _NAME),
    "connect": Verb("connect to the SSH server of a container, for a ProxyCommand: connect NAME [HOST]", *_CONNECT),
    "ssh-config": Verb("print a configuration with which ssh logs in with a key of the caller", _NAME),
    "known-hosts": Verb("print the line that proves the host keys of a session to ssh", _NAME),
}
AFTER_LAUNCH = "The service account owns the paths. When the session runs: enter {0}, exec {0} -- COMMAND, apps {0}"
# ssh asks nothing, obeys no text of the caller or of a container, and forwards nothing but the connection that
# `connect` names.
OPTIONS = "-e none -o BatchMode=yes -o ClearAllForwardings=yes -o ForwardAgent=no -o ForwardX11=no -o PermitLocalCommand=no".split()


def main(arguments: list[str]) -> int:
    owner, words = caller(arguments, os.environ)
    asked = parsed(words)
    config = json.loads(CONFIG.read_text(encoding="utf-8"))
    artifacts = Path(config["artifacts"]) / owner
    playbook, what = VERBS[asked.verb].playbook, f"{asked.verb} {asked.name}".rstrip()
    take_place(artifacts.parent / ".commands", owner, "playbooks" if playbook else "connections", what)
    if not playbook:
        return reach(artifacts / asked.name, asked, config)
    fixed: dict[str, object] = {"session_owner": owner, "session_artifacts": str(artifacts), "session_provision": False}
    if asked.verb == "launch":
        # MPS serves one user ID at a time, so a site may give all callers the same.
        fixed.update(chosen(asked.words), session_user=numbers(config.get("user", owner)))
    if asked.name:
        fixed["session_name"] = asked.name
    fixed.update(implied(asked))
    if asked.verb in VIEWS:
        return view(config, fixed, asked)
    code = play(config, playbook, fixed)
    if asked.verb == "launch" and not code:
        print(AFTER_LAUNCH.format(asked.name))
    return code


def take_place(folder: Path, owner: str, kind: str, what: str) -> None:
    """Take one of the places of an owner for this process, until it ends: ssh, which takes its place, closes what would be a lock."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(os.open(folder / f"{owner}.{kind}", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+") as places:
        fcntl.flock(places, fcntl.LOCK_EX)
        taken = [one for one in map(PLACE.fullmatch, places.read().splitlines()) if one and begun(one[1]) == one[2]]
        if len(taken) >= MOST[kind]:
            running = ", ".join(sorted({one[3] for one in taken}))
            raise MisuseError(
                f"{len(taken)} {kind} of yours run already ({running}): wait for the end of one, or end it"
            )
        places.truncate(places.seek(0))
        own = f"{os.getpid()} {begun(os.getpid())} {what}"
        places.write("\n".join([*(one[0] for one in taken), own]))


def begun(process: int | str) -> str:
    """When a process has begun, in ticks since the boot; empty if it has ended. Other processes get its number later."""
    try:
        return (
            Path("/proc/%s/stat" % process).read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
        )
    except (FileNotFoundError, ProcessLookupError):
        return ""


def implied(asked: argparse.Namespace) -> dict[str, object]:
    """The variables that a verb and its options mean."""
    if asked.verb == "scale":
        return {"session_cluster_size": asked.size, "session_scale": True}
    if asked.verb == "restart":
        return {"session_restart_containers": asked.on or [], "session_restart_app": asked.app}
    if asked.verb == "show":
        return {"sessions_format": "file"} if asked.file else {"session_ended_too": True, "sessions_columns": "all"}
    return {"session_ended_too": True} if asked.verb == "why" else {}


# The verbs that show a part of a list: lines of the sessions.
VIEWS: dict[str, Callable[[str, list[dict[str, Any]]], list[str]]] = {
    "why": lambda name, sessions: [why_of(name, sessions)[1]],
    "queue": lambda _name, sessions: queue_of(sessions)[1],
}


def view(config: dict[str, str], variables: dict[str, object], asked: argparse.Namespace) -> int:
    """List the sessions, and print what a view makes of them in place of the tables."""
    with tempfile.TemporaryDirectory(prefix="cluster-session-") as folder:
        code = play(config, "sessions", variables, folder)
        found = Path(folder) / "session_info.json"
        if code == 0:
            listed = json.loads(found.read_text(encoding="utf-8"))["sessions"]
            print("\n".join(VIEWS[asked.verb](asked.name, listed)))
    return code


def caller(arguments: list[str], environment: dict[str, str] | os._Environ[str]) -> tuple[str, list[str]]:
    """The owner and the words of the caller: from sudo, or from a forced command, whose arguments name the owner."""
    if environment.get("SUDO_USER"):
        owner, words = environment["SUDO_USER"], arguments
    elif arguments[:1] == ["--owner"] and len(arguments) == 2:
        owner = arguments[1]
        try:
            words = shlex.split(environment.get("SSH_ORIGINAL_COMMAND") or "")
        except ValueError as error:
            raise MisuseError("the command cannot be read: %s" % error) from None
    else:
        raise MisuseError("must be started by sudo, or by a forced command with --owner NAME and nothing else")
    if not OWNER.fullmatch(owner) or owner == "all":
        raise MisuseError("the account %r cannot own sessions: its name is no name of an owner" % owner)
    return owner, words


def parsed(words: list[str]) -> argparse.Namespace:
    defaults: dict[str, Any] = {"name": "", "words": [], "on": None, "all": False}
    asked = argparse.Namespace(**{**defaults, **vars(parsed_words("cluster-session", VERBS, words))})
    asked.hosts = asked.on or ["main1"]
    asked.words = asked.words[1:] if asked.words[:1] == ["--"] else asked.words
    if asked.verb == "exec" and (not asked.command or (asked.all and asked.on)):
        raise MisuseError("exec needs a command after --, and either --on or --all")
    if asked.verb not in ("exec", "restart") and len(asked.hosts) > 1:
        raise MisuseError("%s needs a single container" % asked.verb)
    return asked


def chosen(words: list[str]) -> dict[str, object]:
    """The variables of a launch: lists and dictionaries as JSON, anything else as text."""
    values: dict[str, object] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in VARIABLES.split():
            raise MisuseError("%r must be VARIABLE=VALUE, with one of: %s" % (word, ", ".join(VARIABLES.split())))
        is_json = text[:1] in ("[", "{") and not TEMPLATE.search(text)
        try:
            values["session_" + name] = json.loads(text) if is_json else text
            written = json.dumps(values, ensure_ascii=False)
            written.encode()
            # Raises for what is nested too deeply to be written.
            as_yaml(values)
            keys = list(keys_of(values))
        except (ValueError, RecursionError) as error:
            raise MisuseError("%s: the value cannot be read: %s" % (name, error)) from None
        # Escapes of JSON can write the characters of a template, too.
        if TEMPLATE.search(written):
            raise MisuseError("%s: the value must not contain {{, {%%, {# or #jinja2:" % name)
        if any(key.startswith("__ansible") for key in keys):
            raise MisuseError("%s: no key of the value may begin with __ansible" % name)
    return values


def keys_of(value: object) -> Iterator[str]:
    """The keys of all dictionaries in a value of JSON. Ansible decrypts or decodes a value by a key such as __ansible_vault."""
    if isinstance(value, dict):
        yield from value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys_of(part)


def as_yaml(value: object) -> str:
    """A value of JSON as YAML on one line, in ASCII. Ansible decodes no text of YAML between quotes, and templates none with the tag.

    Ansible would take a text with the tag for the number, date or truth that it looks like. A text with a brace looks like none.
    """
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (as_yaml(key), as_yaml(part)) for key, part in value.items())
    if isinstance(value, list):
        return "[%s]" % ", ".join(map(as_yaml, value))
    if isinstance(value, str):
        quoted = '"%s"' % UNPRINTABLE.sub(lambda found: "\\U%08x" % ord(found[0]), value)
        return "!unsafe " + quoted if "{" in value else quoted
    return json.dumps(value)


def numbers(owner: str) -> dict[str, int]:
    """The user of the containers is the caller's account, where this machine has it."""
    try:
        account = pwd.getpwnam(owner)
    except KeyError:
        return {}
    return {"uid": account.pw_uid, "gid": account.pw_gid} if account.pw_uid and account.pw_gid else {}


def play(config: dict[str, str], playbook: str, variables: dict[str, object], results: str = "") -> int:
    """Run a playbook with these variables, and no other input of the caller: neither environment nor standard input.

    With a directory for its ``results``, it prints errors only.
    """
    with tempfile.NamedTemporaryFile("w", encoding="ascii", prefix="cluster-session-", suffix=".yml") as file:
        file.write("---\n" + "".join("%s: %s\n" % (name, as_yaml(value)) for name, value in variables.items()))
        file.flush()
        path = Path(config["playbooks"]) / (playbook + ".yml")
        own = [part for name in config.get("variables_files", "").split() for part in ("-e", "@" + name)]
        # The last file has precedence.
        command = [config["ansible_playbook"], "-i", config["inventory"], str(path), *own, "-e", "@" + file.name]
        own_environment = {**environment(config), **({RESULTS: results} if results else {})}
        return run_apart(command, path.parents[1], own_environment, subprocess.DEVNULL if results else None)


def run_apart(command: list[str], folder: Path, own: dict[str, str], stdout: int | None = None) -> int:
    """Run a program that the terminal of the caller cannot stop: it can hold locks that other callers wait for.

    Ctrl-C is passed on once, so that the program can undo its work. SIGTERM and SIGHUP are passed on as SIGTERM.
    """
    apart: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": stdout, "start_new_session": True}
    return run(command, interrupt=signal.SIGINT, cwd=folder, env=own, **apart)


def environment(config: dict[str, str]) -> dict[str, str]:
    """The environment of the service account, and nothing of the caller's."""
    account = pwd.getpwuid(os.geteuid())
    own = {"HOME": account.pw_dir, "USER": account.pw_name, "LOGNAME": account.pw_name, "LANG": "C.UTF-8"}
    path = "%s:/usr/local/bin:/usr/bin:/bin" % Path(config["ansible_playbook"]).parent
    return {**own, "PATH": path, **dict(pair.split("=", 1) for pair in config.get("environment", "").split())}


def reach(folder: Path, asked: argparse.Namespace, config: dict[str, str]) -> int:
    """Everything that concerns a running session of the caller: a text, or ssh in place of this program."""
    document = document_of(folder, "you have no session %s" % folder.name, *asked.hosts)
    if asked.verb == "apps":
        print(shown_apps(document))
    elif asked.verb == "known-hosts":
        print((folder / "known_hosts").read_text(encoding="utf-8"), end="")
    elif asked.verb == "ssh-config":
        print(client_config(folder.name, document["hosts"], document["session"]["user"]["name"], way_here(config)))
    else:
        ssh(folder, arguments(asked, document))
    return 0


def arguments(asked: argparse.Namespace, document: dict[str, Any]) -> list[str]:
    """The arguments of ssh for what is asked in a session with this document."""
    hosts = document["hosts"] if asked.all else asked.hosts
    if asked.verb == "connect":
        # On the network of the hosts, all containers listen at the port of ssh that main1 publishes.
        apps = {app["name"]: app.get("port") for app in document["apps"]}
        return ["-W", f"{hosts[0]}:{apps['ssh'] if document['network']['driver'] == 'host' else 22}", "--", "main1"]
    if asked.verb == "enter" and not asked.words:
        return [*(["-t"] if sys.stdin.isatty() else []), "--", "main1"]
    if asked.verb == "exec" and (asked.all or len(hosts) > 1):
        program = ["env", "BACKENDAI_CLUSTER_HOSTS=" + ",".join(hosts), RUNTIME + "everywhere"]
        return ["-T", "--", "main1", shlex.join([*program, *asked.command])]
    if asked.verb in ("enter", "exec"):
        return ["-t" if has_terminal() else "-T", "--", hosts[0], attached(asked.command or asked.words)]
    return ["-T", "--", hosts[0], archiver(asked.verb, asked.path)]


def archiver(action: str, path: str) -> str:
    """The script of a copy, which runs in the container: there alone the path of the caller is opened."""
    place, box = (path if path.startswith("/") else "./" + path), RUNTIME + "busybox"
    if action == "copy-to":
        if sys.stdin.isatty():
            raise MisuseError("standard input must be a tar archive: tar -c FILES | … copy-to NAME DIRECTORY")
        folder = shlex.quote(place)
        return "%s mkdir -p %s && cd %s && exec %s tar -x -o -f -" % (box, folder, folder, box)
    folder, name = posixpath.split(place.rstrip("/"))
    if name in ("", ".", ".."):
        raise MisuseError("%r must end in the name of a file or directory" % path)
    if sys.stdout.isatty():
        raise MisuseError("standard output would be a tar archive: … copy-from NAME PATH | tar -x")
    return "cd %s && exec %s tar -c -f - %s" % (shlex.quote(folder or "/"), box, shlex.quote("./" + name))


def ssh(folder: Path, words: list[str]) -> NoReturn:
    """ssh with the session's own keys and nothing of the caller's environment. It takes the place of this program."""
    account = pwd.getpwuid(os.geteuid())
    own = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": account.pw_dir, "TERM": os.environ.get("TERM", "dumb")}
    # Python ignores it, and ssh would inherit that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execvpe("ssh", ["ssh", "-F", str(folder / "ssh_config"), *OPTIONS, *words], own)


def shown_apps(document: dict[str, Any]) -> str:
    """A line for each app with its URL, and the command that connects its port to that port of the caller's machine."""
    lines = []
    for app in apps_of(document):
        lines += app_lines(app)
        if app["forward"]:
            lines.append(f"  ssh -N -o ExitOnForwardFailure=yes -L {app['forward']} {document['folder'].name}.main1")
    return "\n".join(lines or ["The session has no app."])


def client_config(name: str, hosts: list[str], user: str, way: str) -> str:
    """For the caller's ~/.ssh: ssh reaches the containers as NAME.HOST through this program, with the caller's key."""
    each = "".join("Host %s.%s\n    HostName %s\n" % (name, host, host) for host in hosts)
    return f"""{each}Host {" ".join(f"{name}.{host}" for host in hosts)}
    User {user}
    StrictHostKeyChecking yes
    UserKnownHostsFile ~/.ssh/{name}.known_hosts
    GlobalKnownHostsFile /dev/null
    ProxyCommand {way} connect {name} %h"""


def way_here(config: dict[str, str]) -> str:
    """The command with which the caller starts this program."""
    account = pwd.getpwuid(os.geteuid()).pw_name
    if os.environ.get("SUDO_USER"):
        return shlex.join(["sudo", "-u", account, sys.executable, "-I", sys.argv[0]])
    return "ssh -T " + config.get("login", "%s@%s" % (account, os.uname().nodename))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (MisuseError, OSError) as failure:
        print("cluster-session: %s" % failure, file=sys.stderr)
        sys.exit(2)
