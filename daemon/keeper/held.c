/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held
 *
 * See held.h. A full store is logged once; the caller goes on without it.
 */

#include "keeper/held.h"

#include <string.h>
#include <sys/resource.h>

#include "keeper/notify.h"
#include "keeper/passed.h"
#include "keeper/protocol.h"
#include "util/log.h"
#include "util/macro.h"

#define HELD_CLOSING_PART 4u /* of what may be held, so many may wait to be closed */

struct Held {
        Store *store;
        Closer *closer;
        bool is_full; /* told */
};

DEFINE_CLEANUP(Held, held_free)

/* Every arena is a descriptor here, so: as many as we may have. */
static size_t held_raise_fd_limit(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return 0;
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        return KEEPER_HELD_MAX(limit.rlim_max);
}

static void held_take_back(const char *key, int fd, void *userdata) {
        if (store_keep(userdata, key, fd) != 0) {
                log_warning("%s: cannot take back this descriptor from systemd", key);
                notify_drop(key);
                close(fd);
        }
}

int held_new(Held **ret_held) {
        _cleanup_(held_freep) Held *held = NULL;
        size_t n_max;
        int r;

        held = calloc(1, sizeof(*held));
        if (!held)
                return -ENOMEM;
        n_max = held_raise_fd_limit();
        r = closer_new(n_max / HELD_CLOSING_PART, &held->closer);
        if (r < 0) /* everything is closed at once, then */
                log_warning("cannot start a thread that frees memory: %s; others may have to wait "
                            "when a user frees much of it",
                            strerror(-r));
        r = store_new(n_max, held->closer, &held->store);
        if (r < 0)
                return r;
        r = notify_take_held(held_take_back, held->store);
        if (r < 0)
                return r;

        *ret_held = TAKE_PTR(held);
        return 0;
}

Held *held_free(Held *held) {
        if (!held)
                return NULL;

        store_free(held->store);
        closer_free(held->closer);
        free(held);
        return NULL;
}

bool held_keep(Held *held, const char *key, int *fd) {
        bool was_there;
        int r;

        if (!passed_is_memory(*fd))
                return false;
        was_there = store_has(held->store, key);
        r = store_keep(held->store, key, *fd);
        if (r == STORE_E_KEY)
                return false;
        if (r == 0) {
                if (was_there) /* of two under one name systemd would give us back both */
                        notify_drop(key);
                notify_keep(key, *fd);
                *fd = -1;
                return true;
        }

        if (!held->is_full)
                log_warning("cannot hold more than %zu descriptors; further ones would not survive "
                            "a restart of the supervisor",
                            store_count(held->store));
        held->is_full = true;
        return true;
}

bool held_drop(Held *held, const char *key) {
        if (!store_is_key(key))
                return false;
        store_drop(held->store, key);
        notify_drop(key);
        return true;
}

int held_each(const Held *held, StoreVisit visit, void *userdata) {
        return store_each(held->store, visit, userdata);
}
