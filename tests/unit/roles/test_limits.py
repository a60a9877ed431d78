# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The question of a container whether another one is idle (roles/image/files/limits.sh)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

LIMITS = Path(__file__).parents[3] / "roles/image/files/limits.sh"
# Programs in place of those of the SSH runtime: those of this machine, and an ssh whose other side does what the test says.
PROGRAMS = {"busybox": 'exec "$@"', "setpriv": 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"', "ssh": "%s"}
PROGRAMS.update({name: f'exec {name} "$@"' for name in ("date", "tr")})


def make_runtime(folder: Path, there: str) -> None:
    (folder / "bin").mkdir()
    for name, script in PROGRAMS.items():
        program = folder / "bin" / name
        program.write_text("#!/bin/sh\n" + script.replace("%s", there) + "\n")
        program.chmod(0o755)


@pytest.mark.parametrize(
    ("there", "answer"), [("echo Welcome!; echo 90", "90"), ("echo Welcome!", "0"), ("exit 255", ""), ("sleep 600", "")]
)
def test_a_container_that_does_not_answer_in_time_is_gone(there: str, answer: str, tmp_path: Path) -> None:
    """A login shell that hangs would hold up the end of an idle session, and of one whose lifetime is over."""
    make_runtime(tmp_path, there)
    script = f'runtime={tmp_path} uid=0 gid=0 home=/; . {LIMITS}; patience=1; ask_quiet sub1; echo "$answer"'
    done = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True, timeout=20)
    assert done.stdout == f"{answer}\n"


def test_containers_that_do_not_answer_do_not_hold_up_the_end_of_the_lifetime(tmp_path: Path) -> None:
    """It is looked at after each group of questions."""
    make_runtime(tmp_path, 'echo "$@" | cut -d " " -f 10 >>"$config/log"; sleep 600')
    (tmp_path / "limits").write_text("lifetime 1 1000\nidle 600\n")
    script = f"""
        export config={tmp_path}
        runtime={tmp_path} uid=0 gid=0 home=/ BACKENDAI_CLUSTER_HOSTS=main1,sub1,sub2 BACKENDAI_CLUSTER_HOST=main1
        . {LIMITS}
        patience=1 together=2
        warn() {{ :; }}
        kill() {{ echo "$@" >>"$config/log"; }}
        read_limits
        subs_are_idle
    """
    subprocess.run(["sh", "-c", script], check=True, timeout=60)
    assert (tmp_path / "log").read_text().splitlines()[:2] == ["sub1", "-USR1 1"]


def test_containers_are_asked_together_so_that_hung_ones_are_waited_for_once(tmp_path: Path) -> None:
    """Each is waited for for a minute. Here the first one answers once the last one is asked."""
    there = """
        echo >>"$config/asked"
        case $* in *" sub1 "*) ;; *) exit 255 ;; esac
        until [ "$(wc -l <"$config/asked")" = 3 ]; do sleep 0.1; done
        echo 5
    """
    make_runtime(tmp_path, there)
    script = f"""
        export config={tmp_path}
        runtime={tmp_path} uid=0 gid=0 home=/ BACKENDAI_CLUSTER_HOSTS=main1,sub1,sub2,sub3 BACKENDAI_CLUSTER_HOST=main1
        . {LIMITS}
        patience=20 lifetime=0 idle=600 clock=100
        subs_are_idle || echo "$ask_at"
    """
    done = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True, timeout=100)
    assert done.stdout == "59600\n"


def test_a_question_that_cannot_begin_ends_no_session(tmp_path: Path) -> None:
    """main1 is at its limit of processes. The shell that would ask ends without a line."""
    make_runtime(tmp_path, "echo 900")
    script = f"""
        export config={tmp_path}
        runtime={tmp_path} uid=0 gid=0 home=/ BACKENDAI_CLUSTER_HOSTS=main1,sub1,sub2 BACKENDAI_CLUSTER_HOST=main1
        . {LIMITS}
        lifetime=0 idle=600 clock=100
        subs_are_idle && echo idle
        ask_quiet() {{ [ "$1" != sub2 ] || exit 2; answer=900; }}
        subs_are_idle || echo unknown
    """
    done = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True, timeout=100)
    assert done.stdout.splitlines() == ["idle", "unknown"]


@pytest.mark.parametrize(
    ("when", "codes"), [("command 1", (0, 3)), ("command 2", (3,)), ("command 3", (0,)), ("idle 60", ())]
)
@pytest.mark.parametrize("code", [0, 3])
def test_a_command_ends_its_session_and_tells_the_other_containers(
    tmp_path: Path, when: str, codes: tuple[int, ...], code: int
) -> None:
    """Four at a time; one that hangs holds up the others for the patience."""
    make_runtime(tmp_path, 'echo "$*" >>"$config/log"; case $* in *" sub2 "*) sleep 600 ;; esac')
    (tmp_path / "limits").write_text(when + "\n")
    script = f"""
        export config={tmp_path}
        runtime={tmp_path} uid=0 gid=0 home=/ BACKENDAI_CLUSTER_HOSTS=main1,sub1,sub2,sub3,sub4,sub5 BACKENDAI_CLUSTER_HOST=main1
        . {LIMITS}
        patience=1
        say() {{ :; }}
        kill() {{ echo "$@" >>"$config/log"; }}
        end_with_command {code}
        BACKENDAI_CLUSTER_HOST=sub1
        end_with_command {code}
    """
    subprocess.run(["sh", "-c", script], check=True, timeout=60)
    log = tmp_path / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    assert sorted(line.split()[9] for line in lines[:-1]) == (
        ["sub1", "sub2", "sub3", "sub4", "sub5"] if code in codes else []
    )
    assert [line.split(" ", 10)[-1] for line in lines[:-1]] == [f"echo over >{tmp_path}/run/over"] * len(lines[:-1])
    assert lines[-1:] == (["-ALRM 1"] if code in codes else [])


def test_a_container_ends_when_main1_says_that_the_session_is_over(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    script = f"""
        config={tmp_path} runtime={tmp_path}
        . {LIMITS}
        say() {{ :; }}
        kill() {{ echo "$@"; }}
        ending=1; check_over; echo over >$config/run/over
        ending=0; check_over; echo no; ending=1; check_over
    """
    done = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["no", "-ALRM 1"]


def test_a_clock_that_was_ahead_when_the_session_began_makes_its_lifetime_no_longer(tmp_path: Path) -> None:
    """It counts from the first look. A few seconds between the clocks of two hosts are none."""
    make_runtime(tmp_path, "")
    (tmp_path / "bin/date").write_text('#!/bin/sh\ncat "$config/now"\n')
    script = f"""
        export config={tmp_path} runtime={tmp_path}
        . {LIMITS}
        warn_before() {{ echo "$1"; }}
        warn() {{ :; }}
        kill() {{ echo over; }}
        ahead='' lifetime=100
        at() {{ began=$1; echo "$2" >$config/now; check_lifetime; }}
        at 1030 1000; at 1500 1000; at 1500 1070; at 1500 1101; at 9999 1101; at 9999 1000; at 1090 1110
        lifetime=0; at 1500 1000
    """
    done = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["130", "100", "30", "over", "100", "100", "80"]
