/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TEST_DRIVER_FIXTURE_H
#define GPUQ_TEST_DRIVER_FIXTURE_H

/*
 * A context of the CPU driver with two streams, a pool and the module of
 * kernels.cu. FIXTURE_TEST() makes one for a test, and does so inside of it: cmocka
 * takes the signals of faults at the start of each, and a context takes them back.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/driver.h"

typedef struct Fixture {
        CUcontext context;
        CUstream streams[2];
        CUmemoryPool pool;
        CUmodule module;
} Fixture;

extern Driver *driver;
extern void *image; /* of kernels.cu */

/** fixture_open() - group setup: load the driver and the image. */
int fixture_open(void **state);
/** fixture_close() - group teardown. */
int fixture_close(void **state);
/** fixture_make() - one on another device; it becomes current. */
Fixture *fixture_make(CUdevice device);
/** fixture_unmake() - destroy that. */
void fixture_unmake(Fixture *fixture);

/** fixture_read_file() - whole, with a zero byte after it; the caller frees it. */
void *fixture_read_file(const char *path, size_t *ret_size);
/** fixture_alloc() - memory of the pool, filled from @from unless that is NULL. */
CUdeviceptr fixture_alloc(Fixture *fixture, const void *from, size_t n_bytes);
/** fixture_fetch() - wait for stream 0 and copy out. */
void fixture_fetch(Fixture *fixture, void *to, CUdeviceptr from, size_t n_bytes);
/** fixture_function() - a kernel by name. */
CUfunction fixture_function(Fixture *fixture, const char *name);
/** fixture_launch() - a grid and block of one dimension, in stream @i. */
CUresult fixture_launch(Fixture *fixture, int i, const char *name, unsigned grid, unsigned block,
                        unsigned shared, void **params);

/**
 * fixture_driver_open() - load the driver, without a context of it.
 */
void fixture_driver_open(void);
/**
 * fixture_another_process() - run this program once more, with @fd as its argument,
 * and wait for it. A driver of its own is had only so: a process with threads that
 * forks may do nothing but execute another program.
 *
 * Return: what waitpid() tells of it.
 */
int fixture_another_process(int fd);

/** fixture_run() - run a test with a Fixture on device 0 as its state. */
void fixture_run(void (*test)(void **state));

#define FIXTURE_TEST(name)                                                                         \
        static void name(void **state);                                                            \
        static void name##_run(void **state) {                                                     \
                fixture_run(name);                                                                 \
        }                                                                                          \
        static void name(void **state)
#define TEST(name)                                                                                 \
        { #name, name##_run, NULL, NULL, NULL }

/* The arguments of a launch, by address. */
#define PARAMS(...)  ((void *[]){__VA_ARGS__})
#define assert_ok(r) assert_int_equal((r), CUDA_SUCCESS)

#endif
