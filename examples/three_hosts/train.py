#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit a line with DistributedDataParallel over all containers, and save the model beside this file.

torchrun sets what init_process_group reads. Each rank has points of its own.
"""

import pathlib
import socket

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

STEPS = 200


def train(rank):
    """Return the trained model and its last loss."""
    torch.manual_seed(rank)
    points = torch.rand(256, 1)
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _step in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(points), 3 * points + 1)
        loss.backward()
        optimizer.step()
    return model.module, loss.item()


def main():
    distributed.init_process_group("gloo")
    rank, size = distributed.get_rank(), distributed.get_world_size()
    model, loss = train(rank)
    print(f"rank {rank} of {size} on {socket.gethostname()}: loss {loss:.6f}", flush=True)
    if rank == 0:
        torch.save(model.state_dict(), pathlib.Path(__file__).with_name("model.pt"))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
