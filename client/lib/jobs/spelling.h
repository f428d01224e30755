/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_SPELLING_H
#define GPUQ_JOBS_SPELLING_H

/*
 * Spelling
 *
 * nvcc and NVRTC take a compiler option in several spellings: "-DN=1", "-D" "N=1", "--define-macro=N=1".
 * The daemon knows one of each, in one word.
 */

/**
 * spelling_take() - the next option
 * @options: NULL-terminated, not empty; moves behind the one or two words that are taken
 * @ret_option: the caller's string
 *
 * Return: 0, GPUQ_E_INVALID if its value is missing, or GPUQ_E_SYSTEM.
 */
int spelling_take(const char *const **options, char **ret_option);

#endif
