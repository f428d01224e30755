/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_COMPOSE_H
#define GPUQ_JOBS_COMPOSE_H

/*
 * Compose
 *
 * Library operations that are several launches of built-in kernels, and a workspace between them. The daemon sees
 * launches and a buffer like any others: it charges, orders and retries them without knowing of the operation.
 */

#include "build.h"

/**
 * compose_enter() - take the lock for a library operation of a job that is not submitted yet
 * @ret_builtin: borrowed, until the connection ends
 *
 * The first call of a client gives up the lock while it waits for the built-in kernels. Return: 0, or a GPUQ_E_
 * without the lock.
 */
int compose_enter(gpuq_job *job, gpuq_module **ret_builtin);

#define COMPOSE_WORKSPACES_MAX 3u

/* What is being appended. */
typedef struct Composition {
        const char *name; /* of the operation, for texts */
        gpuq_job *job;
        gpuq_module *builtin;
        gpuq_buffer *workspaces[COMPOSE_WORKSPACES_MAX]; /* references */
        size_t n_workspaces;
        BuildMark mark;
        int n_launches;
} Composition;

/** compose_begin() - compose_enter(), and the position to roll back to. */
int compose_begin(Composition *composition, const char *name, gpuq_job *job);
/** compose_end() - roll back if @r is an error, and give up the lock. Return: @r, or the number of launches. */
int compose_end(Composition *composition, int r);

/** compose_element() - the size of a number of this type; 0: there are no kernels for it. */
unsigned compose_element(gpuq_type type);
/** compose_suffix() - of kernels that treat signed integers as unsigned ones: "u32", "u64", "f32" or "f64". */
const char *compose_suffix(gpuq_type type);

/** compose_check() - whether @n elements are in a buffer, aligned to @align. @what: the buffer, for texts. */
int compose_check(const Composition *composition, const char *what, const gpuq_buffer *buffer,
                  uint64_t n, unsigned element, unsigned align);
/** compose_side() - the first @n_bytes of a buffer. @name: of the argument, for texts. */
ApartSide compose_side(const char *name, gpuq_buffer *buffer, uint64_t n_bytes);
/** compose_apart() - the operation's two buffers must not overlap. @may_be_same: unless they are the same. */
int compose_apart(Composition *composition, ApartSide a, ApartSide b, bool may_be_same);

/** compose_result() - an argument for a buffer of which @n_bytes are written. */
gpuq_arg compose_result(gpuq_buffer *buffer, uint64_t n_bytes);
/** compose_name() - name a buffer in the job before the workspace, which is the last. */
int compose_name(Composition *composition, gpuq_arg arg);
/**
 * compose_workspace() - scratch memory for the launches, in the memory where @like is
 *
 * @ret_buffer: borrowed until compose_end(); then the launches keep it
 *
 * Before any launch, because it gives up the lock while it asks the daemon for memory.
 */
int compose_workspace(Composition *composition, const gpuq_buffer *like, uint64_t n_bytes,
                      gpuq_buffer **ret_buffer);
/** compose_launch() - append a launch of @blocks blocks of a built-in kernel. */
int compose_launch(Composition *composition, const char *kernel, uint64_t blocks,
                   const gpuq_arg *args, size_t n_args);

#endif
