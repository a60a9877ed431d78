# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment slurm: the commands of docs/slurm.md in a session, job scripts of others, and a slurmd that dies.

The job scripts have the directives and the commands of scripts that PyTorch's, Accelerate's and Open MPI's documentation publish.
Options of sbatch replace what a session without GPUs cannot give. Programs that show how they are called stand in for torchrun and
accelerate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import images
import pytest
from controller import ROOT, Controller, Session
from servers import until

HOSTS = ("main1", "sub1", "sub2", "sub3")
SIZE = {"session_cluster_size": 4, "session_cpus": 1, "session_memory": "512m", "session_shm": "64m"}
NO_GPUS = "--gpus-per-task=0 --cpus-per-task=1"
PYTORCH = """\
#!/bin/bash
#SBATCH --job-name=multinode-example
#SBATCH --nodes=4
#SBATCH --ntasks=4
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=4
hosts=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
head=${hosts[0]}
address=$(srun --nodes=1 --ntasks=1 -w "$head" hostname --ip-address)
export LOGLEVEL=INFO
srun torchrun --nnodes 4 --nproc_per_node 1 --rdzv_id $RANDOM --rdzv_backend c10d --rdzv_endpoint $address:29500 train.py 50 10
"""
ACCELERATE = """\
#!/bin/bash
#SBATCH --job-name=multinode
#SBATCH -D .
#SBATCH --output=O-%x.%j
#SBATCH --error=E-%x.%j
#SBATCH --nodes=4                   # number of nodes
#SBATCH --ntasks-per-node=1         # number of MP tasks
#SBATCH --gres=gpu:4                # number of GPUs per node
#SBATCH --cpus-per-task=160         # number of cores per tasks
#SBATCH --time=01:59:00             # maximum execution time (HH:MM:SS)
export GPUS_PER_NODE=4
head=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export LAUNCHER="accelerate launch --num_processes $((SLURM_NNODES * GPUS_PER_NODE)) --num_machines $SLURM_NNODES \\
    --rdzv_backend c10d --main_process_ip $head --main_process_port 29500"
srun $LAUNCHER train.py
"""
OPEN_MPI = "#!/bin/sh\nmpirun ./ring 1000\n"
# What a launcher is given, and the variables that it would read.
STAND_IN = """\
#!/bin/sh
echo "$(hostname) task $SLURM_PROCID of $SLURM_NTASKS: ${0##*/} $* RANK=$RANK PET=$PET_NNODES LOG=$LOGLEVEL"
"""


@pytest.fixture(scope="module")
def controller(engine_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    with Controller(tmp_path_factory.mktemp("slurm") / "own", engine_host) as made:
        yield made


@pytest.fixture(scope="module")
def session(controller: Controller) -> Session:
    images.environment("slurm")
    launched = controller.launched(
        "slurm-jobs", session_image="slurm", session_apps=["slurm"], session_torchrun="static", **SIZE
    )
    put(launched, "bin/torchrun", STAND_IN)
    put(launched, "bin/accelerate", STAND_IN)
    put(launched, "ring.c", (ROOT / "examples/mpi/ring.c").read_text())
    launched.say("main1", "everywhere mpicc ring.c -o ring")
    return launched


def put(session: Session, name: str, text: str) -> None:
    """A file in the home of every container."""
    for host in HOSTS:
        command = f"mkdir -p ~/bin && cat >{name} && chmod 755 {name}"
        session.ssh(host, command, said=text).check()


def submitted(session: Session, script: str, options: str = "", first: str = "main1") -> str:
    """The output of a job script, which is in the first container of the job; the job must succeed."""
    put(session, "job.sh", script)
    command = f"PATH=$HOME/bin:$PATH sbatch --wait --output=job.out --error=job.out {options} job.sh"
    session.say("main1", command)
    return session.say(first, "cat job.out")


def states(session: Session) -> dict[str, str]:
    return dict(line.split() for line in session.say("main1", "sinfo -h -N -o '%N %T'").splitlines())


def rings(text: str) -> list[tuple[str, ...]]:
    return sorted(re.findall(r"^rank (\d) of (\d) on (\w+): .*: 0 wrong$", text, re.MULTILINE))


def test_all_nodes_are_idle_and_belong_to_an_ordinary_user(session: Session) -> None:
    assert states(session) == dict.fromkeys(HOSTS, "idle")
    owners = session.say("main1", "everywhere 'ps -o user= -C slurmctld,slurmd,munged | sort | uniq -c'")
    assert sorted(re.findall(r"^(\w+): +(\d) work$", owners, re.MULTILINE)) == [("main1", "3")] + [
        (host, "2") for host in HOSTS[1:]
    ]
    assert session.say("main1", "sinfo -h -o '%C %m'") == "0/4/0/4 512"


def test_srun_and_salloc(session: Session) -> None:
    assert sorted(session.say("main1", "srun -N3 hostname").split()) == ["main1", "sub1", "sub2"]
    shown = session.say("main1", "salloc -N2 sh -c 'scontrol show hostnames; srun hostname'")
    assert sorted(line for line in shown.splitlines() if line in HOSTS) == ["main1", "main1", "sub1", "sub1"]


def test_an_array_and_a_job_that_waits_for_it(session: Session) -> None:
    put(session, "array.sh", "#!/bin/sh\necho $SLURM_ARRAY_TASK_ID >>array.out\n")
    shown = session.say(
        "main1",
        "first=$(sbatch --parsable --array=0-5 -o /dev/null array.sh); "
        "sbatch --wait -o after.out --dependency=afterok:$first --wrap 'scontrol show job '$first | tail -n 1; cat after.out",
    )
    assert len(re.findall(r"JobState=COMPLETED", shown)) == 6, shown
    lines = session.say("main1", "everywhere cat array.out")
    assert sorted(re.findall(r": (\d)$", lines, re.MULTILINE)) == list("012345")


def test_a_cancelled_job_ends(session: Session) -> None:
    number = session.say("main1", "sbatch --parsable --wrap 'sleep 600'")
    until(lambda: "RUNNING" in session.say("main1", f"scontrol show job {number}"), "the job")
    session.say("main1", f"scancel {number}")
    until(lambda: "CANCELLED" in session.say("main1", f"scontrol show job {number}"), "its end")
    until(lambda: session.ssh("main1", "pgrep -f 'sleep 600'").code == 1, "the end of its process")
    assert session.say("main1", "squeue -h") == ""


def test_mpi_by_pmix_and_by_mpirun(session: Session) -> None:
    ranks = [(str(rank), "4", host) for rank, host in enumerate(HOSTS)]
    assert rings(session.say("main1", "srun -N4 ./ring 1000")) == ranks
    assert rings(session.say("main1", "srun -N4 --mpi=pmix ./ring 1000")) == ranks
    assert rings(submitted(session, OPEN_MPI, "-N 4")) == ranks
    assert rings(submitted(session, OPEN_MPI, "-w sub2,sub3", "sub2")) == [("0", "2", "sub2"), ("1", "2", "sub3")]


def test_scripts_of_pytorch_and_accelerate(session: Session) -> None:
    """Each launcher runs once in each container, without the variables of the session's own containers."""
    line = r"^(\w+) task (\d) of 4: {} RANK= PET= LOG={}$"
    address = session.addresses[0]
    wanted = [(host, str(number)) for number, host in enumerate(HOSTS)]
    shown = submitted(session, PYTORCH, NO_GPUS)
    call = rf"torchrun --nnodes 4 --nproc_per_node 1 --rdzv_id \d+ --rdzv_backend c10d --rdzv_endpoint {address}:29500 train.py 50 10"
    assert sorted(re.findall(line.format(call, "INFO"), shown, re.MULTILINE)) == wanted, shown
    shown = submitted(session, ACCELERATE, "--gres=none --cpus-per-task=1")
    call = (
        r"accelerate launch --num_processes 16 --num_machines 4 --rdzv_backend c10d "
        r"--main_process_ip main1 --main_process_port 29500 train.py"
    )
    assert sorted(re.findall(line.format(call, ""), shown, re.MULTILINE)) == wanted, shown


def test_what_a_job_sets_reaches_its_steps(session: Session) -> None:
    script = "#!/bin/sh\nexport MASTER_ADDR=$SLURMD_NODENAME WORLD_SIZE=2\nsrun sh -c 'echo $MASTER_ADDR $WORLD_SIZE $BACKENDAI_CLUSTER_HOST'\n"
    assert sorted(submitted(session, script, "-w sub1,sub2", "sub1").splitlines()) == ["sub1 2 sub1", "sub1 2 sub2"]


def test_a_slurmd_that_dies_is_down_and_the_session_unhealthy_until_it_runs_again(
    controller: Controller, session: Session
) -> None:
    session.say("sub2", "pkill -KILL -x slurmd")
    until(lambda: states(session)["sub2"].startswith("down"), "the end of sub2", 90)

    def unhealthy() -> bool:
        [listed] = controller.sessions(session_name="slurm-jobs")
        return bool(listed["unhealthy"] == ["app slurm"])

    until(unhealthy, "the unhealthy session", 60)
    assert "RUNNING (unhealthy)" in controller.play("sessions", session_name="slurm-jobs").check().text
    until(lambda: states(session)["sub2"] == "idle", "the new slurmd of sub2", 120)
    until(lambda: not unhealthy(), "the healthy session", 60)
    assert sorted(session.say("main1", "srun -N4 hostname").split()) == list(HOSTS)


def test_a_restarted_app_keeps_the_jobs(controller: Controller, session: Session) -> None:
    number = session.say("main1", "sbatch --parsable --hold --wrap true")
    controller.play("session_apps", session_name="slurm-jobs", session_apps_restart=["slurm"]).check()
    assert states(session) == dict.fromkeys(HOSTS, "idle")
    assert number in session.say("main1", "squeue -h -o %i")


def test_nothing_is_left(controller: Controller, session: Session) -> None:
    controller.terminate(session.name).check()
    assert controller.engine() == {}
