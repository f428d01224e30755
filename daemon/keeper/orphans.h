/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_ORPHANS_H
#define GPUQ_KEEPER_ORPHANS_H

/*
 * Orphans
 *
 * Processes that workers, compilers and the supervisor left behind, in whatever
 * session they are: the keeper is their subreaper, so each becomes its child when its
 * parent ends. All of them are killed.
 *
 * If gpuqd is process 1 of a container, orphans of others become its children as
 * well, and none is killed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct Orphans Orphans;

/* Return: whether @pid is a child that we started. */
typedef bool (*OrphansIsOwn)(pid_t pid, void *userdata);

/** orphans_new() - become the subreaper; children that we have now are left alone. Return: 0 or a negative errno. */
int orphans_new(Orphans **ret_orphans);
/** orphans_free() - NULL is fine. Return: NULL. */
Orphans *orphans_free(Orphans *orphans);
/**
 * orphans_kill() - all that are there now; those that they leave behind come later
 *
 * Return: how many have not ended yet.
 */
size_t orphans_kill(const Orphans *orphans, OrphansIsOwn is_own, void *userdata);

#endif
