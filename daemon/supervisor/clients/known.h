/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_KNOWN_H
#define GPUQ_SUPERVISOR_KNOWN_H

/*
 * Known
 *
 * Protobuf keeps the fields of a message that this version does not know, each as an allocation of its
 * own. A copy of such a message would keep them too: megabytes that no limit counts. So they are
 * dropped as soon as a request is decoded.
 */

#include <protobuf-c/protobuf-c.h>

/** known_only() - forget the unknown fields of @message and of all messages in it; frees nothing. */
void known_only(ProtobufCMessage *message);

#endif
