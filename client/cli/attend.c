/* SPDX-License-Identifier: Apache-2.0 */
#include "attend.h"

#include <poll.h>
#include <sys/signalfd.h>

#include "util/macro.h"

int attend_begin(Attend *attend) {
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
        sigset_t set;

        *attend = (Attend){.fd = -1};
        sigemptyset(&set);
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                sigaddset(&set, signals[i]);

        attend->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (attend->fd < 0)
                return -errno;
        sigprocmask(SIG_BLOCK, &set, &attend->saved);
        return 0;
}

/* Return: 1 to stop waiting. */
static int attend_signal(Attend *attend, gpuq_job *job) {
        struct signalfd_siginfo info;

        if (read(attend->fd, &info, sizeof(info)) != sizeof(info))
                return 0;
        if (attend->signal)
                return 1;

        attend->signal = (int)info.ssi_signo;
        return gpuq_cancel(job) < 0;
}

int attend_job(Attend *attend, gpuq_client *client, gpuq_job *job) {
        struct pollfd polls[2] = {{.fd = attend->fd, .events = POLLIN}};
        int r;

        while ((r = gpuq_poll(job)) == 0) {
                r = gpuq_client_events(client);
                if (r < 0)
                        return r;
                polls[1] = (struct pollfd){.fd = gpuq_client_fd(client), .events = (short)r};
                if (poll(polls, ARRAY_SIZE(polls), -1) < 0 && errno != EINTR)
                        return GPUQ_E_SYSTEM;

                if (polls[0].revents && attend_signal(attend, job))
                        return GPUQ_E_CANCELLED;
                r = gpuq_dispatch(client, 0);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : 0;
}

void attend_end(Attend *attend) {
        if (attend->fd < 0)
                return;
        close(TAKE_FD(attend->fd));
        sigprocmask(SIG_SETMASK, &attend->saved, NULL);
}
