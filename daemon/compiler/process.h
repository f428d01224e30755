/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_PROCESS_H
#define GPUQ_COMPILER_PROCESS_H

/*
 * Process
 *
 * Runs a compiler program to its end and collects its output as text. The program gets a small
 * environment and only its standard descriptors, and ends with this process.
 */

#include "compiler/request.h"

/** process_find() - the first of @names that PATH has. @ret_path: the caller's. Return: 0, -ENOENT, or -ENOMEM. */
int process_find(const char *const *names, char **ret_path);
/**
 * process_run() - run and wait
 * @argv:       argv[0] is a path; NULL-terminated
 * @ret_output: stdout and stderr, bounded; the caller's string
 *
 * Return: its exit status, 128 + the signal that ended it, or a negative errno.
 */
int process_run(const Request *request, const char *const *argv, char **ret_output);

#endif
