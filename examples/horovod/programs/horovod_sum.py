#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sum the numbers 1 to N over the N processes of a Horovod job."""

import socket

import horovod.torch as hvd
import torch

hvd.init()
total = hvd.allreduce(torch.tensor([float(hvd.rank() + 1)]), op=hvd.Sum)
print(f"horovod: rank {hvd.rank()} of {hvd.size()} on {socket.gethostname()}, sum {total.item():.0f}", flush=True)
