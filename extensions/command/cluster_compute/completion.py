# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Completion for shells: a script asks ``completion words`` what fits, so that all shells know the same.

If nothing fits, the shell completes files.
"""

from __future__ import annotations

import argparse
from typing import List, Sequence

from . import places
from .run import report
from .verbs import SHELLS, VERBS, options
from .words import apps_of

SCRIPTS = {
    "bash": """_cluster_compute() {
    mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _cluster_compute cluster-compute
""",
    "zsh": """#compdef cluster-compute
_cluster_compute() {
    compadd -- ${(f)"$($words[1] completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)"} || _files
}
compdef _cluster_compute cluster-compute
""",
    "fish": """function __cluster_compute
    set -l words (commandline -opc)
    set -l begun (commandline -ct)
    set -l found ($words[1] completion words -- $words[2..] "$begun" 2>/dev/null)
    test -n "$found"; and printf '%s\\n' $found; or __fish_complete_path "$begun"
end
complete -c cluster-compute -f -a '(__cluster_compute)'
""",
}


def completion(asked: argparse.Namespace) -> int:
    """Print the script of a shell, or the words that can follow an unfinished command line."""
    text = SCRIPTS.get(asked.shell) or "".join(f"{word}\n" for word in fitting(asked, asked.command))
    report(asked, {"text": text}, text.splitlines())
    return 0


def fitting(asked: argparse.Namespace, words: Sequence[str]) -> List[str]:
    """What the last word can become: an option after a hyphen; a verb; or a name, container or app for the verb."""
    *before, begun = words or [""]
    verb = next((word for word in before if word in VERBS), "")
    if begun.startswith("-"):
        own = [flag for argument, _options in (VERBS[verb].arguments if verb else ()) for flag in argument]
        known = [*own, *(flag for action in options()._actions for flag in action.option_strings)]
    else:
        known = _names(asked, verb, before) if verb else list(VERBS)
    return [word for word in known if word.startswith(begun)]


def _names(asked: argparse.Namespace, verb: str, before: Sequence[str]) -> List[str]:
    fixed = {"completion": list(SHELLS), "hosts": ["add", "ls", "provision"], "env": ["build"]}
    if verb in fixed:
        return fixed[verb]
    takes_session = ("scale", "down", "logs", "exec", "cp", "commit", "ssh", "open", "why", "show", "restart")
    known = places.sessions(asked) if verb in takes_session else []
    chosen = [word for word in before if word in known]
    if not chosen or verb == "down":
        return [name + ":" for name in known] if verb == "cp" else known
    document = {"hosts": []} if verb == "scale" else places.document(asked, chosen[0])
    return [app["name"] for app in apps_of(document)] if verb == "open" else list(document["hosts"])
