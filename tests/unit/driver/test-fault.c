/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of the CPU driver that go wrong, and what they print.
 */
#include "fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Take what is written to a descriptor; give it back by capture_end(). */
typedef struct Capture {
        int fd, kept, file;
        char text[4096];
} Capture;

static void capture_start(Capture *capture, int fd) {
        fflush(stdout);
        capture->fd = fd;
        capture->kept = dup(fd);
        capture->file = memfd_create("capture", MFD_CLOEXEC);
        dup2(capture->file, fd);
}

static void capture_end(Capture *capture) {
        ssize_t n;

        fflush(stdout);
        dup2(capture->kept, capture->fd);
        n = pread(capture->file, capture->text, sizeof(capture->text) - 1, 0);
        capture->text[n] = 0;
        close(capture->kept);
        close(capture->file);
}

static void assert_all_calls_give(Fixture *fixture, CUresult error) {
        CUdeviceptr pointer;
        CUstream stream;
        CUevent event;
        size_t n;

        assert_int_equal(driver->cuStreamSynchronize(fixture->streams[0]), error);
        assert_int_equal(driver->cuStreamQuery(fixture->streams[1]), error);
        assert_int_equal(driver->cuCtxSynchronize(), error);
        assert_int_equal(driver->cuMemGetInfo(&n, &n), error);
        assert_int_equal(driver->cuStreamCreateWithPriority(&stream, 0, 0), error);
        assert_int_equal(driver->cuEventCreate(&event, 0), error);
        assert_int_equal(
                driver->cuMemAllocFromPoolAsync(&pointer, 4, fixture->pool, fixture->streams[0]),
                error);
        assert_int_equal(driver->cuModuleUnload(fixture->module), error);
}

FIXTURE_TEST(a_store_out_of_bounds_ends_the_context) {
        Fixture *fixture = *state;
        CUdeviceptr a = fixture_alloc(fixture, NULL, 4096);
        long long index = 1ll << 36;
        int value = 1;

        assert_ok(fixture_launch(fixture, 0, "store", 1, 1, 0, PARAMS(&a, &index, &value)));
        assert_all_calls_give(fixture, CUDA_ERROR_ILLEGAL_ADDRESS);
}

FIXTURE_TEST(a_store_just_past_an_allocation_faults) {
        Fixture *fixture = *state;
        CUdeviceptr a = fixture_alloc(fixture, NULL, 1000 * sizeof(int));
        long long index = 1024;
        int value = 1;

        assert_ok(fixture_launch(fixture, 0, "store", 1, 1, 0, PARAMS(&a, &index, &value)));
        assert_all_calls_give(fixture, CUDA_ERROR_ILLEGAL_ADDRESS);
}

FIXTURE_TEST(a_null_pointer_between_barriers_faults) {
        Fixture *fixture = *state;
        CUdeviceptr a = 0;
        long long index = 0;
        int value = 1;

        assert_ok(fixture_launch(fixture, 0, "store_behind_barrier", 4, 256, 0,
                                 PARAMS(&a, &index, &value)));
        assert_all_calls_give(fixture, CUDA_ERROR_ILLEGAL_ADDRESS);
}

FIXTURE_TEST(a_trap_is_a_launch_failure) {
        Fixture *fixture = *state;

        assert_ok(fixture_launch(fixture, 0, "trap", 1, 32, 0, NULL));
        assert_all_calls_give(fixture, CUDA_ERROR_LAUNCH_FAILED);
}

FIXTURE_TEST(a_failed_assertion_says_where) {
        Fixture *fixture = *state;
        Capture capture;
        int limit = 5;

        capture_start(&capture, STDERR_FILENO);
        assert_ok(fixture_launch(fixture, 0, "asserts", 1, 6, 0, PARAMS(&limit)));
        assert_int_equal(driver->cuStreamSynchronize(fixture->streams[0]), CUDA_ERROR_ASSERT);
        capture_end(&capture);
        assert_non_null(strstr(capture.text, "kernels.cu:"));
        assert_non_null(strstr(capture.text, ": block: [0,0,0], thread: [5,0,0] Assertion "
                                             "`(int)threadIdx.x < limit` failed.\n"));
        assert_all_calls_give(fixture, CUDA_ERROR_ASSERT);
}

static void masks_fail(Fixture *fixture, int which, unsigned n_threads, const char *text) {
        Capture capture;

        capture_start(&capture, STDERR_FILENO);
        assert_ok(fixture_launch(fixture, 0, "masks_do_not_meet", 1, n_threads, 0, PARAMS(&which)));
        assert_int_equal(driver->cuStreamSynchronize(fixture->streams[0]),
                         CUDA_ERROR_LAUNCH_FAILED);
        capture_end(&capture);
        assert_string_equal(capture.text, text);
        assert_all_calls_give(fixture, CUDA_ERROR_LAUNCH_FAILED);
}

/* It hung, or gave the values of one group to the other. */
FIXTURE_TEST(masks_that_wait_for_each_other_are_a_fault) {
        masks_fail(*state, 0, 3,
                   "block: [0,0,0], warp 0: lanes 0x00000001 wait in a shuffle with mask "
                   "0x00000003 for lanes 0x00000002, but lane 1 waits in a shuffle with mask "
                   "0x00000007: none of them can go on. A mask must name exactly the lanes that "
                   "make this call.\n");
}

/* It hung. */
FIXTURE_TEST(a_mask_of_lanes_that_wait_at_a_barrier_is_a_fault) {
        masks_fail(*state, 1, 64,
                   "block: [0,0,0], warp 0: lanes 0x0000ffff wait in __syncwarp() with mask "
                   "0xffffffff for lanes 0xffff0000, but lane 16 waits at a barrier: none of them "
                   "can go on. A mask must name exactly the lanes that make this call.\n");
}

/* It stood for the caller too. */
FIXTURE_TEST(a_mask_without_its_caller_is_a_fault) {
        masks_fail(*state, 2, 2,
                   "block: [0,0,0], thread: [1,0,0], lane 1 of its warp: it calls a warp function "
                   "with mask 0x00000001, which must contain the lane itself.\n");
}

/* All got what the function of the last one gives. */
FIXTURE_TEST(different_functions_under_one_mask_are_a_fault) {
        masks_fail(*state, 3, 2,
                   "block: [0,0,0], warp 0: with mask 0x00000003, lane 1 calls a shuffle but lanes "
                   "0x00000001 call a vote; all lanes of a mask must call the same function.\n");
}

/* The stream's later work is dropped, flags and copies alike. */
FIXTURE_TEST(nothing_is_done_after_a_fault) {
        Fixture *fixture = *state;
        CUdeviceptr a = fixture_alloc(fixture, NULL, 4096), null = 0, word;
        static _Alignas(4096) uint32_t flags[1024];
        long long index = 0;
        int value = 1;

        memset(flags, 0, sizeof(flags));
        assert_ok(driver->cuMemHostRegister(flags, sizeof(flags), 0));
        assert_ok(driver->cuMemHostGetDevicePointer(&word, flags, 0));
        assert_ok(driver->cuStreamWaitValue32(fixture->streams[0], word + 8, 1, 0));
        assert_ok(fixture_launch(fixture, 0, "store", 1, 1, 0, PARAMS(&null, &index, &value)));
        assert_ok(driver->cuStreamWriteValue32(fixture->streams[0], word, 1, 0));
        assert_ok(driver->cuMemsetD8Async(a, 1, 4096, fixture->streams[0]));
        assert_ok(driver->cuMemcpyDtoHAsync(flags + 16, a, 4, fixture->streams[0]));
        __atomic_store_n(&flags[2], 1, __ATOMIC_RELEASE);
        assert_all_calls_give(fixture, CUDA_ERROR_ILLEGAL_ADDRESS);

        fixture_unmake(fixture);
        assert_int_equal(flags[0], 0);
        assert_int_equal(flags[16], 0);
        *state = fixture_make(0);
        assert_ok(driver->cuMemHostUnregister(flags));
}

/* What runs beside a fault is ended too: a kernel on the other stream would never end. */
FIXTURE_TEST(a_fault_ends_kernels_on_other_streams) {
        Fixture *fixture = *state;

        assert_ok(fixture_launch(fixture, 1, "spin", 8, 64, 0, NULL));
        assert_ok(fixture_launch(fixture, 0, "trap", 1, 32, 0, NULL));
        assert_all_calls_give(fixture, CUDA_ERROR_LAUNCH_FAILED);
}

FIXTURE_TEST(destroying_a_context_ends_its_kernels) {
        Fixture *fixture = *state;

        assert_ok(fixture_launch(fixture, 0, "spin", 8, 64, 0, NULL));
        assert_ok(fixture_launch(fixture, 1, "spin", 1, 1, 0, NULL));
        assert_int_equal(driver->cuStreamQuery(fixture->streams[0]), CUDA_ERROR_NOT_READY);
}

FIXTURE_TEST(a_fault_leaves_the_other_device_alone) {
        Fixture *fixture = *state, *other = fixture_make(1);
        CUdeviceptr counters = fixture_alloc(other, NULL, 256), null = 0;
        int n = 0, one = 1;
        long long index = 0;

        for (int i = 0; i < 20; i++) {
                assert_ok(fixture_launch(other, 0, "leave_early", 1, 64, 0, PARAMS(&counters)));
                if (i != 10)
                        continue;
                assert_ok(driver->cuCtxSetCurrent(fixture->context));
                assert_ok(
                        fixture_launch(fixture, 0, "store", 1, 1, 0, PARAMS(&null, &index, &one)));
                assert_all_calls_give(fixture, CUDA_ERROR_ILLEGAL_ADDRESS);
                assert_ok(driver->cuCtxSetCurrent(other->context));
        }
        fixture_fetch(other, &n, counters + 4, sizeof(n));
        assert_int_equal(n, 42);
        fixture_unmake(other);
}

/* The machine the driver runs on can take many. */
FIXTURE_TEST(contexts_come_and_go_after_faults) {
        CUdeviceptr null = 0;
        long long index = 5;
        Fixture *fixture;
        int value = 1;

        for (int i = 0; i < 20; i++) {
                fixture = fixture_make(i % 2);
                assert_ok(fixture_launch(fixture, 0, "store_behind_barrier", 8, 128, 0,
                                         PARAMS(&null, &index, &value)));
                assert_int_equal(driver->cuStreamSynchronize(fixture->streams[0]),
                                 CUDA_ERROR_ILLEGAL_ADDRESS);
                fixture_unmake(fixture);
        }
}

FIXTURE_TEST(text_is_printed_when_the_stream_is_synchronised) {
        Fixture *fixture = *state;
        Capture capture;
        int n = 3;

        capture_start(&capture, STDOUT_FILENO);
        assert_ok(fixture_launch(fixture, 0, "hello", 1, 2, 0, PARAMS(&n)));
        while (driver->cuStreamQuery(fixture->streams[0]) == CUDA_ERROR_NOT_READY)
                ;
        assert_int_equal(lseek(capture.file, 0, SEEK_END), 0);
        assert_ok(driver->cuStreamSynchronize(fixture->streams[0]));
        capture_end(&capture);
        assert_string_equal(capture.text, "hello 0 of four, 0.75\nhello 1 of four, 0.75\n");
}

FIXTURE_TEST(the_oldest_text_is_lost_when_there_is_too_much) {
        Fixture *fixture = *state;
        Capture capture;
        int n = 3;

        assert_ok(driver->cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 44));
        capture_start(&capture, STDOUT_FILENO);
        assert_ok(fixture_launch(fixture, 0, "hello", 1, 9, 0, PARAMS(&n)));
        assert_ok(driver->cuCtxSynchronize());
        capture_end(&capture);
        assert_string_equal(capture.text, "hello 7 of four, 0.75\nhello 8 of four, 0.75\n");
}

/* What fixture_another_process() does here. */
static void another_process(void) {
        /* Not NULL, which UBSan would find first. */
        volatile int *volatile nowhere = (volatile int *)4096;
        CUcontext context;

        signal(SIGSEGV, SIG_DFL);
        fixture_driver_open();
        driver->cuCtxCreate(&context, 0, 0);
        *nowhere = 1;
}

/* A signal that no kernel is to blame for still ends the process. */
static void a_fault_of_the_process_itself_kills_it(void **state) {
        int status = fixture_another_process(STDIN_FILENO);

        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                TEST(a_store_out_of_bounds_ends_the_context),
                TEST(a_store_just_past_an_allocation_faults),
                TEST(a_null_pointer_between_barriers_faults),
                TEST(a_trap_is_a_launch_failure),
                TEST(a_failed_assertion_says_where),
                TEST(masks_that_wait_for_each_other_are_a_fault),
                TEST(a_mask_of_lanes_that_wait_at_a_barrier_is_a_fault),
                TEST(a_mask_without_its_caller_is_a_fault),
                TEST(different_functions_under_one_mask_are_a_fault),
                TEST(nothing_is_done_after_a_fault),
                TEST(a_fault_ends_kernels_on_other_streams),
                TEST(destroying_a_context_ends_its_kernels),
                TEST(a_fault_leaves_the_other_device_alone),
                TEST(contexts_come_and_go_after_faults),
                TEST(text_is_printed_when_the_stream_is_synchronised),
                TEST(the_oldest_text_is_lost_when_there_is_too_much),
                cmocka_unit_test(a_fault_of_the_process_itself_kills_it),
        };

        if (argc > 1) {
                another_process();
                return EXIT_SUCCESS;
        }
        return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
