/* SPDX-License-Identifier: Apache-2.0 */
#include "known.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static const void *known_at(const ProtobufCMessage *message, unsigned offset) {
        return (const char *)message + offset;
}

static bool known_is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
        return !(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ||
               *(const uint32_t *)known_at(message, field->quantifier_offset) == field->id;
}

static void known_list(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
        ProtobufCMessage *const *list =
                *(ProtobufCMessage *const *const *)known_at(message, field->offset);
        size_t n = *(const size_t *)known_at(message, field->quantifier_offset);

        for (size_t i = 0; i < n; ++i)
                known_only(list[i]);
}

static void known_field(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
        ProtobufCMessage *inner;

        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
                return;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
                known_list(message, field);
                return;
        }
        inner = *(ProtobufCMessage *const *)known_at(message, field->offset);
        if (known_is_set(message, field) && inner)
                known_only(inner);
}

/* As deep as the protocol's messages, none of which contains itself. */
void known_only(ProtobufCMessage *message) {
        const ProtobufCMessageDescriptor *type = message->descriptor;

        message->n_unknown_fields = 0;
        message->unknown_fields = NULL;
        for (unsigned i = 0; i < type->n_fields; ++i)
                known_field(message, &type->fields[i]);
}
