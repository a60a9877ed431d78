#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Train a line with parameter servers, which the chief, the servers and the workers find by TF_CONFIG alone.

The servers hold the line, and each worker computes the gradients of a part of the points. With --alone, one process does all of it.
"""

from __future__ import annotations

import sys

import tensorflow as tf

STEPS, RATE, PARTS = 60, 0.5, 2
IS_ALONE = sys.argv[1:] == ["--alone"]


def coordinator_of(
    resolver: tf.distribute.cluster_resolver.TFConfigClusterResolver,
) -> tf.distribute.coordinator.ClusterCoordinator:
    """The coordinator of the chief. On servers and workers, this serves until the process is ended."""
    if resolver.task_type in ("ps", "worker"):
        tf.distribute.Server(resolver.cluster_spec(), resolver.task_type, resolver.task_id, protocol="grpc").join()
    return tf.distribute.coordinator.ClusterCoordinator(tf.distribute.ParameterServerStrategy(resolver))


resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
coordinator = None if IS_ALONE else coordinator_of(resolver)
strategy = tf.distribute.get_strategy() if coordinator is None else coordinator.strategy

with strategy.scope():
    slope, offset = tf.Variable(0.0), tf.Variable(0.0)


@tf.function
def gradients(part: tf.Tensor) -> list[tf.Tensor]:
    """The gradients of both variables, and the loss, over the points of a part. The line is y = 3x + 1."""
    x = tf.linspace(part / PARTS, (part + 1) / PARTS, 64)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((slope * x + offset - (3.0 * x + 1.0)) ** 2)
    return [*tape.gradient(loss, [slope, offset]), loss]


def computed(part: int) -> object:
    """The result for a part, by any worker that is free."""
    argument = tf.constant(float(part))
    return gradients(argument) if coordinator is None else coordinator.schedule(gradients, args=(argument,))


for _step in range(STEPS):
    results = [computed(part) for part in range(PARTS)]
    if coordinator is not None:
        coordinator.join()
        results = coordinator.fetch(results)
    by_slope, by_offset, loss = (sum(values) / PARTS for values in zip(*results))
    slope.assign_sub(RATE * by_slope)
    offset.assign_sub(RATE * by_offset)

if IS_ALONE:
    where = "alone"
else:
    workers = len(resolver.cluster_spec().job_tasks("worker"))
    servers = [tf.DeviceSpec.from_string(variable.device).task for variable in (slope, offset)]
    where = "%d workers, slope on ps %d, offset on ps %d" % (workers, *servers)
print("%s: y = %.6f x + %.6f, loss %.6e" % (where, slope.numpy(), offset.numpy(), loss), flush=True)
