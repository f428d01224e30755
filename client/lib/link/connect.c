/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connect
 */

#include "connect.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "util/macro.h"

/* Return: 0, or a negative errno. */
static int connect_bind(int fd, const char *path) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, path);

        do
                r = connect(fd, (struct sockaddr *)&address, sizeof(address));
        while (r < 0 && errno == EINTR);
        return r < 0 ? -errno : 0;
}

/*
 * The connect blocks if it may. A non-blocking connect fails at once when many processes start
 * together and the listener's backlog is full for a moment.
 */
int connect_open(const char *path, unsigned wait_ms, int *ret_fd) {
        struct timeval timeout = {.tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000};
        _cleanup_(closep) int fd = -1;
        int r;

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (wait_ms ? 0 : SOCK_NONBLOCK), 0);
        if (fd < 0)
                return -errno;
        if (wait_ms)
                setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));

        r = connect_bind(fd, path);
        if (r < 0)
                return r;
        if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                return -errno;

        *ret_fd = TAKE_FD(fd);
        return 0;
}

/* The name of the program, for `gpuq status`: short and printable. */
static void connect_name(char name[static CONNECT_NAME_MAX + 1]) {
        snprintf(name, CONNECT_NAME_MAX + 1, "%s", program_invocation_short_name);
        for (char *p = name; *p; p++)
                if (*p < ' ' || *p > '~')
                        *p = '?';
}

static bool connect_waits_for_device(void) {
        const char *wait = getenv("GPUQ_WAIT_FOR_DEVICE");

        return wait && strcmp(wait, "1") == 0;
}

void connect_fill_hello(Gpuq__V1__Hello *hello, char name[static CONNECT_NAME_MAX + 1]) {
        connect_name(name);
        hello->version_min = hello->version_max = CONNECT_VERSION;
        hello->client = name;
        hello->waits_for_device = connect_waits_for_device();
}
