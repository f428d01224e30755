/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_ATTEND_H
#define GPUQ_CLI_ATTEND_H

/*
 * Attend
 *
 * Runs a job to its end. The first SIGINT, SIGTERM or SIGHUP asks the daemon to cancel the job and
 * goes on waiting for its end. A second one stops waiting. The signals stay blocked until
 * attend_end().
 */

#include <signal.h>

#include <gpuq.h>

typedef struct Attend {
        int fd;     /* a signalfd */
        int signal; /* the one that came, or 0 */
        sigset_t saved;
} Attend;

/** attend_begin() - from now on attend_job() receives the signals. Return: 0 or a negative
 * errno. */
int attend_begin(Attend *attend);
/** attend_job() - wait for a submitted job. Return: 0 once it ended, however; or a negative GPUQ_E_. */
int attend_job(Attend *attend, gpuq_client *client, gpuq_job *job);
/** attend_end() - signals work as before. Harmless after a failed attend_begin(). */
void attend_end(Attend *attend);

#endif
