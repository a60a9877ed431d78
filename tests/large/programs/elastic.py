# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An elastic training in whole numbers: its result does not depend on how many ranks take part, nor on interruptions.

Every rank keeps the state of each step in its home folder; after a restart, all continue from the newest. The checksum covers the
loss of every step in their order, so a step that is lost, repeated or computed from other weights changes it.

Usage: elastic.py STEPS SECONDS_PER_STEP
"""

import hashlib
import os
import sys
import time
from pathlib import Path

import torch
from torch import distributed

FEATURES, SAMPLES, BATCH = 32, 240, 60
KEPT = Path.home() / ("elastic-%s.pt" % os.environ.get("TORCHELASTIC_RUN_ID", "alone"))


def newest(weights: torch.Tensor, step: int) -> "tuple[torch.Tensor, int]":
    """The weights of the rank that came furthest."""
    steps = [torch.zeros(1, dtype=torch.int64) for _ in range(distributed.get_world_size())]
    distributed.all_gather(steps, torch.tensor([step]))
    furthest = max(range(len(steps)), key=lambda rank: int(steps[rank]))
    distributed.broadcast(weights, furthest)
    return weights, int(steps[furthest])


def checksum(state: torch.Tensor) -> str:
    return hashlib.sha256(str(state.tolist()).encode()).hexdigest()[:16]


def main() -> None:
    count, pace = int(sys.argv[1]), float(sys.argv[2])
    distributed.init_process_group("gloo")
    rank, size = distributed.get_rank(), distributed.get_world_size()
    generator = torch.Generator().manual_seed(7)
    points = torch.randint(-9, 10, (SAMPLES, FEATURES), generator=generator)
    wanted = points @ torch.randint(-5000, 5000, (FEATURES,), generator=generator)
    # The weights, and one number for the losses of all steps.
    state, step = torch.load(KEPT) if KEPT.exists() else (torch.zeros(FEATURES + 1, dtype=torch.int64), 0)
    state, step = newest(state, step)
    print(f"rank {rank} of {size} begins at step {step}", flush=True)
    while step < count:
        weights, history = state[:-1], state[-1]
        mine = (torch.arange(rank, BATCH, size) + step * BATCH) % SAMPLES
        missed = points[mine] @ weights - wanted[mine]
        found = torch.cat([points[mine].T @ missed, (missed * missed).sum().reshape(1)])
        distributed.all_reduce(found)
        history = (history * 1_000_003 + found[-1] + step) % (2**31 - 1)
        state, step = torch.cat([weights - found[:-1] // 10000, history.reshape(1)]), step + 1
        torch.save((state, step), KEPT.with_suffix(".new"))
        KEPT.with_suffix(".new").replace(KEPT)
        if step % 100 == 0 and rank == 0:
            print(f"step {step} with {size} ranks: {checksum(state)}", flush=True)
        time.sleep(pace)
    error = int((points @ state[:-1] - wanted).abs().max())
    print(f"rank {rank} of {size} ended: {checksum(state)}, error {error}", flush=True)
    distributed.barrier()
    distributed.destroy_process_group()


main()
