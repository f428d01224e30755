/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <stdio.h>
#include <stdlib.h>

#define MESSAGE_PARTS_MAX 400u /* messages in one, or elements of lists */
#define MESSAGE_TEXT_MAX  80u

typedef struct Filling {
        Input *input;
        MessageNumber number;
        void *userdata;
        unsigned n_parts;
} Filling;

static ProtobufCMessage *filling_message(Filling *filling,
                                         const ProtobufCMessageDescriptor *descriptor);

static void *filling_alloc(size_t n_bytes) {
        void *memory = calloc(1, MAX(n_bytes, (size_t)1));

        if (!memory)
                abort();
        return memory;
}

static uint64_t filling_number(Filling *filling, const ProtobufCFieldDescriptor *field) {
        return filling->number ? filling->number(filling->input, field, filling->userdata)
                               : input_edge(filling->input);
}

static int32_t filling_enum(Filling *filling, const ProtobufCFieldDescriptor *field) {
        const ProtobufCEnumDescriptor *descriptor = field->descriptor;
        unsigned choice = input_u8(filling->input);

        if (choice == 255)
                return (int32_t)input_u32(filling->input);
        return descriptor->values[choice % descriptor->n_values].value;
}

/* A text has no zero byte within; most are printable. */
static char *filling_text(Filling *filling) {
        size_t n = input_u8(filling->input), n_taken;
        const uint8_t *bytes;
        char *text;

        n = n < 240 ? n % 12 : MESSAGE_TEXT_MAX + n;
        bytes = input_take(filling->input, n, &n_taken);
        text = filling_alloc(n_taken + 1);
        for (size_t i = 0; i < n_taken; ++i)
                text[i] = bytes[i] ? (char)bytes[i] : ' ';
        return text;
}

static ProtobufCBinaryData filling_bytes(Filling *filling) {
        size_t n = input_u8(filling->input), n_taken;
        const uint8_t *bytes = input_take(filling->input, n, &n_taken);
        uint8_t *data = filling_alloc(n_taken);

        memcpy(data, bytes, n_taken);
        return (ProtobufCBinaryData){n_taken, data};
}

static size_t filling_size(const ProtobufCFieldDescriptor *field) {
        switch (field->type) {
                case PROTOBUF_C_TYPE_INT64:
                case PROTOBUF_C_TYPE_SINT64:
                case PROTOBUF_C_TYPE_SFIXED64:
                case PROTOBUF_C_TYPE_UINT64:
                case PROTOBUF_C_TYPE_FIXED64:
                case PROTOBUF_C_TYPE_DOUBLE:
                        return 8;
                case PROTOBUF_C_TYPE_BOOL:
                        return sizeof(protobuf_c_boolean);
                case PROTOBUF_C_TYPE_STRING:
                case PROTOBUF_C_TYPE_MESSAGE:
                        return sizeof(void *);
                case PROTOBUF_C_TYPE_BYTES:
                        return sizeof(ProtobufCBinaryData);
                default:
                        return 4;
        }
}

static void filling_value(Filling *filling, const ProtobufCFieldDescriptor *field, void *at) {
        uint64_t number;

        switch (field->type) {
                case PROTOBUF_C_TYPE_BOOL:
                        *(protobuf_c_boolean *)at = input_u8(filling->input) & 1;
                        break;
                case PROTOBUF_C_TYPE_ENUM:
                        *(int32_t *)at = filling_enum(filling, field);
                        break;
                case PROTOBUF_C_TYPE_STRING:
                        *(char **)at = filling_text(filling);
                        break;
                case PROTOBUF_C_TYPE_BYTES:
                        *(ProtobufCBinaryData *)at = filling_bytes(filling);
                        break;
                case PROTOBUF_C_TYPE_MESSAGE:
                        *(ProtobufCMessage **)at = filling_message(filling, field->descriptor);
                        break;
                default: /* little-endian: the first bytes are the lower ones */
                        number = filling_number(filling, field);
                        memcpy(at, &number, filling_size(field));
        }
}

static size_t filling_count(Filling *filling) {
        size_t n = input_u8(filling->input);

        n = n < 224 ? n % 4 : n - 220;
        return MIN(n, (size_t)(MESSAGE_PARTS_MAX - filling->n_parts));
}

static void filling_list(Filling *filling, const ProtobufCFieldDescriptor *field, uint8_t *base) {
        size_t n = filling_count(filling), size = filling_size(field);
        uint8_t *list;

        if (!n)
                return;
        filling->n_parts += n;
        list = filling_alloc(n * size);
        for (size_t i = 0; i < n; ++i)
                filling_value(filling, field, list + i * size);
        memcpy(base + field->quantifier_offset, &n, sizeof(n));
        memcpy(base + field->offset, &list, sizeof(list));
}

static void filling_field(Filling *filling, const ProtobufCFieldDescriptor *field, uint8_t *base) {
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
                filling_list(filling, field, base);
                return;
        }
        if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
                memcpy(base + field->quantifier_offset, &field->id, sizeof(field->id));
        filling_value(filling, field, base + field->offset);
}

/* One of those of which there may be but one. */
static void filling_oneof(Filling *filling, const ProtobufCMessageDescriptor *descriptor,
                          uint8_t *base) {
        const ProtobufCFieldDescriptor *choices[64];
        unsigned n = 0;

        for (unsigned i = 0; i < descriptor->n_fields && n < 64; ++i)
                if (descriptor->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
                        choices[n++] = &descriptor->fields[i];
        if (n)
                filling_field(filling, choices[input_below(filling->input, n)], base);
}

static ProtobufCMessage *filling_message(Filling *filling,
                                         const ProtobufCMessageDescriptor *descriptor) {
        ProtobufCMessage *message = filling_alloc(descriptor->sizeof_message);
        size_t n_mask = descriptor->n_fields > 8 ? 2 : 1;
        uint64_t mask;

        protobuf_c_message_init(descriptor, message);
        filling_oneof(filling, descriptor, (uint8_t *)message);
        if (++filling->n_parts >= MESSAGE_PARTS_MAX || !filling->input->n)
                return message;

        mask = input_number(filling->input, n_mask);
        for (unsigned i = 0; i < descriptor->n_fields; ++i)
                if (mask >> i % (8 * n_mask) & 1 &&
                    !(descriptor->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
                        filling_field(filling, &descriptor->fields[i], (uint8_t *)message);
        return message;
}

ProtobufCMessage *message_new(Input *input, const ProtobufCMessageDescriptor *descriptor,
                              MessageNumber number, void *userdata) {
        Filling filling = {.input = input, .number = number, .userdata = userdata};

        return filling_message(&filling, descriptor);
}

size_t message_spoil(Input *input, uint8_t *data, size_t n_data, size_t n_max) {
        size_t at;

        for (unsigned n = 1 + input_below(input, 4); n && n_data; --n) {
                at = input_u16(input) % n_data;
                switch (input_below(input, 6)) {
                        case 0:
                                n_data = at; /* cut short */
                                break;
                        case 1: /* some bytes twice */
                                if (n_data + (n_data - at) <= n_max) {
                                        memcpy(data + n_data, data + at, n_data - at);
                                        n_data += n_data - at;
                                }
                                break;
                        case 2:
                                data[at] ^= (uint8_t)(1u << input_below(input, 8));
                                break;
                        default:
                                data[at] = input_u8(input);
                }
        }
        return n_data;
}
