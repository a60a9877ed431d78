# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Completion for shells: the script asks ``completion words`` for the words that fit, so that all shells know the same."""

from __future__ import annotations

import argparse
from typing import List, Sequence

from . import places
from .run import write
from .verbs import SHELLS, VERBS, options
from .words import apps_of

SCRIPTS = {
    "bash": """_cluster_compute() {
    local words; words=$("${COMP_WORDS[0]}" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
    COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _cluster_compute cluster-compute
""",
    "zsh": """#compdef cluster-compute
_cluster_compute() {
    compadd -- ${(f)"$($words[1] completion words -- ${words[2,CURRENT-1]} 2>/dev/null)"} || _files
}
compdef _cluster_compute cluster-compute
""",
    "fish": """function __cluster_compute
    set -l words (commandline -opc)
    $words[1] completion words -- $words[2..] 2>/dev/null
end
complete -c cluster-compute -a '(__cluster_compute)'
""",
}


def completion(asked: argparse.Namespace) -> int:
    """Print the script of a shell, or the words that can follow an unfinished command line."""
    text = SCRIPTS.get(asked.shell) or "".join(f"{word}\n" for word in following(asked, asked.command))
    if asked.json:
        write({"text": text})
    else:
        print(text, end="")
    return 0


def following(asked: argparse.Namespace, before: Sequence[str]) -> List[str]:
    """The words that can follow: verbs, or options, names and containers for the verb."""
    common = [flag for action in options()._actions for flag in action.option_strings]
    verb = next((word for word in before if word in VERBS), "")
    if not verb:
        return [*VERBS, *common]
    flags = [flag for argument, _options in VERBS[verb].arguments for flag in argument if flag.startswith("-")]
    return [*_names(asked, verb, before), *flags, *common]


def _names(asked: argparse.Namespace, verb: str, before: Sequence[str]) -> List[str]:
    fixed = {"completion": list(SHELLS), "hosts": ["add", "ls", "provision"], "env": ["build"]}
    if verb in fixed:
        return fixed[verb]
    takes_session = ("scale", "down", "logs", "exec", "cp", "commit", "ssh", "open", "why", "show", "restart")
    known = places.sessions(asked) if verb in takes_session else []
    chosen = [word for word in before if word in known]
    if verb == "scale" and chosen:
        return []
    if not chosen or verb == "down":
        return [name + ":" for name in known] if verb == "cp" else known
    document = places.document(asked, chosen[0])
    if verb == "open":
        return [app["name"] for app in apps_of(places.artifacts(asked) / chosen[0], document)]
    return [container["hostname"] for container in document["containers"]]
