/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_BASE_ROOM_H
#define GPUQ_SUPERVISOR_BASE_ROOM_H

#include "failure.h"
#include "keeper_link.h"
#include "ledger.h"
#include "process_age.h"
#include "process_watch.h"
#include "stall.h"

#endif
