/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_FUZZ_FAKE_DEVICE_H
#define GPUQ_FUZZ_FAKE_DEVICE_H

/*
 * Fake device
 *
 * What a runner (worker/runner.h) issues, without a driver: a batch lies on its stream until the run says that it ends,
 * and never ends before what it must follow. The functions of the worker that would ask the driver are replaced, as
 * meson.build says. The first byte of a job's operations says how it behaves.
 */

#include "worker/runner.h"

enum {
        MANNER_JOINS = 1,   /* several of its kind are one batch */
        MANNER_REFUSED = 2, /* its check fails */
        MANNER_FAILS = 4,   /* once it has run */
        MANNER_PRINTS = 8,
};

/* What the next issue of a batch comes to. */
typedef enum Trouble {
        TROUBLE_NONE,
        TROUBLE_REFUSED,
        TROUBLE_WAIT,  /* until something has ended */
        TROUBLE_FAULT, /* of the context */
        _TROUBLE_N,
} Trouble;

typedef struct FakeDevice {
        Context context;
        Streams streams;
        Trouble trouble;
        void (*on_issue)(const Job *job);
        void (*on_done)(const Job *job); /* its work is done; the worker does not know yet */
} FakeDevice;

/** fake_device_init() - there is one at a time. @on_issue, @on_done: never NULL. */
void fake_device_init(FakeDevice *device, void (*on_issue)(const Job *),
                      void (*on_done)(const Job *));
/** fake_device_end() - the batch's work is done, and before it all that it follows. */
void fake_device_end(const Runner *runner, const Batch *batch);
/** fake_device_end_all() - of all batches in flight. */
void fake_device_end_all(const Runner *runner);

#endif
