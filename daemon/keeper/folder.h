/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_FOLDER_H
#define GPUQ_KEEPER_FOLDER_H

/*
 * Folder
 *
 * Four kinds of folders. Below cache_dir, which only gpuqd may write: the compile cache of each
 * uid, that of the built-in kernels, and an empty folder that keeps workers away from any MPS daemon.
 * Below state_dir: the supervisor's folders for detached jobs and for the history. A folder of another
 * user is made as that user, so call these where no other thread makes files: in a child that is to
 * become a process.
 */

#include <sys/types.h>

/**
 * folder_for_uid() - CACHE/UID, mode 0700, owned by that user; made when missing
 * @ret_path: the caller's
 *
 * Return: 0, or a negative errno with @ret_error, the caller's text.
 */
int folder_for_uid(const char *cache, uid_t uid, gid_t gid, char **ret_path, char **ret_error);
/** folder_for_state() - STATE/NAME, mode 0700, owned by the supervisor's user. Arguments and return as above, without a path. */
int folder_for_state(const char *state, const char *name, uid_t uid, gid_t gid, char **ret_error);
/** folder_without_mps() - CACHE/no-mps, empty, writable for us alone. Arguments and return as above. */
int folder_without_mps(const char *cache, char **ret_path, char **ret_error);
/**
 * folder_for_builtin() - CACHE/builtin: compiled built-in kernels, which all workers read
 *
 * Only our user may write, so only spare workers store results there; in a private gpuqd all workers do.
 * Arguments and return as above.
 */
int folder_for_builtin(const char *cache, char **ret_path, char **ret_error);

#endif
