# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A devcontainer.json as variables of a session: published files, the forms of each key, and hostile files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.plugin_utils._variables.devcontainer import LONGEST, devcontainer

PROJECT = "/home/ada/cccl"
HOME = "/home/coder"


def read(content: Any, image: str = "", **environment: str) -> dict[str, Any]:
    text = content if isinstance(content, str) else json.dumps({"image": "debian:13", **content})
    return dict(devcontainer(text, PROJECT, environment, image)[0])


def in_cccl(name: str) -> dict[str, str]:
    return {"source": f"{PROJECT}/{name}", "target": f"{HOME}/{name}", "type": "bind"}


# What published files ask for, with keys that a session ignores: the values are theirs, the layout is not.
PUBLISHED = {
    # https://github.com/NVIDIA/cccl/blob/003efc8fce03582051fddc27d78c10628f1b6bc2/.devcontainer/devcontainer.json, Apache-2.0
    "NVIDIA/cccl": (
        """{
            "image": "rapidsai/devcontainers:23.06-cpp-gcc12-cuda12.1-ubuntu22.04", "hostRequirements": {"gpu": true},
            "initializeCommand": ["/bin/bash", "-c", "mkdir -p ${localWorkspaceFolder}/.{aws,cache,config}"],
            "containerEnv": {
                "SCCACHE_REGION": "us-east-2", "HISTFILE": "${containerWorkspaceFolder}/.cache/._bash_history"
            },
            "workspaceFolder": "/home/coder/${localWorkspaceFolderBasename}",
            "workspaceMount": "source=${localWorkspaceFolder},target=/home/coder,type=bind,consistency=consistent",
            "mounts": [
                "source=${localWorkspaceFolder}/.aws,target=/home/coder/.aws,type=bind,consistency=consistent",
                "source=${localWorkspaceFolder}/.cache,target=/home/coder/.cache,type=bind,consistency=consistent"
            ]
        }""",
        {
            "session_image": "rapidsai/devcontainers:23.06-cpp-gcc12-cuda12.1-ubuntu22.04",
            "session_environment": {"SCCACHE_REGION": "us-east-2", "HISTFILE": f"{HOME}/cccl/.cache/._bash_history"},
            "session_mounts": [in_cccl(".aws"), in_cccl(".cache")],
        },
        ["hostRequirements", "initializeCommand", "workspaceMount"],
    ),
    # https://github.com/Azure-Samples/azure-search-openai-demo/blob/11e8ab45361924dec0b8d750f5dc147074cff114, MIT
    "Azure-Samples/azure-search-openai-demo": (
        """{
            "name": "Azure Search OpenAI Demo", "image": "mcr.microsoft.com/devcontainers/python:3.10",
            "features": {"ghcr.io/azure/azure-dev/azd:latest": {}}, "forwardPorts": [50505], "postCreateCommand": "",
            "remoteUser": "vscode"
        }""",
        {
            "session_image": "mcr.microsoft.com/devcontainers/python:3.10",
            "session_apps": [{"name": "port-50505", "port": 50505}],
        },
        ["name", "features", "remoteUser"],
    ),
    # https://github.com/microsoft/generative-ai-for-beginners/blob/0fe3fabe4160f504f2b7a3c6669db83481db179e, MIT
    "microsoft/generative-ai-for-beginners": (
        """// https://github.com/github/codespaces-jupyter
        {
            "image": "mcr.microsoft.com/devcontainers/universal:2", "waitFor": "onCreateCommand",
            "updateContentCommand": "python3 -m pip install -r requirements.txt",
            "postCreateCommand": "bash .devcontainer/post-create.sh"
        }""",
        {
            "session_image": "mcr.microsoft.com/devcontainers/universal:2",
            "session_bootstrap": "if [ -d /workspaces/cccl ]; then cd /workspaces/cccl || exit; fi\n"
            "(\nbash .devcontainer/post-create.sh\n) || exit\n",
        },
        ["waitFor", "updateContentCommand"],
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_files(name: str) -> None:
    text, variables, ignored = PUBLISHED[name]
    assert devcontainer(text, PROJECT, {}, "") == (variables, ignored)


def test_comments_and_trailing_commas() -> None:
    text = """
    // with "quotes" and a , before }
    { /* two
    lines */ "image": "debian:13", // "image": "other",
      "containerEnv": {"URL": "http://a//b", "TEXT": "/* , ] */", "END": "\\\\",},
      "forwardPorts": [1, 2, /* 3 */ ], }
    """
    assert read(text) == {
        "session_image": "debian:13",
        "session_environment": {"URL": "http://a//b", "TEXT": "/* , ] */", "END": "\\"},
        "session_apps": [{"name": "port-1", "port": 1}, {"name": "port-2", "port": 2}],
    }


def test_references() -> None:
    given = {
        "A": "${localEnv:USER}${localEnv:ABSENT}",
        "B": "${localEnv:ABSENT:other}",
        "C": "${HOME} ${localWorkspaceFolderBasename} ${containerWorkspaceFolderBasename}",
    }
    found = read({"containerEnv": given, "postCreateCommand": "echo ${HOME}"}, USER="ada")
    assert found["session_environment"] == {"A": "ada", "B": "other", "C": "${HOME} cccl cccl"}
    assert "\necho ${HOME}\n" in found["session_bootstrap"]


@pytest.mark.parametrize(
    ("mount", "expected"),
    [
        ("src=cache,dst=/cache", {"source": "cache", "target": "/cache", "type": "volume"}),
        (
            "type=bind,source=/srv,destination=/data,readonly",
            {"source": "/srv", "target": "/data", "type": "bind", "mode": "ro"},
        ),
        ("type=bind,source=/srv,target=/data,ro=false", {"source": "/srv", "target": "/data", "type": "bind"}),
        (
            {"type": "volume", "source": "${localWorkspaceFolderBasename}-x", "target": "/x"},
            {"source": "cccl-x", "target": "/x", "type": "volume"},
        ),
    ],
)
def test_mounts(mount: Any, expected: dict[str, str]) -> None:
    assert read({"mounts": [mount]})["session_mounts"] == [expected]


def test_ports_are_named_once() -> None:
    found = read({"forwardPorts": [8000, "8000", "localhost:3000"]})
    assert [app["port"] for app in found["session_apps"]] == [8000, 3000]


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("echo one; exit 0 # a comment", "one\n", 0),
        (["printf", "%s-", "a b", "$HOME"], "a b-$HOME-", 0),
        ({"first": "cd / && pwd && exit 0", "second": ["printf", "two"]}, "/\ntwo", 0),
        ({"first": "cat <<END\ntext\nEND", "second": "exit 7", "third": "echo never"}, "text\n", 7),
    ],
)
def test_commands_run_one_after_the_other(command: Any, output: str, code: int) -> None:
    script = read({"postCreateCommand": command})["session_bootstrap"]
    done = subprocess.run(["sh", "-c", script], check=False, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == (output, code)


def test_commands_run_in_the_directory_of_the_project(tmp_path: Path) -> None:
    script = read({"workspaceFolder": str(tmp_path), "postCreateCommand": "pwd"})["session_bootstrap"]
    assert subprocess.check_output(["sh", "-c", script], text=True) == f"{tmp_path}\n"


def test_the_id_is_of_a_user_and_a_project() -> None:
    text = '{"mounts": ["source=history-${devcontainerId},target=/history,type=volume"]}'
    places = [("alice", PROJECT), ("alice", PROJECT), ("bob", PROJECT), ("alice", "/srv/other")]
    found = [devcontainer(text, project, {}, "x", user)[0]["session_mounts"][0]["source"] for user, project in places]
    assert (found[0] == found[1], len(set(found))) == (True, 3)


def test_an_image_that_is_built_elsewhere() -> None:
    text = '{"build": {"dockerfile": "Dockerfile"}, "forwardPorts": [80]}'
    variables, ignored = devcontainer(text, PROJECT, {}, "team/app:1")
    assert (variables, ignored) == ({"session_apps": [{"name": "port-80", "port": 80}]}, ["build"])
    for key, shown in (("build", "build"), ("dockerFile", "dockerFile"), ("name", "no image")):
        with pytest.raises(InputError, match=f"session_devcontainer: '{shown}': the session needs an image: build it"):
            read(json.dumps({key: "x"}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must be a file of JSON, with or without comments: Expecting value: line 1"),
        ('{\n/*\n*/\n"image": oops}', "Expecting value: line 4"),
        ("[]", "must be a file with a JSON object"),
        ("[" * 60, "at most 50 nested brackets"),
        ('{"image": "' + "a" * LONGEST, "at most 262144 characters"),
        ('{"image": ' + "9" * 5000 + "}", "must be "),
        ({"image": ["debian"]}, "image: .*must be a string"),
        ({"image": "python:${templateOption:variant}"}, r"'\${templateOption:variant}': must be replaced by a value"),
        ({"image": "Not an image"}, "image: 'Not an image': must be an image reference"),
        ({"containerEnv": ["A=1"]}, "containerEnv: .*must be a dictionary"),
        ({"containerEnv": {"A": None}}, "containerEnv: A: None: must be a string"),
        ({"containerEnv": {"A": "x" * 200000}}, "containerEnv: 'A': must have at most"),
        ({"containerEnv": {"PATH": "${containerEnv:PATH}:/x"}}, "must be replaced by a value"),
        ({"containerEnv": {"A": "${localEnv:B}" * 101}}, "at most 100 references"),
        ({"postCreateCommand": 3}, "postCreateCommand: 3: must be a string"),
        ({"postCreateCommand": {"a": {"b": "c"}}}, "postCreateCommand: .*must be a string"),
        ({"postCreateCommand": "a\0b"}, "postCreateCommand: .*must be a string"),
        ({"forwardPorts": 80}, "forwardPorts: 80: must be a list"),
        ({"forwardPorts": [True]}, "forwardPorts: 'True': must be a whole number"),
        ({"forwardPorts": ["db:5432"]}, "forwardPorts: 'db:5432': must be a whole number"),
        ({"forwardPorts": list(range(1, 102))}, "must be a list of at most 100 entries"),
        ({"mounts": ["type=tmpfs,target=/x"]}, "mounts: .*must be of type bind or volume"),
        ({"mounts": ["source=x,target=/x,volume-opt=o"]}, "mounts: .*must be a dictionary that has only"),
        ({"mounts": ["source=../x,target=/x,type=bind"]}, "mounts: '../x': must be an absolute path"),
        ({"mounts": ["source=v-${templateOption:x},target=/x"]}, "must be replaced by a value"),
        ({"mounts": [{"source": "x", "target": "/etc"}]}, "mounts: '/etc': must be an absolute path"),
        ({"mounts": [["x"]]}, "mounts: .*must be a dictionary"),
        ({"workspaceFolder": 3}, "workspaceFolder: 3: must be a string"),
    ],
)
def test_hostile_and_other_content_is_refused(content: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        read(content)
    assert len(str(refused.value)) < 1000
