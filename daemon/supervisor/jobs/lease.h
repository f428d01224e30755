/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_LEASE_H
#define GPUQ_SUPERVISOR_LEASE_H

/*
 * Lease
 *
 * A submitter whose prepared jobs a worker takes by itself, from a direct ring (proto/direct_ring.h). The worker gets a
 * template of each, which keeps arenas and modules alive, and reports sums of what it did. That is so only while nothing
 * has to be decided: the device has no work of other domains, the worker no long job, the user no job of a higher
 * priority that waits, and the submitter no other job.
 *
 * When the lease is recalled, the worker stops taking jobs. Those that it has taken and that are not done become
 * ordinary RUNNING jobs, by lease_adopt(), and from then on all is as without a lease.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "executor.h"
#include "job.h"
#include "submitter.h"

#define LEASE_TEMPLATES_MAX 64u
#define LEASE_BUFFERS_MAX   16u        /* of one template */
#define LEASE_SHORT_NS      1000000ull /* jobs that are expected to take longer are not leased */

typedef struct Lease Lease;

typedef struct LeaseTemplate {
        Job *job; /* it never enters a table */
        JobTexts texts;
        uint64_t n_moved;
        uint32_t prepared; /* its number */
        uint32_t after
                [LEASE_TEMPLATES_MAX]; /* those whose buffers overlap with its own, itself included */
        unsigned n_after;
} LeaseTemplate;

/* A job that the worker has taken. */
typedef struct LeaseTaken {
        uint32_t tag, prepared;
} LeaseTaken;

/* What its owner is told. */
typedef struct LeaseOps {
        /** returned() - the worker takes no more, and has these jobs: adopt them. n_taken and last_tag say how far it came. */
        void (*returned)(Lease *lease, Executor *executor, const LeaseTaken *jobs, size_t n_jobs);
        /** lost() - the worker has ended without saying that. */
        void (*lost)(Lease *lease, Executor *executor);
} LeaseOps;

/* Zeroed but for its owner's fields: it is not out and has no templates. */
struct Lease {
        const LeaseOps *ops;
        Submitter *submitter;
        int ring_fd, bell_fd; /* for the worker */
        uint32_t n_taken;     /* entries, modulo 2^32, before it goes out and when it is returned */
        uint32_t last_tag;    /* likewise of jobs: the next one's is higher */

        Device *device;          /* where it may be; NULL: that was not chosen yet */
        Executor *executor;      /* while it is out */
        TAILQ_ENTRY(Lease) link; /* executor->leases */
        LeaseTemplate templates[LEASE_TEMPLATES_MAX];
        unsigned n_templates;
        int priority;         /* the lowest of its templates */
        uint64_t used_ns;     /* a job of it was done, or it began */
        uint64_t recalled_ns; /* 0: it was not */
};

/**
 * lease_add() - a template of the prepared job that @spec describes
 *
 * Return: false: such a job is not leased. The worker returns the lease when it comes to one without a template.
 */
bool lease_add(Lease *lease, uint32_t prepared, const JobSpec *spec);
/** lease_clear() - it has no templates any more; not while it is out. */
void lease_clear(Lease *lease);
/** lease_is_possible() - whether a worker of the submitter's user could have one now; cheap. */
bool lease_is_possible(const Submitter *submitter);
/** lease_n_jobs() - the most jobs that its worker may have at once, so that others do not wait for them for long. */
uint64_t lease_n_jobs(const Lease *lease);
/**
 * lease_choose() - the worker that could have it now; templates that are not short now, or whose modules it has not, are
 * dropped
 *
 * Once a device is chosen it stays, until lease_clear().
 *
 * Return: NULL: none.
 */
Executor *lease_choose(Lease *lease);
/** lease_begin() - give it to that worker. Return: 0, or -ENOMEM. */
int lease_begin(Lease *lease, Executor *executor);
/** lease_recall() - ask for it back; repeating it is harmless. */
void lease_recall(Lease *lease);
/** lease_drop() - at the end of the program: forget it, wherever it is. */
void lease_drop(Lease *lease);
/** lease_adopt() - a job that the worker has taken and that is not done. Return: 0, or -ENOMEM. */
int lease_adopt(Lease *lease, Executor *executor, uint32_t prepared, uint32_t tag);

/** lease_find() - one that the executor has, by its submitter. Return: NULL: it has none. */
Lease *lease_find(const Executor *executor, uint32_t submitter);
/** lease_returned() - the executor gave it back, and has these jobs, whose tags may not rise as they should. */
void lease_returned(Lease *lease, const LeaseTaken *jobs, size_t n_jobs);
/**
 * lease_count() - jobs of one prepared job were done
 * @waited_us, @ran_us: sums
 * @busy_ns: of the device, for one of them
 *
 * Return: false: the lease has no such template.
 */
bool lease_count(Lease *lease, uint32_t prepared, uint64_t n, uint64_t waited_us, uint64_t ran_us,
                 uint64_t busy_ns);
/** leases_pay() - the users of the executor's leases pay for the time in which their jobs ran, as the worker says. */
void leases_pay(Executor *executor, uint64_t busy_ns);
/** leases_lost() - the executor's process has ended: its jobs in flight are adopted, before their recovery. */
void leases_lost(Executor *executor);
/** lease_holds() - whether one that is out may stay there; ask once a turn. */
bool lease_holds(const Lease *lease);
/** leases_oldest_ns() - since when the executor has owed one that was recalled; 0: it owes none. */
uint64_t leases_oldest_ns(const Executor *executor);

#endif
