/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_LOOP_ROOM_H
#define GPUQ_SUPERVISOR_LOOP_ROOM_H

#include "supervisor.h"

#endif
