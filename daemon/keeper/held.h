/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_HELD_H
#define GPUQ_KEEPER_HELD_H

/*
 * Held
 *
 * The descriptors that outlive a supervisor. systemd, if there is one, holds each of
 * them too, so that they outlive the keeper as well.
 */

#include <stdbool.h>

#include "keeper/store.h"

typedef struct Held Held;

/** held_new() - create the store, with what systemd holds of a previous keeper; raises the limit of descriptors. Return: 0 or a negative errno. */
int held_new(Held **ret_held);
/** held_free() - NULL is fine. Return: NULL. */
Held *held_free(Held *held);

/**
 * held_keep() - in place of what was under @key
 * @fd: taken, and -1 then; stays the caller's if it was not stored
 *
 * Return: false: that is no key, or no descriptor of memory.
 */
bool held_keep(Held *held, const char *key, int *fd);
/** held_drop() - close a descriptor, also in systemd. Return: false: that is no key. */
bool held_drop(Held *held, const char *key);
/** held_each() - as store_each(). */
int held_each(const Held *held, StoreVisit visit, void *userdata);

#endif
