/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_RUN_OPTIONS_H
#define GPUQ_CLI_RUN_OPTIONS_H

/*
 * The command line of `gpuq run`, read and checked, no file touched.
 */

#include <gpuq.h>

#include "argument.h"
#include "verb.h"

typedef struct RunOptions {
        gpuq_config config; /* grid[0], block[0] 0: not given */
        int priority;
        int device;          /* -1: the daemon's choice */
        uint32_t timeout_ms; /* 0: the daemon's default */
        const char *label;   /* NULL: none */
        bool quiet;
        bool detach;
        bool check;
        char **compiler; /* options for the compiler; ends with NULL */
        size_t n_compiler;
        bool is_library;    /* the kernel is a library operation */
        char *file;         /* NULL: built-in, or such an operation */
        const char *kernel; /* borrowed */
        Argument *arguments;
        size_t n_arguments;
} RunOptions;

extern const struct option run_option_table[];
extern const char run_option_shorts[];
extern const char run_option_help[];

/** run_options_read() - Return: 0; -1 to end with cli->code; or an exit code with the problem set. */
int run_options_read(Cli *cli, int argc, char **argv, RunOptions *options);
/** run_options_clear() - free what it owns; also after a failed run_options_read(). */
void run_options_clear(RunOptions *options);
/** run_options_format() - of the file, by its ending. */
gpuq_format run_options_format(const RunOptions *options);
/** run_options_add_folder() - that of the file, for what it includes. Return: 0 or an exit code. */
int run_options_add_folder(Cli *cli, RunOptions *options);
/** run_options_module_name() - the same as run_options_source(), or its end. */
const char *run_options_module_name(const RunOptions *options);
/** run_options_source() - what messages call the module: the file or "builtin". */
const char *run_options_source(const RunOptions *options);

#endif
