#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Train a line with Lightning, which finds out by itself who has started its processes."""

import os
import socket

import torch
from lightning import LightningModule, Trainer
from torch.utils.data import DataLoader, TensorDataset


class Line(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, _index):
        points, wanted = batch
        return torch.nn.functional.mse_loss(self.layer(points), wanted)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.3)


torch.manual_seed(7)
x = torch.linspace(0, 1, 64).unsqueeze(1)
nodes = int(os.environ.get("GROUP_WORLD_SIZE", os.environ["WORLD_SIZE"]))
trainer = Trainer(
    accelerator="cpu",
    devices=1,
    num_nodes=nodes,
    strategy="ddp",
    max_epochs=40,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
model = Line()
trainer.fit(model, DataLoader(TensorDataset(x, 3 * x + 1), batch_size=8))
found = type(trainer.strategy.cluster_environment).__name__
print(
    f"lightning: rank {trainer.global_rank} of {trainer.world_size} on {socket.gethostname()} by {found}: "
    f"y = {model.layer.weight.item():.3f} x + {model.layer.bias.item():.3f}",
    flush=True,
)
