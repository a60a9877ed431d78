#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sum a number of every process with Accelerate."""

import socket

import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=not torch.cuda.is_available())
mine = torch.tensor([accelerator.process_index + 1.0], device=accelerator.device)
total = accelerator.reduce(mine, reduction="sum").item()
print(
    f"accelerate: process {accelerator.process_index} of {accelerator.num_processes} on {socket.gethostname()}, "
    f"{accelerator.distributed_type.value}, sum {total:.0f}",
    flush=True,
)
accelerator.end_training()
