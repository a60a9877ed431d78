#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DistributedDataParallel on the CPU, over gloo. This is plain PyTorch, independent of sessions.

It reads WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT, which every container has and which torchrun sets itself. Where
TensorBoard is installed, rank 0 writes the loss to ~/runs.

Usage: train.py [EPOCHS]
"""

import hashlib
import os
import pathlib
import socket
import sys

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError:
    SummaryWriter = None

FEATURES, SAMPLES, BATCH, WORKERS = 1024, 1536, 64, 2


def make_data():
    """Return points and a linear function of them, the same for every rank."""
    generator = torch.Generator().manual_seed(7)
    points = torch.randn(SAMPLES, FEATURES, generator=generator)
    truth = torch.randn(FEATURES, 1, generator=generator) / FEATURES**0.5
    return TensorDataset(points, points @ truth)


def shared_memory_used():
    """Return the number of bytes in /dev/shm: batches that the workers pass on."""
    found = os.statvfs("/dev/shm")
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def write_losses(losses):
    """Write the losses for TensorBoard."""
    with SummaryWriter(pathlib.Path.home() / "runs" / "train") as writer:
        for step, loss in enumerate(losses):
            writer.add_scalar("loss", loss, step)


def train(rank, size, epochs):
    """Return the first loss, the last loss, the trained model, and the maximum use of /dev/shm in bytes."""
    torch.manual_seed(rank)  # ranks begin with different weights; DDP makes them equal
    model = DistributedDataParallel(torch.nn.Linear(FEATURES, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    sampler = DistributedSampler(make_data(), size, rank)
    loader = DataLoader(sampler.dataset, BATCH, sampler=sampler, num_workers=WORKERS, persistent_workers=True)
    losses, shared = [], 0
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for points, wanted in loader:
            shared = max(shared, shared_memory_used())
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(points), wanted)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if rank == 0:
            print(f"epoch {epoch + 1} of {epochs}: loss {losses[-1]:.4f}", flush=True)
    if rank == 0 and SummaryWriter is not None:
        write_losses(losses)
    return losses[0], losses[-1], model.module, shared


def checksum(model):
    """Return a checksum that is equal for models with bit-identical weights."""
    found = hashlib.sha256()
    for tensor in model.state_dict().values():
        found.update(bytes(tensor.contiguous().view(torch.uint8).flatten().tolist()))
    return found.hexdigest()[:16]


def main():
    distributed.init_process_group("gloo")
    rank, size = distributed.get_rank(), distributed.get_world_size()
    first, last, model, shared = train(rank, size, int(sys.argv[1]) if sys.argv[1:] else 3)
    print(
        f"rank {rank} of {size} on {socket.gethostname()}: loss {first:.4f} -> {last:.4f}, weights {checksum(model)}, "
        f"{WORKERS} workers, {shared / 1024:.0f} KiB in /dev/shm, torch {torch.__version__}",
        flush=True,
    )
    distributed.barrier()
    distributed.destroy_process_group()
    return last >= first


if __name__ == "__main__":
    sys.exit(main())
