/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TESTS_CLIENT_FAKE_H
#define GPUQ_TESTS_CLIENT_FAKE_H

/*
 * Fake
 *
 * A daemon in a thread of the test, with a real socket and real arenas, that
 * answers well unless it is told otherwise. Its kernel, "twice", takes an
 * input and an output buffer and a 64-bit count; a job that launches anything
 * writes twice the first word of its first buffer to the first of its last.
 *
 * It may die and be started again at the same place, fake_die(): it then knows its
 * sessions again, and which of their jobs have run.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/gpuq.pb-c.h"
#include "proto/wire.h"

#define FAKE_SESSION 7u /* of the first connection; the next has 8 */
#define FAKE_N_KINDS 13 /* arguments of its other kernel, "other": see fake_kinds[] */

typedef struct Fake Fake;

typedef struct FakeCounts {
        unsigned n_hellos, n_arenas, n_images, n_opens, n_closes, n_loads, n_unloads;
        unsigned n_resumed,
                n_runs; /* sessions that said all again; jobs that were run, each once */
        unsigned n_unprepares, n_asked; /* asked: for what it keeps to itself */
        unsigned n_submits, n_jobs, n_words, n_waits, n_discards, n_cancels,
                n_ends; /* ends: connections that the client closed */
        uint32_t last_tag;
        uint64_t last_arena_size;
        uint64_t arena_bytes; /* created and not closed */
        int image_seals;      /* of the last image */
        size_t image_length;
} FakeCounts;

typedef struct FakeManners {
        unsigned version; /* what it says it speaks; 1 */
        int hello_code;   /* if not 0: answer Hello with this error */
        const char *hello_text;
        bool hello_hang_up;      /* close instead of answering */
        unsigned n_hello_deaths; /* so many times */
        bool hello_hold;         /* do not answer it yet */
        int resume_code;         /* if not 0: answer Hello with this error if it names a session */
        bool forgetful;          /* it knows no session again */
        bool busy;               /* accept nobody, with hardly any room to wait */
        bool arena_hold;         /* ArenaCreate is not answered */
        bool load_hold;          /* nor ModuleLoad */
        bool discard_hold;       /* nor Discard, which else finds nothing */
        bool hold;               /* keep jobs until fake_complete() */
        bool deaf;               /* read nothing */
        unsigned poll_us;        /* clients may spin so long; they name words then */
        bool words;              /* store them when a job comes, held or not */
        Gpuq__V1__Code job_code; /* if not 0: jobs fail with it */
        Gpuq__V1__Code arena_code; /* if not 0: arenas are refused with it */
        uint64_t arena_bytes_max;  /* if not 0: what would be more is over the quota */
} FakeManners;

/** fake_new() - listening; aborts the test on failure. */
Fake *fake_new(void);
void fake_free(Fake *fake);
const char *fake_path(const Fake *fake);

/** fake_set() - how it behaves from now on. */
void fake_set(Fake *fake, FakeManners manners);
/** fake_counts() - so far. */
FakeCounts fake_counts(Fake *fake);
/** fake_await() - until @field, a member of its FakeCounts, is at least @n. */
#define fake_await(fake, field, n) fake_await_at(fake, offsetof(FakeCounts, field), n)
void fake_await_at(Fake *fake, size_t offset, unsigned n);
/** fake_last_job() - as it came; free with gpuq__v1__job__free_unpacked(). */
Gpuq__V1__Job *fake_last_job(Fake *fake);

/** fake_complete() - end the jobs it holds, all in one message. Return: how many. */
unsigned fake_complete(Fake *fake);
/** fake_send() - a reply to the client that connected last. */
void fake_send(Fake *fake, Gpuq__V1__Reply *reply);
/** fake_send_bytes() - the same, as they are. */
void fake_send_bytes(Fake *fake, const void *bytes, size_t n_bytes);
/** fake_die() - end all connections and be another daemon. @ends: the jobs that it holds end untold. */
void fake_die(Fake *fake, bool ends);
/** fake_heard() - what the last client to come said since, in short; the caller's. */
char *fake_heard(Fake *fake);
/** fake_hang_up() - close all connections, and take no more. */
void fake_hang_up(Fake *fake);

#endif
