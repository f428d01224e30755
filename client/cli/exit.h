/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_EXIT_H
#define GPUQ_CLI_EXIT_H

/*
 * Exit codes
 *
 * What gpuq tells a script. gpuq(1) promises these numbers.
 */

#include <gpuq.h>

typedef enum ExitCode {
        EXIT_OK = 0,
        EXIT_JOB_FAILED = 1, /* and every failure that has no number of its own */
        EXIT_USAGE = 2,
        EXIT_NO_DAEMON = 3,
        EXIT_NO_JOB = 4,
        EXIT_DENIED = 5,    /* or over quota */
        EXIT_TIMEOUT = 124, /* of the job */
        EXIT_SIGNAL = 128,  /* plus the signal's number */
} ExitCode;

/* The same error means different things at different times. */
typedef enum ExitWhen {
        EXIT_WHEN_ASKED,  /* a request about the daemon or its jobs */
        EXIT_WHEN_RUN,    /* a job that this command line describes */
        EXIT_WHEN_WAITED, /* how a job ended that somebody else described */
} ExitWhen;

/** exit_code() - of a GPUQ_E_ code; EXIT_OK for 0 and above. */
ExitCode exit_code(ExitWhen when, int error);

#endif
