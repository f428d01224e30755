/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Count
 */

#include "proto/count.h"

#include <stdbool.h>

#include "proto/scan.h"

typedef struct Count {
        size_t n;
        size_t n_max;
} Count;

static void count_message(Count *count, const ProtobufCMessageDescriptor *type, Scan scan,
                          unsigned depth);

/* Return: false: there is none, or it is broken. */
static bool count_field(Count *count, const ProtobufCMessageDescriptor *type, Scan *scan,
                        unsigned depth) {
        const ProtobufCFieldDescriptor *field;
        uint64_t tag, value;
        Scan inner;

        if (!scan_varint(scan, &tag) || tag > UINT32_MAX || !(tag >> 3))
                return false;
        field = protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
        if ((tag & 7) == 0) {
                count->n += !field;
                return scan_varint(scan, &value);
        }
        if ((tag & 7) != 2 || !scan_inner(scan, &inner))
                return false;
        if (!field || field->type == PROTOBUF_C_TYPE_MESSAGE ||
            field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_BYTES)
                count->n++;
        if (field && field->type == PROTOBUF_C_TYPE_MESSAGE && depth < COUNT_DEPTH_MAX)
                count_message(count, field->descriptor, inner, depth + 1);
        return true;
}

static void count_message(Count *count, const ProtobufCMessageDescriptor *type, Scan scan,
                          unsigned depth) {
        while (count->n <= count->n_max && scan_left(&scan))
                if (!count_field(count, type, &scan, depth))
                        return;
}

size_t count_parts(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t n_data,
                   size_t n_max) {
        Count count = {.n_max = n_max};

        count_message(&count, type, (Scan){.p = data, .end = data + n_data}, 0);
        return count.n;
}
