/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PROTO_PACK_H
#define GPUQ_PROTO_PACK_H

/*
 * Pack
 *
 * Writes protobuf fields one after the other into room that the caller has
 * measured, for the few messages that go by with every job. protobuf-c measures
 * each field twice and wants a tree of structs first: with it for the completions
 * alone, a job costs the supervisor 8,200 instructions instead of 7,100
 * (tests/unit/supervisor/load.c under callgrind). What is written here protobuf-c reads.
 *
 * Each function returns where the next field goes; a field that is 0 or empty is
 * left out, as proto3 has it.
 *
 * A message within one, whose length is known last, is written in one of two ways:
 * large ones with pack_begin() and pack_end(), which pad the length, so that their
 * bytes stay where they are; small ones with pack_open() and pack_close(), whose
 * length is as short as can be, at the price of a move if they grow large after all.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PACK_FIELD_BYTES                                                                           \
        12u /* of a number, at most, for fields up to 15 or, of 32 bits, up to 2047 */
#define PACK_PREFIX_BYTES 6u /* before the bytes of a string or message, at most */
#define PACK_LENGTH_BYTES 4u /* of a message's length, padded: it is known last */

typedef enum PackType {
        PACK_VARINT = 0,
        PACK_LENGTH = 2,
} PackType;

static inline uint8_t *pack_varint(uint8_t *p, uint64_t value) {
        for (; value >= 0x80; value >>= 7)
                *p++ = (uint8_t)(value | 0x80);
        *p++ = (uint8_t)value;
        return p;
}

static inline uint8_t *pack_tag(uint8_t *p, unsigned field, PackType type) {
        return pack_varint(p, (uint64_t)field << 3 | type);
}

/** pack_number() - uint32, uint64, bool, an enum without negative values. */
static inline uint8_t *pack_number(uint8_t *p, unsigned field, uint64_t value) {
        return value ? pack_varint(pack_tag(p, field, PACK_VARINT), value) : p;
}

/** pack_signed() - sint32. */
static inline uint8_t *pack_signed(uint8_t *p, unsigned field, int32_t value) {
        return pack_number(p, field, (uint32_t)value << 1 ^ (uint32_t)(value >> 31));
}

/** pack_bytes() - bytes or a string. */
static inline uint8_t *pack_bytes(uint8_t *p, unsigned field, const void *data, size_t n_data) {
        if (!n_data)
                return p;
        p = pack_varint(pack_tag(p, field, PACK_LENGTH), n_data);
        return (uint8_t *)memcpy(p, data, n_data) + n_data;
}

/** pack_begin() - a message; its fields follow, then pack_end(). */
static inline uint8_t *pack_begin(uint8_t *p, unsigned field) {
        return pack_tag(p, field, PACK_LENGTH) + PACK_LENGTH_BYTES;
}

/** pack_end() - @begin: what pack_begin() returned, @end: where its last field ends, less than 2^28 bytes on. */
static inline void pack_end(uint8_t *begin, const uint8_t *end) {
        uint32_t length = (uint32_t)(end - begin);

        for (unsigned i = 0; i < PACK_LENGTH_BYTES; ++i, length >>= 7)
                begin[(int)i - (int)PACK_LENGTH_BYTES] =
                        (uint8_t)((length & 0x7f) | (i + 1 < PACK_LENGTH_BYTES ? 0x80 : 0));
}

/**
 * pack_open() - as pack_begin(), for a message that most often has less than 128 bytes
 *
 * Its length takes no more than it needs: each byte of it costs its reader 12 instructions. pack_close() ends it.
 */
static inline uint8_t *pack_open(uint8_t *p, unsigned field) {
        return pack_tag(p, field, PACK_LENGTH) + 1;
}

/** pack_close() - the fields move up if they have 128 bytes or more. Return: where they end. */
static inline uint8_t *pack_close(uint8_t *begin, const uint8_t *end) {
        size_t n = (size_t)(end - begin);
        uint8_t *fields = begin;

        for (size_t rest = n; rest >= 0x80; rest >>= 7)
                ++fields;
        if (fields != begin)
                memmove(fields, begin, n);
        pack_varint(begin - 1, n);
        return fields + n;
}

#endif
