/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Liar
 *
 * What a user makes of a worker of their own: a forged kernel of the CPU driver
 * (image.c) calls lie() in the worker, which holds all other threads and speaks
 * for the worker.
 *
 *     failed    the device has failed, in words with escape bytes
 *     memory    the device has no memory
 *     flood     messages without end, a MiB of text in some of them
 *     bells     rings without a message
 *     silent    never reads nor writes again
 *     stray     leaves children in sessions of their own, then ends
 */

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpuq.pb-c.h"
#include "proto/ring.h"
#include "util/channel.h"
#include "worker/protocol.h"

#define BELL     4 /* the worker's number of its end */
#define N_FLOOD  64u
#define N_TEXT   (1u << 20)
#define N_STRAYS 8u
#define LIMIT_S  60u

void lie(const char *what);

/* ---- the worker's end of the channel --------------------------------------------- */

/* The second of the two rings in the memory that the supervisor shares. */
static bool find_ring(Ring *ring) {
        FILE *maps = fopen("/proc/self/maps", "re");
        unsigned long begin, end;
        bool is_found = false;
        char line[512];

        while (maps && !is_found && fgets(line, sizeof(line), maps))
                is_found = strstr(line, "memfd:gpuq-channel") &&
                           sscanf(line, "%lx-%lx", &begin, &end) == 2;
        if (maps)
                fclose(maps);
        if (is_found)
                ring_init(ring, (char *)begin + (end - begin) / 2, CHANNEL_CAPACITY, RING_PRODUCER);
        return is_found;
}

static bool ring_bell(void) {
        return send(BELL, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

static void say(Ring *ring, WorkerHead head, const char *text, const char *more) {
        static _Alignas(8) char data[sizeof(head) + 2 * N_TEXT];
        size_t n = sizeof(head);
        int r;

        head.n_text = text ? (uint32_t)strlen(text) + 1 : 0;
        head.n_more = more ? (uint32_t)strlen(more) + 1 : 0;
        memcpy(data, &head, sizeof(head));
        if (text)
                memcpy(data + n, text, head.n_text);
        n += head.n_text;
        if (more)
                memcpy(data + n, more, head.n_more);
        n = WORKER_ALIGN(n + head.n_more);
        while ((r = ring_write(ring, data, (uint32_t)n)) == RING_E_AGAIN)
                usleep(100);
        ring_bell();
}

/* ---- all other threads -------------------------------------------------------------- */

static void on_hold(int number) {
        for (;;)
                pause();
}

static void hold_others(void) {
        struct sigaction action = {.sa_handler = on_hold};
        DIR *threads = opendir("/proc/self/task");
        struct dirent *entry;

        sigaction(SIGUSR2, &action, NULL);
        while (threads && (entry = readdir(threads)))
                if (atoi(entry->d_name) > 0 && atoi(entry->d_name) != gettid())
                        syscall(SYS_tgkill, getpid(), atoi(entry->d_name), SIGUSR2);
        if (threads)
                closedir(threads);
}

/* ---- lies ---------------------------------------------------------------------------- */

static void say_stopped(Ring *ring, uint32_t code, uint32_t failed, const char *text) {
        say(ring, (WorkerHead){.kind = FROM_WORKER_STOPPED, .code = code, .detail = failed}, text,
            NULL);
        usleep(10000);
        _exit(1);
}

static void flood(Ring *ring) {
        static char text[N_TEXT];

        memset(text, 'x', sizeof(text) - 1);
        for (;;) {
                for (unsigned i = 0; i < N_FLOOD; i++)
                        say(ring,
                            (WorkerHead){.kind = i % 2 ? FROM_WORKER_STATS : FROM_WORKER_LATE,
                                         .id = 1},
                            NULL, NULL);
                say(ring, (WorkerHead){.kind = FROM_WORKER_STATS}, NULL, text);
        }
}

static void leave_strays(void) {
        for (unsigned i = 0; i < N_STRAYS; i++)
                if (fork() == 0) {
                        setsid();
                        alarm(LIMIT_S);
                        for (;;)
                                pause();
                }
        _exit(1);
}

__attribute__((visibility("default"))) void lie(const char *what) {
        Ring ring;

        alarm(LIMIT_S); /* whatever becomes of the daemon */
        if (strcmp(what, "stray") == 0)
                leave_strays();
        hold_others();
        if (!find_ring(&ring))
                _exit(2);
        if (strcmp(what, "failed") == 0)
                say_stopped(&ring, GPUQ__V1__CODE__E_FAULT, 1,
                            "\033[2J\033[31mCUDA_ERROR_ECC_UNCORRECTABLE \xe2\x80\xae\xc2\x9b lie");
        if (strcmp(what, "memory") == 0)
                say_stopped(&ring, GPUQ__V1__CODE__E_MEMORY, 0, "CUDA_ERROR_OUT_OF_MEMORY");
        if (strcmp(what, "flood") == 0)
                flood(&ring);
        while (strcmp(what, "bells") == 0)
                if (!ring_bell())
                        usleep(10);
        for (;;)
                pause();
}
