/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_RESTART_ROOM_H
#define GPUQ_SUPERVISOR_RESTART_ROOM_H

#include "handover.h"
#include "takeover.h"

#endif
