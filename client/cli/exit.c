/* SPDX-License-Identifier: Apache-2.0 */
#include "exit.h"

#include "util/macro.h"

typedef struct ExitRule {
        int error;
        ExitCode code[3]; /* by ExitWhen */
} ExitRule;

/* Other errors are EXIT_JOB_FAILED. */
static const ExitRule rules[] = {
        {GPUQ_E_CONNECT, {EXIT_NO_DAEMON, EXIT_NO_DAEMON, EXIT_NO_DAEMON}},
        {GPUQ_E_CLOSED, {EXIT_NO_DAEMON, EXIT_NO_DAEMON, EXIT_NO_DAEMON}},
        {GPUQ_E_VERSION, {EXIT_NO_DAEMON, EXIT_NO_DAEMON, EXIT_NO_DAEMON}},
        {GPUQ_E_SHUTDOWN, {EXIT_NO_DAEMON, EXIT_NO_DAEMON, EXIT_NO_DAEMON}},
        {GPUQ_E_DENIED, {EXIT_DENIED, EXIT_DENIED, EXIT_DENIED}},
        {GPUQ_E_QUOTA, {EXIT_DENIED, EXIT_DENIED, EXIT_DENIED}},
        {GPUQ_E_TIMEOUT, {EXIT_TIMEOUT, EXIT_TIMEOUT, EXIT_TIMEOUT}},
        /* A wrong kernel name, device or argument is a mistake in this command line, or in an
         * earlier one. */
        {GPUQ_E_NOT_FOUND, {EXIT_NO_JOB, EXIT_USAGE, EXIT_JOB_FAILED}},
        {GPUQ_E_INVALID, {EXIT_USAGE, EXIT_USAGE, EXIT_JOB_FAILED}},
};

ExitCode exit_code(ExitWhen when, int error) {
        if (error >= 0)
                return EXIT_OK;

        for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
                if (rules[i].error == error)
                        return rules[i].code[when];
        return EXIT_JOB_FAILED;
}
