/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_POLICY_ROOM_H
#define GPUQ_SUPERVISOR_POLICY_ROOM_H

#include "crashes.h"
#include "decay.h"
#include "duration.h"
#include "fairshare.h"
#include "fault.h"
#include "health.h"
#include "order.h"
#include "pressure.h"
#include "quanta.h"
#include "queue.h"
#include "suspects.h"

#endif
