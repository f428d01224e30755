/* SPDX-License-Identifier: Apache-2.0 */
#include "util/bounds.h"

#include <errno.h>
#include <sys/prctl.h>

int bounds_drop(uint64_t kept) {
        int has;

        for (int capability = 0; capability < 64; capability++) {
                if (kept >> capability & 1)
                        continue;
                has = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
                if (has < 0)
                        return 0; /* the kernel has no more */
                if (has && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0)
                        return -errno;
        }
        return 0;
}
