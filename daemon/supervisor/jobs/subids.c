/* SPDX-License-Identifier: Apache-2.0 */
#include "subids.h"

#include <errno.h>
#include <pthread.h>
#include <shadow/subid.h>
#include <stdlib.h>
#include <time.h>

#include "util/macro.h"

#define SUBIDS_WAIT_S 5

/* libsubid is not made for threads. One that never returns stops only those who need it. */
static pthread_mutex_t subids_lock = PTHREAD_MUTEX_INITIALIZER;

static int subids_find(uid_t uid, uid_t **ret_owners) {
        struct timespec until;
        int n;

        /* A step of this clock makes one wait longer or shorter. TSan knows pthread_mutex_clocklock() not yet. */
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += SUBIDS_WAIT_S;
        if (pthread_mutex_timedlock(&subids_lock, &until) != 0)
                return -ETIMEDOUT;
        n = subid_get_uid_owners(uid, ret_owners);
        pthread_mutex_unlock(&subids_lock);
        return n > 0 ? 0 : SUBIDS_E_NONE;
}

int subids_owner(uid_t uid, uid_t *ret_owner) {
        _cleanup_(freep) uid_t *owners = NULL;
        int r;

        r = subids_find(uid, &owners);
        if (r)
                return r;
        *ret_owner = owners[0];
        return 0;
}
