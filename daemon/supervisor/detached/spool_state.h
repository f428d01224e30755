/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SPOOL_STATE_H
#define GPUQ_SUPERVISOR_SPOOL_STATE_H

/*
 * What the spool_….c have in common.
 */

#include <dirent.h>
#include <pthread.h>

#include "spool.h"

#define SPOOL_DAMAGED "damaged"

struct Spool {
        int fd;
        int damaged_fd;
        int lock_fd;
        pthread_mutex_t lock; /* of noted */
        uint32_t noted;       /* in the file "last" */
};

/** spool_name() - of a job's folder. */
void spool_name(uint32_t number, uint32_t uid, char name[SPOOL_NAME_MAX]);
/** spool_is_name() - only what spool_name() makes; with @may_have_more ".N" behind it, as in damaged/. */
bool spool_is_name(const char *text, bool may_have_more, uint32_t *ret_number, uint32_t *ret_uid);

/** spool_folder_open() - Return: its descriptor, or a negative errno. */
int spool_folder_open(int parent, const char *name);
/** spool_folder_make() - or open it, if it is there. Return: as spool_folder_open(). */
int spool_folder_make(int parent, const char *name);
/** spool_folder_sync() - Return: 0, or a negative errno. */
int spool_folder_sync(int fd);
/** spool_folder_list() - Return: the caller's, or NULL with errno. */
DIR *spool_folder_list(int parent, const char *name);
/** spool_folder_remove() - with the files in it; it has no folders. What stays is removed at the next start. Return: 0, or a negative errno. */
int spool_folder_remove(int parent, const char *name);
/** spool_folder_problem() - it cannot be opened: is it gone, or no folder? Return: SPOOL_E_DAMAGED, or @error. */
int spool_folder_problem(int error, SpoolProblem *problem);

#endif
