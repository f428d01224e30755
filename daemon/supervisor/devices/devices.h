/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DEVICES_ROOM_H
#define GPUQ_SUPERVISOR_DEVICES_ROOM_H

#include "drain.h"
#include "probe.h"
#include "xid_log.h"

#endif
