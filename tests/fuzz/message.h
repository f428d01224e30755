/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_FUZZ_MESSAGE_H
#define GPUQ_FUZZ_MESSAGE_H

/*
 * Message
 *
 * A protobuf message of any type, filled in by the bytes of an input: which fields it has, how
 * often, and what is in them. So a run says something that is understood, and not only noise.
 */

#include <protobuf-c/protobuf-c.h>

#include "input.h"

/* A number for this field; chosen by @input, so that it may name something that is there. */
typedef uint64_t (*MessageNumber)(Input *input, const ProtobufCFieldDescriptor *field,
                                  void *userdata);

/** message_new() - free with protobuf_c_message_free_unpacked(). @number: NULL: input_edge(). */
ProtobufCMessage *message_new(Input *input, const ProtobufCMessageDescriptor *descriptor,
                              MessageNumber number, void *userdata);
/**
 * message_spoil() - change some bytes of a packed message
 * @data: of room for @n_max, may come to be shorter or longer. Return: its length now.
 */
size_t message_spoil(Input *input, uint8_t *data, size_t n_data, size_t n_max);

#endif
