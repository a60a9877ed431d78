#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Train a line over several workers with MultiWorkerMirroredStrategy, which finds them by TF_CONFIG alone.

Each worker has points of its own. The gradients are averaged over all workers, so all end with the same line, which fits
the points of all.
"""

from __future__ import annotations

import tensorflow as tf

STEPS, RATE = 200, 0.5

# First of all: the strategy must exist before any other operation.
strategy = tf.distribute.MultiWorkerMirroredStrategy()
resolver = strategy.cluster_resolver
worker, workers = resolver.task_id, resolver.cluster_spec().num_tasks(resolver.task_type)

# The line is y = 3x + 1; each worker has another part of it.
x = tf.linspace(worker / workers, (worker + 1) / workers, 64)
y = 3.0 * x + 1.0

with strategy.scope():
    slope = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
    offset = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)


def train_step() -> tf.Tensor:
    """One step of gradient descent; the assignments take the mean of all workers."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((slope * x + offset - y) ** 2)
    for variable, gradient in zip((slope, offset), tape.gradient(loss, (slope, offset))):
        variable.assign_sub(RATE * gradient)
    return loss


@tf.function
def train() -> tf.Tensor:
    """All steps, and the mean loss of all workers before the last one."""
    loss = tf.constant(0.0)
    for _step in tf.range(STEPS):
        loss = strategy.reduce(tf.distribute.ReduceOp.MEAN, strategy.run(train_step), axis=None)
    return loss


final = train()
print(
    "worker %d of %d, %d replicas in sync: y = %.3f x + %.3f, loss %.6f"
    % (worker, workers, strategy.num_replicas_in_sync, slope.numpy(), offset.numpy(), final.numpy()),
    flush=True,
)
