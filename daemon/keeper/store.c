/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store
 *
 * See store.h. The supervisor makes the keys from its own numbers, and may be compromised. uthash
 * keeps them in the order of insertion.
 */

#include "keeper/store.h"

#include <string.h>

#include "keeper/protocol.h"
#include "util/macro.h"
#include "util/table.h"

typedef struct StoreEntry {
        char key[KEEPER_KEY_MAX + 1];
        int fd;
        UT_hash_handle hh; /* store->entries */
} StoreEntry;

struct Store {
        StoreEntry *entries;
        size_t n_max;
        Closer *closer;
};

int store_new(size_t n_max, Closer *closer, Store **ret_store) {
        Store *store;

        store = calloc(1, sizeof(*store));
        if (!store)
                return -ENOMEM;
        store->n_max = n_max;
        store->closer = closer;
        *ret_store = store;
        return 0;
}

static void store_remove(Store *store, StoreEntry *entry) {
        HASH_DEL(store->entries, entry);
        closer_close(store->closer, entry->fd);
        free(entry);
}

Store *store_free(Store *store) {
        if (!store)
                return NULL;

        while (store->entries)
                store_remove(store, store->entries);
        free(store);
        return NULL;
}

static StoreEntry *store_find(const Store *store, const char *key) {
        StoreEntry *entry = NULL;

        HASH_FIND_STR(store->entries, key, entry);
        return entry;
}

bool store_is_key(const char *key) {
        size_t n = strlen(key);

        return n > 0 && n <= KEEPER_KEY_MAX &&
               strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") ==
                       n;
}

int store_keep(Store *store, const char *key, int fd) {
        size_t n_key = strlen(key);
        StoreEntry *entry;

        if (!store_is_key(key))
                return STORE_E_KEY;

        entry = store_find(store, key);
        if (entry) {
                closer_close(store->closer, entry->fd);
                entry->fd = fd;
                return 0;
        }

        if (store_count(store) >= store->n_max)
                return STORE_E_FULL;
        entry = calloc(1, sizeof(*entry));
        if (!entry)
                return -ENOMEM;

        memcpy(entry->key, key, n_key);
        entry->fd = fd;
        HASH_ADD_STR(store->entries, key, entry);
        if (!entry->hh.tbl) {
                free(entry);
                return -ENOMEM;
        }
        return 0;
}

void store_drop(Store *store, const char *key) {
        StoreEntry *entry = store_find(store, key);

        if (entry)
                store_remove(store, entry);
}

bool store_has(const Store *store, const char *key) {
        return store_find(store, key) != NULL;
}

size_t store_count(const Store *store) {
        return HASH_COUNT(store->entries);
}

int store_each(const Store *store, StoreVisit visit, void *userdata) {
        const StoreEntry *entry;
        int r;

        for (entry = store->entries; entry; entry = entry->hh.next) {
                r = visit(entry->key, entry->fd, userdata);
                if (r)
                        return r;
        }
        return 0;
}
