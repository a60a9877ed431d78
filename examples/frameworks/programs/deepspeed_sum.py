#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sum a number of every process with DeepSpeed. Its launcher passes the option --local_rank."""

import socket

import deepspeed
import torch
from deepspeed import comm

deepspeed.init_distributed()
rank, size = comm.get_rank(), comm.get_world_size()
mine = torch.tensor([rank + 1.0], device=deepspeed.get_accelerator().current_device_name())
comm.all_reduce(mine)
print(f"deepspeed: rank {rank} of {size} on {socket.gethostname()}, sum {mine.item():.0f}", flush=True)
