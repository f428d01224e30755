/* SPDX-License-Identifier: Apache-2.0 */
#include "resource.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base.h"
#include "util/footprint.h"
#include "util/macro.h"

_Static_assert(LEDGER_ARENAS / 4 + LEDGER_ARENAS / QUOTA_PARTS <= FOOTPRINT_ARENAS,
               "one user can have more arenas than gpuqd --check says");

#define RESOURCE_FILES_ASSUMED 1024u /* if the kernel does not say: the smallest usual limit */

/* The keeper has the same limit. */
static uint64_t resource_files_max(void) {
        struct rlimit limit;

        return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : RESOURCE_FILES_ASSUMED;
}

/* Not 0, which would be no limit. */
static uint64_t resource_records(uint64_t n_records, uint64_t n_files) {
        uint64_t n = MIN(n_records, n_files);

        return n > RESOURCE_SPARE ? n - RESOURCE_SPARE : 1;
}

static uint64_t resource_machine_memory(void) {
        return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

void resource_set_transit_room(Quota quotas[_USER_RESOURCE_N], uint64_t room) {
        quota_init(&quotas[USER_TRANSIT_FDS], MAX(room / RESOURCE_TRANSIT_PART, 1u));
}

void resource_quotas_init(Quota quotas[_USER_RESOURCE_N]) {
        uint64_t n_files = resource_files_max();

        quota_init(&quotas[USER_SESSIONS],
                   resource_records(LEDGER_SESSIONS, n_files / RESOURCE_SESSION_PART));
        quota_init(&quotas[USER_MODULES], LEDGER_MODULES - RESOURCE_SPARE);
        quota_init(&quotas[USER_ARENAS], resource_records(LEDGER_ARENAS, KEEPER_HELD_MAX(n_files)));
        quota_init(&quotas[USER_WORKERS], KEEPER_WORKERS_MAX / RESOURCE_WORKERS_PART);
        resource_set_transit_room(quotas, n_files);
        quota_init(&quotas[USER_QUEUED_BYTES], resource_machine_memory() / RESOURCE_QUEUED_PART);
}

void resource_divide_arenas(Quota quotas[_USER_RESOURCE_N], uint64_t n_bytes) {
        quota_init_open(&quotas[USER_ARENA_BYTES], n_bytes == UINT64_MAX ? 0 : n_bytes);
}
