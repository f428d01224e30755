/* SPDX-License-Identifier: Apache-2.0 */
#include "resource.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base.h"
#include "util/macro.h"

/* What the keeper can hold: it has the same limit. */
static uint64_t resource_held_max(void) {
        struct rlimit limit;

        return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? KEEPER_HELD_MAX(limit.rlim_max) : 0;
}

static uint64_t resource_machine_memory(void) {
        return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

void resource_quotas_init(Quota quotas[_USER_RESOURCE_N]) {
        quota_init(&quotas[USER_SESSIONS], LEDGER_SESSIONS - RESOURCE_SPARE);
        quota_init(&quotas[USER_MODULES], LEDGER_MODULES - RESOURCE_SPARE);
        quota_init(&quotas[USER_ARENAS], MIN(LEDGER_ARENAS, resource_held_max()) - RESOURCE_SPARE);
        quota_init(&quotas[USER_QUEUED_BYTES], resource_machine_memory() / RESOURCE_QUEUED_PART);
}
