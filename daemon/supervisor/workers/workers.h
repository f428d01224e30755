/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_WORKERS_ROOM_H
#define GPUQ_SUPERVISOR_WORKERS_ROOM_H

#include "outbox.h"
#include "room.h"
#include "worker.h"

#endif
