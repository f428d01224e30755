/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_ASSIGNMENT_H
#define GPUQ_UTIL_ASSIGNMENT_H

/*
 * Assignment
 *
 * A spare worker has its CUDA context before its user is known. The keeper then sends it one
 * assignment, over a socket that only these two have: who it becomes, and where its cache is. The
 * supervisor, which is not trusted, chooses only the uid.
 */

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define ASSIGNMENT_FD         6 /* of a spare worker, behind its channel */
#define ASSIGNMENT_GROUPS_MAX 64

typedef struct Assignment {
        bool changes_user; /* false: a private gpuqd's worker stays who it is */
        uid_t uid;
        gid_t gid;
        int n_groups;
        gid_t groups[ASSIGNMENT_GROUPS_MAX];
        char cache[PATH_MAX]; /* the folder of compiled modules; "": none */
} Assignment;

/** assignment_pair() - @ret_fds: for the keeper and for the spare. Return: 0 or a negative errno. */
int assignment_pair(int ret_fds[static 2]);
/** assignment_send() - does not wait. Return: 0 or a negative errno. */
int assignment_send(int fd, const Assignment *assignment);
/** assignment_receive() - does not wait. Return: 0 or a negative errno; -EPIPE: the keeper will send none. */
int assignment_receive(int fd, Assignment *ret_assignment);

#endif
