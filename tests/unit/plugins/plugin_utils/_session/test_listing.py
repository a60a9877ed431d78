# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists: the reports of the agents, the answer of the head, and the format that the variables name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conducted import conducted, options_of
from samples import exactly

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.view import SessionView
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, InputError
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.files import write
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.holder import login
from ansible_collections.cluster.compute.plugins.plugin_utils._session import listing
from ansible_collections.cluster.compute.plugins.plugin_utils._variables import request_variables as variables

LISTED: Json = {"changed": False, "sessions": [], "agents": [], "owners": [], "groups": [], "samples": [], "time": 0.0}
USED: Json = {"changed": False, "usage": [{"name": "alice"}], "lines": ["NAME", "alice"], "csv": "name\r\nalice\r\n"}


@pytest.fixture(autouse=True)
def command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variables, "load_extra_vars", lambda _loader: {})


def listed(given: Json | None = None, check: bool = False, **variables: Any) -> tuple[Json, Json]:
    """The result of a list, and what the head was asked."""
    play = conducted(
        {"report.collect": {"agent": {"name": "a"}}, "sessions.list_all": LISTED}, "a", check=check, **variables
    )
    result = listing.sessions(play, given or {})
    return result, options_of(play, "sessions.list_all")[0]


@pytest.mark.parametrize(("owner", "asked"), [("", login()), ("bob", "bob"), ("all", None)])
def test_lists_are_of_the_controllers_user_unless_an_owner_is_named(owner: str, asked: str | None) -> None:
    _result, options = listed(session_owner=owner)
    assert (options.get("owner"), options["viewer"]) == (asked, login())
    assert [agent["name"] for agent in options["agents"]] == ["a"]


def test_an_option_has_precedence_and_given_reports_are_not_collected() -> None:
    result, options = listed({"owner": "bob", "limit": 3, "agents": [{"agent": {"name": "b"}}]}, sessions_limit=7)
    assert (options["owner"], options["limit"], options["agents"]) == ("bob", 3, [{"name": "b"}])
    assert result["lines"][0].startswith("SESSION")


def test_a_list_as_json_and_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "sessions.json"
    result, options = listed(sessions_format="json", sessions_file=str(path))
    assert json.loads("\n".join(result["lines"])) == json.loads(path.read_text())
    assert (result["changed"], path.stat().st_mode & 0o777, options["limit"]) == (True, 0o600, 0)


def test_check_mode_writes_no_file(tmp_path: Path) -> None:
    result, _options = listed(check=True, sessions_format="html", sessions_page=str(tmp_path / "page.html"))
    assert (result["changed"], result["lines"], list(tmp_path.iterdir())) == (True, [], [])


def test_metrics_are_about_all_owners_whatever_the_list_shows(tmp_path: Path) -> None:
    path = tmp_path / "a.prom"
    play = conducted(
        {"report.collect": {"agent": {"name": "a"}}, "sessions.list_all": LISTED},
        "a",
        session_name="train",
        sessions_metrics=str(path),
    )
    assert listing.sessions(play, {})["changed"] is True
    shown, measured = options_of(play, "sessions.list_all")
    assert (shown["name"], shown["owner"]) == ("train", login())
    assert {"name", "ended", "state"}.isdisjoint(measured)
    assert measured["owner"] is None
    assert (path.stat().st_mode & 0o777, path.read_text()[-6:]) == (0o644, "# EOF\n")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    message = f"{tmp_path}/none/page cannot be written: No such file or directory; name another file."
    with pytest.raises(ComputeError, match=exactly(message)):
        write(str(tmp_path / "none" / "page"), "", 0o600, check=False)


def test_a_wrong_format_is_refused_before_any_host_is_asked() -> None:
    play = conducted({}, "a", policy_format="yaml")
    with pytest.raises(InputError, match="policy_format: 'yaml': must be one of: table, json"):
        listing.list_policy(play, {})
    assert play.asked == []


@pytest.mark.parametrize(
    ("form", "lines"), [("table", ["NAME", "alice"]), ("csv", ["name", "alice"]), ("json", ["[", "    {"])]
)
def test_the_use_of_resources_has_a_format(form: str, lines: list[str]) -> None:
    assert listing.list_usage(conducted({"store.usage": USED}, "a", usage_format=form), {})["lines"][:2] == lines


def test_a_file_with_the_use_of_resources_takes_the_place_of_the_output(tmp_path: Path) -> None:
    path = tmp_path / "use.csv"
    play = conducted({"store.usage": USED}, "a", usage_format="csv", usage_file=str(path))
    assert (listing.list_usage(play, {})["lines"], path.read_bytes()) == ([], b"name\r\nalice\r\n")
    assert listing.list_usage(play, {})["changed"] is False


@pytest.mark.parametrize(("variables", "month"), [({}, None), ({"usage_month": "2026-11"}, "2026-11")])
def test_the_head_is_asked_for_a_month(variables: Json, month: str | None) -> None:
    play = conducted({"store.usage": USED}, "a", **variables)
    listing.list_usage(play, {})
    [asked] = options_of(play, "store.usage")
    assert asked["month"] == month


@pytest.mark.parametrize("month", ["2026-13", "2026-1", "november", "2026-11-01", 202611, "٢٠٢٦-11", "2026-11\n"])
def test_a_month_of_another_form_is_refused_before_any_host_is_asked(month: Any) -> None:
    play = conducted({}, "a", usage_month=month)
    with pytest.raises(InputError) as refused:
        listing.list_usage(play, {})
    assert refused.value.message == f"usage_month: {month!r}: must be a month of UTC, as in 2026-11."
    assert play.asked == []


SHOWN: Json = {
    "id": "uuid",
    "name": "train",
    "owner": "alice",
    "state": "RUNNING",
    "containers": [{"hostname": "main1", "agent": "a", "state": "running"}],
    "logs": [{"hostname": "sub1", "state": "ended", "text": ""}],
}


def test_the_newest_session_of_a_name() -> None:
    found = {**LISTED, "sessions": [{**SHOWN, "logs": []}, SHOWN]}
    play = conducted(
        {"report.collect": {"agent": {"name": "a"}}, "sessions.list_all": found}, "a", session_name="train"
    )
    assert listing.newest_row(play)[0] == SessionView.from_json(SHOWN)
    [asked] = options_of(play, "sessions.list_all")
    assert (asked["name"], asked["ended"], asked["logs"]) == ("train", True, True)


@pytest.mark.parametrize(
    ("sessions", "given", "message"),
    [
        ([], {}, "session_name: 'train': no session of yours has this name; sessions.yml lists them."),
        ([], {"owner": "bob"}, "session_name: 'train': no session has this name; sessions.yml lists them."),
        (
            [SHOWN],
            {"logs_containers": ["sub1", "sub7"]},
            "session_logs_containers: 'sub7': session train has no such container, only main1, sub1.",
        ),
    ],
)
def test_a_session_or_container_that_does_not_exist_is_refused(sessions: list[Json], given: Json, message: str) -> None:
    script = {"report.collect": {"agent": {"name": "a"}}, "sessions.list_all": {**LISTED, "sessions": sessions}}
    named = {"session_" + name: value for name, value in given.items()}
    with pytest.raises(InputError, match=exactly(message)):
        listing.newest_row(conducted(script, "a", session_name="train", **named))
