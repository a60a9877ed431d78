# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An elastic training in whole numbers: its result does not depend on how many ranks take part, nor on interruptions.

Every rank keeps the weights of each step in its home folder; after a restart, all continue from the newest.

Usage: elastic.py STEPS SECONDS_PER_STEP
"""

import hashlib
import os
import sys
import time
from pathlib import Path

import torch
from torch import distributed

FEATURES, SAMPLES = 32, 240
KEPT = Path.home() / ("elastic-%s.pt" % os.environ.get("TORCHELASTIC_RUN_ID", "alone"))


def newest(weights: torch.Tensor, step: int) -> "tuple[torch.Tensor, int]":
    """The weights of the rank that came furthest."""
    steps = [torch.zeros(1, dtype=torch.int64) for _ in range(distributed.get_world_size())]
    distributed.all_gather(steps, torch.tensor([step]))
    furthest = max(range(len(steps)), key=lambda rank: int(steps[rank]))
    distributed.broadcast(weights, furthest)
    return weights, int(steps[furthest])


def main() -> None:
    count, pace = int(sys.argv[1]), float(sys.argv[2])
    distributed.init_process_group("gloo")
    rank, size = distributed.get_rank(), distributed.get_world_size()
    generator = torch.Generator().manual_seed(7)
    points = torch.randint(-9, 10, (SAMPLES, FEATURES), generator=generator)
    wanted = points @ torch.randint(-5000, 5000, (FEATURES,), generator=generator)
    weights, step = torch.load(KEPT) if KEPT.exists() else (torch.zeros(FEATURES, dtype=torch.int64), 0)
    weights, step = newest(weights, step)
    print(f"rank {rank} of {size} begins at step {step}", flush=True)
    mine = torch.arange(rank, SAMPLES, size)
    while step < count:
        gradient = points[mine].T @ (points[mine] @ weights - wanted[mine])
        distributed.all_reduce(gradient)
        weights, step = weights - gradient // 40000, step + 1
        torch.save((weights, step), KEPT.with_suffix(".new"))
        KEPT.with_suffix(".new").replace(KEPT)
        if step % 100 == 0 and rank == 0:
            print(f"step {step} with {size} ranks", flush=True)
        time.sleep(pace)
    checksum = hashlib.sha256(str(weights.tolist()).encode()).hexdigest()[:16]
    error = int((points @ weights - wanted).abs().max())
    print(f"rank {rank} of {size} ended: {checksum}, error {error}", flush=True)
    distributed.barrier()
    distributed.destroy_process_group()


main()
