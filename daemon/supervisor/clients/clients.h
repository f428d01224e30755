/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_CLIENTS_ROOM_H
#define GPUQ_SUPERVISOR_CLIENTS_ROOM_H

#include "listener.h"
#include "session.h"

#endif
