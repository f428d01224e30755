/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PROTO_SCAN_H
#define GPUQ_PROTO_SCAN_H

/*
 * Scan
 *
 * Reads protobuf fields directly from the packed bytes, in the order in which libraries write
 * them, without building a tree of structs. Never reads beyond the bytes that it is given.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCAN_VARINT_MAX 10u /* bytes */

/* What is left of a message. */
typedef struct Scan {
        const uint8_t *p;
        const uint8_t *end;
} Scan;

/** scan_left() - bytes. */
static inline size_t scan_left(const Scan *scan) {
        return (size_t)(scan->end - scan->p);
}

static inline bool scan_long_varint(Scan *scan, uint64_t *ret) {
        uint64_t value = 0;

        for (unsigned i = 0; i < SCAN_VARINT_MAX && scan->p < scan->end; ++i) {
                uint8_t byte = *scan->p++;

                value |= (uint64_t)(byte & 0x7f) << 7 * i;
                if (byte >= 0x80)
                        continue;
                *ret = value;
                return i + 1 < SCAN_VARINT_MAX || byte <= 1;
        }
        return false;
}

/* Most are of one byte. */
static inline bool scan_varint(Scan *scan, uint64_t *ret) {
        if (scan->p >= scan->end || *scan->p >= 0x80)
                return scan_long_varint(scan, ret);
        *ret = *scan->p++;
        return true;
}

/** scan_is() - is this field next, of this wire type? Then it is behind us. Only numbers up to 15, whose tag is one byte. */
static inline bool scan_is(Scan *scan, unsigned field, unsigned type) {
        if (scan->p >= scan->end || *scan->p != (field << 3 | type))
                return false;
        ++scan->p;
        return true;
}

/** scan_inner() - the bytes of a string or message whose tag was just read. Return: false: they are not all there. */
static inline bool scan_inner(Scan *scan, Scan *ret_inner) {
        uint64_t n;

        if (!scan_varint(scan, &n) || n > scan_left(scan))
                return false;
        *ret_inner = (Scan){.p = scan->p, .end = scan->p + n};
        scan->p += n;
        return true;
}

/** scan_u64() - Return: false: it is broken, or over @max; @ret stays as it is when the field is not next. */
static inline bool scan_u64(Scan *scan, unsigned field, uint64_t max, uint64_t *ret) {
        if (!scan_is(scan, field, 0))
                return true;
        return scan_varint(scan, ret) && *ret <= max;
}

/** scan_u32() - the same. */
static inline bool scan_u32(Scan *scan, unsigned field, uint32_t *ret) {
        uint64_t value = *ret;
        bool good = scan_u64(scan, field, UINT32_MAX, &value);

        *ret = (uint32_t)value;
        return good;
}

/** scan_s32() - the same, of a sint32. */
static inline bool scan_s32(Scan *scan, unsigned field, int32_t *ret) {
        uint32_t value = (uint32_t)*ret << 1 ^ (uint32_t)(*ret >> 31);
        bool good = scan_u32(scan, field, &value);

        *ret = (int32_t)(value >> 1 ^ -(value & 1));
        return good;
}

/** scan_bytes() - the same, where they stand. */
static inline bool scan_bytes(Scan *scan, unsigned field, Scan *ret) {
        return !scan_is(scan, field, 2) || scan_inner(scan, ret);
}

/** scan_count() - how many of this field come next, as messages; leaves @scan where it is. */
static inline size_t scan_count(Scan scan, unsigned field) {
        size_t n = 0;
        Scan inner;

        while (scan_is(&scan, field, 2) && scan_inner(&scan, &inner))
                n++;
        return n;
}

/** scan_count_numbers() - of a packed field, whose bytes these are: each number ends with a byte below 128. */
static inline size_t scan_count_numbers(Scan scan) {
        size_t n = 0;

        while (scan.p < scan.end)
                n += *scan.p++ < 0x80;
        return n;
}

/** scan_skip() - the next field, whatever it is. Return: false: there is none, or it is broken. */
static inline bool scan_skip(Scan *scan) {
        uint64_t tag, value;
        Scan inner;

        if (!scan_varint(scan, &tag))
                return false;
        switch (tag & 7) {
                case 0:
                        return scan_varint(scan, &value);
                case 2:
                        return scan_inner(scan, &inner);
                default: /* no message of ours has fixed-width fields */
                        return false;
        }
}

#endif
