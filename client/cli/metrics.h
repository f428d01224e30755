/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_METRICS_H
#define GPUQ_CLI_METRICS_H

/*
 * Metrics
 *
 * The status of gpuqd as OpenMetrics text (https://prometheus.io/docs/specs/om/open_metrics_spec/).
 * gpuq(1) lists the metrics. Their number is bounded: users beyond METRICS_USERS_MAX are added up.
 */

#include <stdio.h>

#include <gpuq.h>

#define METRICS_USERS_MAX 100u
#define METRICS_TYPE      "application/openmetrics-text; version=1.0.0; charset=utf-8"

/** metrics_write() - write all metrics. Return: 0 or -ENOMEM; errors of the stream remain with it. */
int metrics_write(FILE *stream, const gpuq_status *status);

#endif
