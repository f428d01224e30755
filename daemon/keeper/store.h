/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_STORE_H
#define GPUQ_KEEPER_STORE_H

/*
 * Store
 *
 * Descriptors by key, which outlive a supervisor. Bounded, so that a faulty
 * supervisor cannot exhaust the keeper's descriptors.
 */

#include <stdbool.h>
#include <stddef.h>

#include "keeper/closer.h"

enum {
        _STORE_E_SUCCESS,
        STORE_E_FULL,
        STORE_E_KEY, /* not store_is_key() */
};

typedef struct Store Store;

typedef int (*StoreVisit)(const char *key, int fd, void *userdata);

/**
 * store_new() - @n_max: descriptors it takes
 * @closer: closes them; NULL: they are closed at once
 *
 * Return: 0 or -ENOMEM.
 */
int store_new(size_t n_max, Closer *closer, Store **ret_store);
/** store_free() - and close all it holds; NULL is fine. Return: NULL. */
Store *store_free(Store *store);

/** store_is_key() - up to KEEPER_KEY_MAX letters, digits, '-', '_' and '.': it becomes part of a line to systemd. */
bool store_is_key(const char *key);
/** store_keep() - take @fd (on success) in place of what was there. Return: 0, STORE_E_FULL, STORE_E_KEY or -ENOMEM. */
int store_keep(Store *store, const char *key, int fd);
/** store_drop() - close what is under @key, if anything is. */
void store_drop(Store *store, const char *key);
/** store_has() - something is under @key. */
bool store_has(const Store *store, const char *key);
/** store_count() - descriptors held. */
size_t store_count(const Store *store);
/** store_each() - in the order in which the keys came; ends at the first that is not 0. Return: that, or 0. */
int store_each(const Store *store, StoreVisit visit, void *userdata);

#endif
