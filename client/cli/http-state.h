/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_HTTP_STATE_H
#define GPUQ_CLI_HTTP_STATE_H

/*
 * HTTP state
 *
 * What http.c, which listens, and http-serve.c, which serves, share.
 */

#include <signal.h>
#include <sys/stat.h>

#include "http.h"

struct Http {
        int fd;
        int signal_fd;
        sigset_t saved;
        char *address;
        char *path;     /* of the Unix socket; NULL: none */
        struct stat st; /* of that path, when it was made */
        const char *target, *type;
        HttpAnswer answer;
        void *userdata;
};

#endif
