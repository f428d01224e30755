/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_FUZZ_LOAN_H
#define GPUQ_FUZZ_LOAN_H

/*
 * Loan
 *
 * A fake client's direct ring: the honest way to a loan of it, and what a hostile client, or a worker of its user, makes
 * of it.
 */

#include <fake.h>

#include "input.h"
#include "proto/direct_ring.h"

/* Zeroed: it was not asked for. */
typedef struct Loan {
        DirectRing ring; /* the client's */
        uint32_t n_prepared;
        bool is_offered; /* and DirectBegin was not said */
} Loan;

/** loan_free() - zeroed afterwards. */
void loan_free(Loan *loan);
/** loan_hear() - a reply to its client; @fd stays the caller's. */
void loan_hear(Loan *loan, const Gpuq__V1__Reply *reply, int fd);
/**
 * loan_go() - fire prepared jobs until the ring is lent, if all goes well
 * @arena: that they change; 0: none
 * @begins: the client answers the offer
 * @settle: all do what they can, jobs in flight end, and the client hears its replies
 */
void loan_go(Loan *loan, FakeClient *client, uint64_t arena, bool begins,
             void (*settle)(void *userdata), void *userdata);
/** loan_request() - open, begin or end. */
void loan_request(FakeClient *client, Gpuq__V1__Request__BodyCase what);
/** loan_fire() - well made entries in the ring, or by messages. */
void loan_fire(Loan *loan, FakeClient *client, unsigned n, bool in_ring);
/** loan_take() - the worker has taken up to so many entries. */
void loan_take(Loan *loan, unsigned n);
/** loan_spoil() - a word of the ring, which is more often one that is read next. */
void loan_spoil(const Loan *loan, const FakeClient *client, Input *input);
/** loan_return() - the worker gives it back, with some jobs; mostly as an honest one would. */
void loan_return(const Loan *loan, const FakeClient *client, FakeWorker *worker, Input *input);
/** loan_count() - the worker tells sums. */
void loan_count(const FakeClient *client, FakeWorker *worker, Input *input);
/** loan_end_jobs() - all that are in flight, as done. Return: whether there were any. */
bool loan_end_jobs(Fake *fake, FakeWorker *worker);
/** loan_check() - every ring is where its session believes it to be, and no job is known that was none. */
void loan_check(const Fake *fake);

#endif
