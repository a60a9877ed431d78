# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from samples import plan, request, running_row

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.session_json import SessionDocument
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.plugin_utils._client import answers
from ansible_collections.cluster.compute.plugins.plugin_utils._client.answers import Answer

THREE = plan(request(cluster_size=3, cluster_mode="multi-node"), "aab")
DOCUMENT = SessionDocument.of_plan(THREE, running_row(THREE), [])
GIVEN = [
    Answer("main1", 0, b"one\ntwo\n"),
    Answer("sub1", 3, b"\x1b[2J\n", left_out=7),
    Answer("sub2", 255, problem="no connection: refused"),
]


def test_every_line_has_the_name_of_its_container() -> None:
    assert answers.report_answers(GIVEN, "prefixed") == [
        "main1: one",
        "main1: two",
        "sub1: (7 bytes before this are left out)",
        r"sub1: \x1b[2J",
    ]


def test_a_block_for_each_container() -> None:
    blocks = answers.report_answers(GIVEN, "grouped")
    assert blocks[:3] == ["── main1 (exit code 0)", "one", "two"]
    assert blocks[-1] == "── sub2 (no connection: refused)"


def test_a_failure_names_the_containers_and_the_worst_exit_code() -> None:
    sentence = "The command failed in 2 of 3 containers: sub1 (exit code 3), sub2 (no connection: refused)."
    assert (answers.failure(GIVEN, "The command"), answers.worst(GIVEN)) == (sentence, 255)
    assert (answers.failure(GIVEN[:1], "The command"), answers.worst(GIVEN[:1])) == ("", 0)
    many = [Answer("sub%d" % number, 1) for number in range(1, 1000)]
    assert answers.failure(many, "The command").endswith("sub8 (exit code 1) and 991 more.")


def test_containers_are_chosen_in_rank_order() -> None:
    assert answers.chosen(DOCUMENT, [], "v") == ("main1", "sub1", "sub2")
    assert answers.chosen(DOCUMENT, ["sub2", "main1"], "v") == ("main1", "sub2")
    with pytest.raises(InputError, match=r"^v: 'main': session train has no such container, only main1, sub1, sub2"):
        answers.chosen(DOCUMENT, ["main"], "v")


def test_what_is_kept_has_a_bound_for_any_number_of_containers() -> None:
    assert all(count * answers.most_bytes(count) <= 16 << 20 for count in (1, 16, 1000))
