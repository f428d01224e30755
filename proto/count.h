/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PROTO_COUNT_H
#define GPUQ_PROTO_COUNT_H

/*
 * Count
 *
 * How many parts a packed message has, before it is unpacked: messages within it, texts, and fields that
 * nobody knows. Each becomes an object in memory, though it may take only two bytes of the message.
 */

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#define COUNT_DEPTH_MAX 8u /* messages within messages; deeper ones count as one part */

/**
 * count_parts() - read no further than needed to know that there are more than @n_max
 *
 * What is broken is not counted: unpacking finds that.
 *
 * Return: the number of parts, at most @n_max + 1.
 */
size_t count_parts(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t n_data,
                   size_t n_max);

#endif
