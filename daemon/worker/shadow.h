/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_SHADOW_H
#define GPUQ_WORKER_SHADOW_H

/*
 * Shadow
 *
 * Which bytes a checked job has written of the buffers that it only writes (compiler/check.h). All
 * shadows of a job lie in one block of device memory. Buffers that overlap share theirs, so it does not
 * matter which of them a kernel finds first.
 */

#include "compiler/check.h"
#include "driver/driver.h"
#include "worker/staging.h"

/** shadow_bytes() - of the block: an eighth of what the job only writes, and a little; 0: it writes none. */
uint64_t shadow_bytes(const StagingBuffer *buffers, size_t n_buffers);
/** shadow_of() - what stands in the range of a buffer until shadow_place(). */
uint64_t shadow_of(const StagingBuffer *buffer);
/**
 * shadow_place() - give the ranges of buffers that are only written their places in the block
 * @ranges: one a buffer
 * @block: the address of shadow_bytes() bytes
 * @spans: room for as many: becomes what has a shadow; ranges that overlap are one span, and no two spans do
 *
 * Return: 0 or -ENOMEM.
 */
int shadow_place(CheckRange *ranges, size_t n_ranges, CUdeviceptr block, CheckRange *spans,
                 size_t *ret_n_spans);
/**
 * shadow_set() - issue that memory from @begin to @end is written, where it has a shadow
 *
 * Its neighbours, up to seven bytes on each side, then count as written, too: whole bytes of a shadow are
 * set. Return: of the first call that fails.
 */
CUresult shadow_set(const Driver *cu, const CheckRange *spans, size_t n_spans, uint64_t begin,
                    uint64_t end, CUstream stream);

#endif
