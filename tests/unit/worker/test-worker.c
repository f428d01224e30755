/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole worker, end to end, on the CPU driver or on a GPU (see fake_supervisor.h).
 */
#include "work.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char source[] =
        "#include <assert.h>\n"
        "__device__ int counter = 5;\n"
        "__constant__ int table[4];\n"
        "extern \"C\" __global__ void add(const float *a, const float *b, float *c, int n) {\n"
        "        int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "        if (i < n) c[i] = a[i] + b[i];\n"
        "}\n"
        "extern \"C\" __global__ void scale(float *x, float by, int n) {\n"
        "        int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "        if (i < n) x[i] *= by;\n"
        "}\n"
        "extern \"C\" __global__ void count(int by) { atomicAdd(&counter, by + table[1]); }\n"
        "extern \"C\" __global__ void spin(volatile int *stop) { while (!*stop) { } }\n"
        "extern \"C\" __global__ void claim(int x) { assert(x == 1); }\n"
        "extern \"C\" __global__ void busy(volatile int *x, int n) {\n"
        "        for (int i = 0; i < n; ++i) *x = i;\n"
        "}\n"
        "extern \"C\" __global__ void stray(int *p, long n) { p[n] = 1; }\n";

static const char plain_source[] =
        "extern \"C\" __global__ void add(const float *a, const float *b, float *c, int n) {\n"
        "        int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "        if (i < n) c[i] = a[i] + b[i];\n"
        "}\n"
        "template <typename T> __global__ void twice(T *x) { x[threadIdx.x] += x[threadIdx.x]; }\n"
        "template __global__ void twice<float>(float *);\n";

static const char printing_source[] =
        "#include <stdio.h>\n"
        "extern \"C\" __global__ void hello(int n) { printf(\"hello %d\\n\", n); }\n"
        "extern \"C\" __global__ void flood(int n) {\n"
        "        for (int i = 0; i < n; ++i) printf(\"a line of twenty-three\\n\");\n"
        "}\n";

static const char broken_source[] = "__global__ void f() { nonsense; }\n";

/* c = a + b of N floats at offsets 0, 4096, 8192 of arena 1 */
enum { N = 1000, AT_B = 4096, AT_C = 8192, ARENA = 16384 };

static void add_init(Work *work, uint64_t id, uint64_t module) {
        uint32_t a, b, c;

        work_init(work, id);
        a = work_buffer(work, 1, 0, N * sizeof(float), IN);
        b = work_buffer(work, 1, AT_B, N * sizeof(float), IN);
        c = work_buffer(work, 1, AT_C, N * sizeof(float), OUT);
        work_launch(work, work_kernel(work, module, "add"), 4, 256, "bbbi", a, b, c, (uint32_t)N);
}

static void fill_inputs(HostArena *arena) {
        for (int i = 0; i < N; ++i) {
                ((float *)arena->data)[i] = (float)i;
                ((float *)(arena->data + AT_B))[i] = (float)(2 * i);
        }
}

static void assert_sums(const HostArena *arena, float by) {
        for (int i = 0; i < N; ++i)
                assert_true(((float *)(arena->data + AT_C))[i] == by * (float)(3 * i));
}

/* ---- tests ------------------------------------------------------------------------------------------- */

static void probe_tells_every_device(void **state) {
        Supervisor supervisor = supervisor_start(true);
        const WorkerMessage *probed = supervisor_await(&supervisor, FROM_WORKER_PROBED);
        const WorkerDevice *device;

        assert_int_equal(probed->head.code, 0);
        assert_int_equal(probed->head.n_items, supervisor_on_gpu() ? 1 : 2);
        device = (const WorkerDevice *)probed->items + probed->head.n_items - 1;
        assert_true(strlen(device->name) > 0);
        assert_true(strncmp(device->uuid, "GPU-", 4) == 0);
        assert_true(device->memory_total > 0);
        assert_true(strlen(probed->more) > 0);
        assert_int_equal(supervisor_wait(&supervisor), 0);
}

static void module_lists_its_kernels_and_a_job_runs(void **state) {
        Supervisor supervisor = supervisor_start(false);
        const WorkerMessage *added = module_add_source(&supervisor, 7, plain_source);
        HostArena arena;
        Work work;

        assert_int_equal(added->head.code, 0);
        assert_int_equal(added->head.id, 7);
        assert_false(supervisor_module(&supervisor)->has_variables);
        assert_int_equal(supervisor_module(&supervisor)->n_kernels, 2);

        arena = host_arena(&supervisor, 1, ARENA);
        fill_inputs(&arena);
        add_init(&work, 100, 7);
        work.job.timed = true;
        work_send(&supervisor, &work);
        assert_true(((const WorkerEnd *)await_end(&supervisor, 100)->items)->gpu_ns > 0);
        assert_sums(&arena, 1);
        host_arena_free(&arena);
        assert_int_equal(supervisor_end(&supervisor), 0);
}

static void source_that_does_not_compile_gives_the_log(void **state) {
        const WorkerMessage *added;
        Supervisor supervisor;

        supervisor = supervisor_start(false);
        added = module_add_source(&supervisor, 7, broken_source);
        assert_int_not_equal(added->head.code, 0);
        assert_int_equal(added->head.code, GPUQ__V1__CODE__E_COMPILE);
        assert_non_null(strstr(added->text, "nonsense"));
        supervisor_end(&supervisor);
}

static void wrong_jobs_are_refused_and_others_run(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);
        Work work;

        add_module(&supervisor, 7, plain_source);
        fill_inputs(&arena);

        add_init(&work, 1, 7);
        work.launches[0].n_arguments = 3;
        work_send(&supervisor, &work);
        await_refusal(&supervisor, 1, GPUQ__V1__CODE__E_INVALID,
                      "kernel add takes 4 arguments, not 3");

        add_init(&work, 2, 7);
        memcpy(work.names, "sub", sizeof("sub"));
        work_send(&supervisor, &work);
        assert_int_equal(await_end(&supervisor, 2)->head.code, GPUQ__V1__CODE__E_NOT_FOUND);

        add_init(&work, 3, 8);
        work_send(&supervisor, &work);
        await_refusal(&supervisor, 3, GPUQ__V1__CODE__E_NOT_FOUND,
                      "module 8 is not in this worker");

        add_init(&work, 4, 7);
        work.buffers[2].offset = ARENA - 8;
        work_send(&supervisor, &work);
        await_refusal(
                &supervisor, 4, GPUQ__V1__CODE__E_INVALID,
                "a buffer of 4000 bytes at offset 16376 does not fit in its arena of 16384 bytes");

        /* One that shares its scratch with another lies there as it does in the arena. */
        work_init(&work, 5);
        work_buffer(&work, 1, 0, 16, IN);
        work_buffer(&work, 1, 2, 8, INOUT);
        work_fill(&work, 1, 8, 7);
        work_send(&supervisor, &work);
        await_refusal(&supervisor, 5, GPUQ__V1__CODE__E_INVALID,
                      "fill of buffer 2: offset 0 is not aligned to 4 bytes");

        add_init(&work, 6, 7);
        work_send(&supervisor, &work);
        await_done(&supervisor, 6);
        assert_sums(&arena, 1);

        /* One by itself is aligned wherever it comes from. */
        work_init(&work, 7);
        work_buffer(&work, 1, 2, 8, INOUT);
        work_fill(&work, 0, 8, 7);
        work_send(&supervisor, &work);
        await_done(&supervisor, 7);
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

static void job_of_several_operations_runs_in_order_and_again(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);
        Work work;

        add_module(&supervisor, 7, source);
        fill_inputs(&arena);
        for (int round = 1; round <= 3; ++round) {
                uint32_t other, by;

                add_init(&work, (uint64_t)round, 7);
                other = work_buffer(&work, 1, 12288, N * sizeof(float), OUT);
                by = work_kernel(&work, 7, "scale");
                work_launch(&work, by, 4, 256, "bfi", 2, (double)round, (uint32_t)N);
                work_copy(&work, false, other, false, 2, N * sizeof(float));
                work_fill(&work, 2, 4, (uint32_t)round);
                work_send(&supervisor, &work);
                await_done(&supervisor, (uint64_t)round);

                assert_int_equal(*(uint32_t *)(arena.data + AT_C), round);
                for (int i = 1; i < N; ++i) {
                        assert_true(((float *)(arena.data + AT_C))[i] == (float)(round * 3 * i));
                        assert_true(((float *)(arena.data + 12288))[i] == (float)(round * 3 * i));
                }
                assert_true(*(float *)(arena.data + 12288) == 0);
        }
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

static void one_slice_under_two_names_is_one_memory(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);
        uint32_t in, out;
        Work work;

        add_module(&supervisor, 7, plain_source);
        fill_inputs(&arena);
        work_init(&work, 1);
        in = work_buffer(&work, 1, 0, N * sizeof(float), IN);
        out = work_buffer(&work, 1, 0, N * sizeof(float), OUT);
        work_launch(&work, work_kernel(&work, 7, "add"), 4, 256, "bbbi", in, in, out, (uint32_t)N);
        work_send(&supervisor, &work);
        await_done(&supervisor, 1);
        for (int i = 0; i < N; ++i)
                assert_true(((float *)arena.data)[i] == (float)(2 * i));
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

static void device_arena_outlives_its_worker(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena;
        Work work;
        int fd;

        device_arena_make(&supervisor, 2, N * sizeof(float));
        assert_int_equal(supervisor_await(&supervisor, FROM_WORKER_ARENA_MADE)->head.code, 0);
        fd = dup(supervisor.fd);
        assert_true(fd >= 0);

        add_module(&supervisor, 7, plain_source);
        arena = host_arena(&supervisor, 1, ARENA);
        fill_inputs(&arena);
        add_init(&work, 1, 7);
        work.buffers[2].arena = 2;
        work.buffers[2].offset = 0;
        work_send(&supervisor, &work);
        await_done(&supervisor, 1);
        supervisor_end(&supervisor);

        supervisor = supervisor_start(false);
        arena_add(&supervisor, 2, GPUQ__V1__PLACE__DEVICE, N * sizeof(float), fd);
        close(fd);
        host_arena_free(&arena);
        arena = host_arena(&supervisor, 1, ARENA);
        work_init(&work, 2);
        work_buffer(&work, 2, 0, N * sizeof(float), IN);
        work_buffer(&work, 1, AT_C, N * sizeof(float), OUT);
        work_copy(&work, false, 1, false, 0, N * sizeof(float));
        work_send(&supervisor, &work);
        await_done(&supervisor, 2);
        assert_sums(&arena, 1);
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

/* Copies the device arena's first bytes to the host. */
static void copy_init(Work *work, uint64_t id, uint64_t arena) {
        work_init(work, id);
        work_buffer(work, arena, 0, 4096, IN);
        work_buffer(work, 1, 0, 4096, OUT);
        work_copy(work, false, 1, false, 0, 4096);
}

static void device_arena_is_where_it_is_wished_and_a_job_is_told_if_not(void **state) {
        const uint64_t address = UINT64_C(20) << 40;
        Supervisor supervisor;
        HostArena arena;
        Work work;
        int fd;

#ifdef __SANITIZE_THREAD__
        return; /* TSan keeps these addresses for itself */
#endif
        supervisor = supervisor_start(false);
        arena = host_arena(&supervisor, 1, ARENA);

        device_arena_make_at(&supervisor, 2, 4096, address);
        assert_int_equal(supervisor_await(&supervisor, FROM_WORKER_ARENA_MADE)->head.number,
                         address);
        fd = dup(supervisor.fd);
        assert_true(fd >= 0);
        copy_init(&work, 1, 2);
        work.job.by_address = true;
        work_send(&supervisor, &work);
        await_done(&supervisor, 1);

        /* the same memory under another number, where the first is already */
        arena_add_at(&supervisor, 3, GPUQ__V1__PLACE__DEVICE, 4096, address, fd);
        close(fd);
        copy_init(&work, 2, 3);
        work_send(&supervisor, &work);
        await_done(&supervisor, 2);
        work.job.id = 3;
        work.job.by_address = true;
        work_send(&supervisor, &work);
        await_refusal(&supervisor, 3, GPUQ__V1__CODE__E_MEMORY,
                      "device memory that the job reaches by its address could not be mapped there "
                      "in this worker");
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

static void variables_are_read_and_written_and_each_module_has_its_own(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);
        int *data = (int *)arena.data;
        Work work;

        module_add_source(&supervisor, 7, source);
        assert_true(supervisor_module(&supervisor)->has_variables);
        add_module(&supervisor, 8, source);
        data[0] = 1000;
        data[1] = 100;

        work_init(&work, 1);
        work_buffer(&work, 1, 0, 8, IN);
        work_kernel(&work, 7, "table");
        work_copy(&work, true, 0, false, 0, 8);
        work_launch(&work, work_kernel(&work, 7, "count"), 1, 1, "i", 2u);
        work_send(&supervisor, &work);
        await_done(&supervisor, 1);

        for (uint64_t module = 7; module <= 8; ++module) {
                work_init(&work, module);
                work_buffer(&work, 1, 64 * module, 4, OUT);
                work_kernel(&work, module, "counter");
                work_copy(&work, false, 0, true, 0, 4);
                work_send(&supervisor, &work);
                await_done(&supervisor, module);
        }
        assert_int_equal(data[16 * 7], 5 + 2 + 100);
        assert_int_equal(data[16 * 8], 5);
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

static void what_a_kernel_prints_comes_with_its_job_alone(void **state) {
        Supervisor supervisor = supervisor_start(false);
        Work work;

        add_module(&supervisor, 7, printing_source);
        for (uint32_t i = 1; i <= 3; ++i) {
                char wanted[32];

                work_init(&work, i);
                work_launch(&work, work_kernel(&work, 7, "hello"), 1, 1, "i", i);
                work_send(&supervisor, &work);
                snprintf(wanted, sizeof(wanted), "hello %u\n", i);
                assert_string_equal(await_end(&supervisor, i)->more, wanted);
        }
        supervisor_end(&supervisor);
}

static void builtin_kernels_come_with_their_text_and_run(void **state) {
        enum { N_DOUBLES = 10000 };
        Supervisor supervisor = supervisor_start(false);
        const Gpuq__V1__ModuleReady *added;
        const Gpuq__V1__KernelInfo *info = NULL;
        HostArena arena = host_arena(&supervisor, 1, (N_DOUBLES + 1) * sizeof(double));
        double *data = (double *)arena.data, wanted = 0;
        Work work;

        module_send_builtin(&supervisor, 9);
        supervisor_await(&supervisor, FROM_WORKER_MODULE_ADDED);
        added = supervisor_module(&supervisor);
        for (size_t i = 0; i < added->n_kernels; ++i)
                if (strcmp(added->kernels[i]->name, "sum_of_squares_f64") == 0)
                        info = added->kernels[i];
        assert_non_null(info);
        assert_true(strlen(info->text) > 0);
        assert_true(info->kinds_known);
        assert_int_equal(info->n_parameters, 3);

        for (int i = 0; i < N_DOUBLES; ++i) {
                data[i] = i % 100;
                wanted += data[i] * data[i];
        }
        work_init(&work, 1);
        work_buffer(&work, 1, 0, N_DOUBLES * sizeof(double), IN);
        work_buffer(&work, 1, N_DOUBLES * sizeof(double), sizeof(double), OUT);
        work_launch(&work, work_kernel(&work, 9, "sum_of_squares_f64"), 1, 256, "bbl", 0, 1,
                    (uint64_t)N_DOUBLES);
        work_send(&supervisor, &work);
        await_done(&supervisor, 1);
        assert_true(data[N_DOUBLES] == wanted);
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

static void out_on_device_memory_starts_as_zeros_beside_what_is_read(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);
        Work work;

        device_arena_make(&supervisor, 2, ARENA);
        supervisor_await(&supervisor, FROM_WORKER_ARENA_MADE);

        work_init(&work, 1);
        work_buffer(&work, 2, 0, ARENA, OUT);
        work_fill(&work, 0, ARENA, 0x01010101);
        work_send(&supervisor, &work);
        await_done(&supervisor, 1);

        /* out over all of it, of which two parts are in */
        work_init(&work, 2);
        work_buffer(&work, 2, 0, ARENA, OUT);
        work_buffer(&work, 2, 100, 50, IN);
        work_buffer(&work, 2, 4000, 96, INOUT);
        work_buffer(&work, 1, 0, ARENA, OUT);
        work_copy(&work, false, 3, false, 0, ARENA);
        work_send(&supervisor, &work);
        await_done(&supervisor, 2);
        for (int i = 0; i < ARENA; ++i)
                assert_int_equal(arena.data[i], (i >= 100 && i < 150) || (i >= 4000 && i < 4096));
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

static void job_of_a_thousand_operations_runs(void **state) {
        enum { N_OPERATIONS = 1000 };
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);
        Gpuq__V1__Operations operations = GPUQ__V1__OPERATIONS__INIT;
        Gpuq__V1__Operation *pointers[N_OPERATIONS];
        static uint8_t packed[1 << 20], message[(1 << 20) + 4096] __attribute__((aligned(8)));
        Work work;

        add_module(&supervisor, 7, source);
        work_init(&work, 1);
        work_buffer(&work, 1, 0, 4, OUT);
        work_kernel(&work, 7, "counter");
        work_launch(&work, work_kernel(&work, 7, "count"), 1, 1, "i", 2u);
        work_copy(&work, false, 0, true, 0, 4);
        for (size_t i = 0; i < N_OPERATIONS; ++i)
                pointers[i] = work.operation_pointers[i == N_OPERATIONS - 1];
        operations.operations = pointers;
        operations.n_operations = N_OPERATIONS;
        assert_true(gpuq__v1__operations__get_packed_size(&operations) <= sizeof(packed));
        work.job.n_operations = (uint32_t)gpuq__v1__operations__pack(&operations, packed);
        jobs_send(&supervisor, message, (size_t)(work_write(&work, packed, message) - message));
        await_done(&supervisor, 1);
        assert_int_equal(*(int *)arena.data, 5 + 2 * (N_OPERATIONS - 1));
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

static void cooperative_launch_runs_where_it_fits(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);
        Work work;

        add_module(&supervisor, 7, plain_source);
        fill_inputs(&arena);
        add_init(&work, 1, 7);
        work.launches[0].cooperative = true;
        work.launches[0].shared_bytes = 40 << 10;
        work_send(&supervisor, &work);
        await_done(&supervisor, 1);
        assert_sums(&arena, 1);

        work.job.id = 2;
        work.launches[0].grid_x = 1000000;
        work_send(&supervisor, &work);
        assert_int_equal(await_end(&supervisor, 2)->head.code, GPUQ__V1__CODE__E_INVALID);
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

static void without_device_memory_a_job_waits_for_others_or_fails_alone(void **state) {
        enum { BIG = 40 << 20 };
        Supervisor supervisor;
        HostArena arena;
        Work work;
        size_t n_ended = 0;

        if (supervisor_on_gpu())
                return; /* there is too much of it */
        setenv("GPUQ_CPU_MEMORY", "67108864", 1);
        supervisor = supervisor_start(false);
        unsetenv("GPUQ_CPU_MEMORY");
        arena = host_arena(&supervisor, 1, 2 * BIG);
        add_module(&supervisor, 7, source);

        for (uint64_t id = 1; id <= 2; ++id) {
                work_init(&work, id);
                work_buffer(&work, 1, (id - 1) * BIG, BIG, INOUT);
                work_launch(&work, work_kernel(&work, 7, "busy"), 1, 1, "bi", 0, 1000000u);
                work_send(&supervisor, &work);
        }
        while (n_ended < 2) {
                const WorkerMessage *told = supervisor_await(&supervisor, FROM_WORKER_ENDS);

                assert_int_equal(told->head.code, 0);
                n_ended += told->head.n_items;
        }

        work_init(&work, 3);
        work_buffer(&work, 1, 0, 2 * BIG, IN);
        work_launch(&work, work_kernel(&work, 7, "count"), 1, 1, "i", 1u);
        work_send(&supervisor, &work);
        await_refusal(&supervisor, 3, GPUQ__V1__CODE__E_MEMORY,
                      "the device has less than 80.0 MiB of free memory for the job's buffers");
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

static void a_checked_job_needs_memory_for_what_it_only_writes(void **state) {
        enum { BIG = 60 << 20 }; /* and 7.5 MiB of bits, and a gap */
        Supervisor supervisor;
        HostArena arena;
        Work work;

        if (supervisor_on_gpu())
                return; /* there is too much of it */
        setenv("GPUQ_CPU_MEMORY", "67108864", 1);
        supervisor = supervisor_start(false);
        unsetenv("GPUQ_CPU_MEMORY");
        arena = host_arena(&supervisor, 1, BIG);
        assert_int_equal(
                module_add_checked(&supervisor, 7,
                                   "extern \"C\" __global__ void put(int *out) { *out = 1; }")
                        ->head.code,
                0);

        work_init(&work, 1);
        work_buffer(&work, 1, 0, BIG, INOUT);
        work_launch(&work, work_kernel(&work, 7, "put"), 1, 1, "b", 0);
        work_send(&supervisor, &work);
        await_done(&supervisor, 1);

        work_init(&work, 2);
        work_buffer(&work, 1, 0, BIG, OUT);
        work_launch(&work, work_kernel(&work, 7, "put"), 1, 1, "b", 0);
        work_send(&supervisor, &work);
        await_refusal(&supervisor, 2, GPUQ__V1__CODE__E_MEMORY,
                      "the device has less than 67.6 MiB of free memory for the job's buffers");
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

/* Those behind it would go for ever, and the memory never be free at once. */
static void job_without_memory_is_not_overtaken(void **state) {
        enum { BEFORE = 4, ALL = 205, SLOT = 64 << 10, BIG = 80 << 20 };
        static Work works[ALL];
        Supervisor supervisor;
        HostArena arena;
        size_t n_before = 0;
        bool is_told = false;

        if (supervisor_on_gpu())
                skip();
        setenv("GPUQ_CPU_MEMORY", "67108864", 1);
        supervisor = supervisor_start(false);
        unsetenv("GPUQ_CPU_MEMORY");
        arena = host_arena(&supervisor, 1, BIG + ALL * SLOT);
        add_module(&supervisor, 7, source);

        for (size_t i = 0; i < ALL; ++i) {
                work_init(&works[i], i + 1);
                works[i].job.alone = true;
                if (i == BEFORE) {
                        work_buffer(&works[i], 1, 0, BIG, IN);
                        work_launch(&works[i], work_kernel(&works[i], 7, "count"), 1, 1, "i", 1u);
                        continue;
                }
                work_buffer(&works[i], 1, BIG + i * SLOT, 4096, INOUT);
                work_launch(&works[i], work_kernel(&works[i], 7, "busy"), 1, 1, "bi", 0, 20000u);
        }
        works_send(&supervisor, works, ALL);

        for (size_t n = 0; n < ALL;) {
                const WorkerMessage *told = supervisor_await(&supervisor, FROM_WORKER_ENDS);
                const WorkerEnd *ends = told->items;

                for (size_t i = 0; i < told->head.n_items; ++i, ++n) {
                        is_told |= ends[i].id == BEFORE + 1;
                        n_before += !is_told;
                }
        }
        assert_in_range(n_before, 0, ALL / 4);
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

static void buffer_of_4_gib_is_staged_whole(void **state) {
        const uint64_t size = (UINT64_C(4) << 30) + 4096;
        Supervisor supervisor;
        HostArena arena;
        Work work;

        if (!supervisor_on_gpu())
                return; /* twice as much would have to be in this machine's memory */
        supervisor = supervisor_start(false);
        arena = host_arena(&supervisor, 1, size);
        arena.data[0] = 77;
        add_module(&supervisor, 7, source);
        work_init(&work, 1);
        work_buffer(&work, 1, 0, size, INOUT);
        work_launch(&work, work_kernel(&work, 7, "stray"), 1, 1, "bl", 0, size / 4 - 1);
        work_send(&supervisor, &work);
        await_done(&supervisor, 1);
        assert_int_equal(arena.data[0], 77);
        assert_int_equal(*(int *)(arena.data + size - 4), 1);
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

static void module_is_loaded_only_when_nothing_runs(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);
        Work work;

        add_module(&supervisor, 7, source);
        work_init(&work, 1);
        work_buffer(&work, 1, 0, 4, INOUT);
        work_launch(&work, work_kernel(&work, 7, "busy"), 1, 1, "bi", 0, 100000000u);
        work_send(&supervisor, &work);
        module_send_source(&supervisor, 8, plain_source);
        await_done(&supervisor, 1);
        assert_int_equal(supervisor_await(&supervisor, FROM_WORKER_MODULE_ADDED)->head.code, 0);
        assert_int_equal(*(int *)arena.data, 99999999);
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

static void flood_of_print_is_cut(void **state) {
        Supervisor supervisor = supervisor_start(false);
        const WorkerMessage *end;
        Work work;

        add_module(&supervisor, 7, printing_source);
        work_init(&work, 1);
        work_launch(&work, work_kernel(&work, 7, "flood"), 1, 1, "i", 100000u);
        work_send(&supervisor, &work);
        end = await_end(&supervisor, 1);
        assert_int_equal(end->head.code, 0);
        assert_true(strlen(end->more) > 500000 && strlen(end->more) < 1100000);
        assert_non_null(strstr(end->more, "\na line of twenty-three\n"));

        work_init(&work, 2);
        work_launch(&work, work_kernel(&work, 7, "hello"), 1, 1, "i", 4u);
        work_send(&supervisor, &work);
        assert_string_equal(await_end(&supervisor, 2)->more, "hello 4\n");
        supervisor_end(&supervisor);
}

/* ---- those that end a worker ------------------------------------------------------------------------------ */

/* Runs until data[0] of arena 1 would be set in its scratch: for ever. */
static void spin_init(Work *work, uint64_t id, uint64_t offset) {
        work_init(work, id);
        work_buffer(work, 1, offset, 4, INOUT);
        work_launch(work, work_kernel(work, 7, "spin"), 1, 1, "b", 0);
}

static const WorkerInFlight *find_in_flight(const WorkerMessage *stopped, uint64_t id) {
        const WorkerInFlight *jobs = stopped->items;

        for (size_t i = 0; i < stopped->head.n_items; ++i)
                if (jobs[i].id == id)
                        return &jobs[i];
        return NULL;
}

static const WorkerInFlight *in_flight(const WorkerMessage *stopped, uint64_t id) {
        const WorkerInFlight *job = find_in_flight(stopped, id);

        if (!job)
                fail_msg("job %d is not told", (int)id);
        return job;
}

static void stray_write_stops_the_worker_and_tells_who_was_in_flight(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);
        const WorkerMessage *stopped;
        Work work;

        add_module(&supervisor, 7, source);
        spin_init(&work, 1, 0);
        work_send(&supervisor, &work);
        work_init(&work, 2);
        work_buffer(&work, 1, 64, 4, OUT);
        work_launch(&work, work_kernel(&work, 7, "stray"), 1, 1, "bl", 0, UINT64_C(1) << 42);
        work_send(&supervisor, &work);

        stopped = supervisor_await(&supervisor, FROM_WORKER_STOPPED);
        assert_int_not_equal(stopped->head.code, 0);
        assert_int_equal(stopped->head.code, GPUQ__V1__CODE__E_FAULT);
        assert_string_equal(stopped->text,
                            "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered");
        assert_int_equal(stopped->head.n_items, 2);
        assert_int_equal(in_flight(stopped, 1)->phase, WORKER_PHASE_ISSUED);
        assert_int_equal(in_flight(stopped, 2)->phase, WORKER_PHASE_ISSUED);
        host_arena_free(&arena);
        assert_int_equal(supervisor_wait(&supervisor), 0);
}

static void failed_assert_comes_with_its_text(void **state) {
        Supervisor supervisor = supervisor_start(false);
        const WorkerMessage *stopped;
        Work work;

        add_module(&supervisor, 7, source);
        for (uint32_t i = 1; i <= 2; ++i) {
                work_init(&work, i);
                work_launch(&work, work_kernel(&work, 7, "claim"), 1, 1, "i", i);
                work_send(&supervisor, &work);
                if (i == 1)
                        await_done(&supervisor, 1);
        }
        stopped = supervisor_await(&supervisor, FROM_WORKER_STOPPED);
        assert_int_not_equal(stopped->head.code, 0);
        assert_non_null(strstr(stopped->text, "CUDA_ERROR_ASSERT"));
        assert_non_null(strstr(stopped->more, "x == 1"));
        assert_int_equal(stopped->head.n_items, 1);
        assert_int_equal(supervisor_wait(&supervisor), 0);
}

static void late_job_is_told_once_and_stop_ends_it(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);
        const WorkerMessage *stopped;
        uint64_t after = 1;
        Work work;

        add_module(&supervisor, 7, source);
        spin_init(&work, 1, 0);
        work.job.timeout_ms = 50;
        work_send(&supervisor, &work);
        assert_int_equal(supervisor_await(&supervisor, FROM_WORKER_LATE)->head.id, 1);

        spin_init(&work, 2, 64);
        work_after(&work, after);
        work_send(&supervisor, &work);

        supervisor_tell(&supervisor, TO_WORKER_STOP, 0);
        stopped = supervisor_await(&supervisor, FROM_WORKER_STOPPED);
        assert_int_equal(stopped->head.code, 0);
        assert_int_equal(stopped->head.n_items, 2);
        assert_int_equal(in_flight(stopped, 1)->phase, WORKER_PHASE_ISSUED);
        /* The second is behind it, issued or not. */
        assert_int_not_equal(in_flight(stopped, 2)->phase, WORKER_PHASE_COMMITTING);
        host_arena_free(&arena);
        assert_int_equal(supervisor_wait(&supervisor), 0);
}

/* A worker's ring that nobody reads is full: from now on its last words take it half a second. */
static void fill_ring(Supervisor *supervisor, uint64_t id, const HostArena *arena) {
        static char name[8 << 10];
        volatile uint8_t *done = &arena->data[ARENA - 4];
        Work work;

        memset(name, 'x', sizeof(name) - 1);
        for (size_t n = 0; n < CHANNEL_CAPACITY + CHANNEL_CAPACITY / 4; n += sizeof(name)) {
                work_init(&work, id++);
                work_launch(&work, work_kernel(&work, 7, name), 1, 1, "");
                work_send(supervisor, &work); /* there is none, and the answer says so */
        }
        work_init(&work, id);
        work_buffer(&work, 1, ARENA - 4, 4, OUT);
        work_fill(&work, 0, 4, 1);
        work_send(supervisor, &work);
        while (!*done)
                poll(NULL, 0, 1);
}

static bool has_ended(pid_t pid) {
        siginfo_t info = {0};

        assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
        return info.si_pid == pid;
}

/* Return: as the worker told it, or UNKNOWN: worker or job ended before it could. */
#define UNKNOWN     (-1)
#define STAYS_TRIES 10u
static int stopped_phase(Supervisor *supervisor, uint64_t id) {
        const uint8_t *data;
        size_t n_data;
        bool is_gone = false;
        int r;

        for (;;) {
                const WorkerInFlight *job;
                WorkerMessage message;

                r = channel_receive(supervisor->channel, &data, &n_data);
                if (r == CHANNEL_E_AGAIN && is_gone)
                        return UNKNOWN;
                if (r == CHANNEL_E_AGAIN) {
                        is_gone = has_ended(supervisor->pid);
                        poll(NULL, 0, is_gone ? 0 : 1);
                        continue;
                }
                assert_int_equal(r, 0);
                assert_true(protocol_read(data, n_data, &message));
                if (message.head.kind != FROM_WORKER_STOPPED)
                        continue;
                job = find_in_flight(&message, id);
                return job ? (int)job->phase : UNKNOWN;
        }
}

/* x *= 2, in x. */
static void send_update(Supervisor *supervisor) {
        Work work;

        work_init(&work, 1);
        work_buffer(&work, 2, 0, 4, IN);
        work_buffer(&work, 1, 0, 4, INOUT);
        work_launch(&work, work_kernel(&work, 7, "spin"), 1, 1, "b", 0);
        work_launch(&work, work_kernel(&work, 7, "scale"), 1, 1, "bfi", 1, 2.0, 1);
        work.job.timeout_ms = 1;
        work_send(supervisor, &work);
}

/* Something that reads x, and another job behind it that overwrites it. */
static void send_reader_and_writer(Supervisor *supervisor) {
        uint64_t after[] = {1};
        Work work;

        work_init(&work, 1);
        work_buffer(&work, 2, 0, 4, IN);
        work_buffer(&work, 1, 0, 4, IN);
        work_launch(&work, work_kernel(&work, 7, "spin"), 1, 1, "b", 0);
        work.job.timeout_ms = 1;
        work_send(supervisor, &work);

        work_init(&work, 3);
        work_buffer(&work, 1, 0, 4, OUT);
        work_fill(&work, 0, 4, 7);
        work_after(&work, after[0]);
        work_send(supervisor, &work);
}

/*
 * The first job waits for a word that another worker writes when phases are told already.
 * Return: false: the word was quicker.
 */
static bool x_stays_once_phases_are_told(void (*send)(Supervisor *supervisor)) {
        Supervisor supervisor = supervisor_start(false), other = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);
        volatile float *x = (volatile float *)arena.data;
        Work work;
        int phase;

        *x = 1;
        device_arena_make(&supervisor, 2, 4096);
        supervisor_await(&supervisor, FROM_WORKER_ARENA_MADE);
        arena_add(&other, 2, GPUQ__V1__PLACE__DEVICE, 4096, supervisor.fd);
        add_module(&supervisor, 7, source);

        send(&supervisor);
        supervisor_await(&supervisor, FROM_WORKER_LATE); /* it runs */

        fill_ring(&supervisor, 100, &arena);
        supervisor_tell(&supervisor, TO_WORKER_STOP, 0);
        poll(NULL, 0, 50);
        work_init(&work, 2);
        work_buffer(&work, 2, 0, 4, OUT);
        work_fill(&work, 0, 4, 0x01010101);
        work_send(&other, &work);
        await_done(&other, 2);
        for (int i = 0; i < 100 && *x == 1; ++i)
                poll(NULL, 0, 1);

        phase = stopped_phase(&supervisor, 1);
        while (!has_ended(supervisor.pid))
                poll(NULL, 0, 1);
        if (phase == WORKER_PHASE_ISSUED)
                assert_true(*x == 1);
        supervisor_end(&supervisor);
        supervisor_end(&other);
        host_arena_free(&arena);
        return phase != UNKNOWN;
}

/* What was told not to be written would be written twice when the job runs again. */
static void results_are_not_written_back_once_phases_are_told(void **state) {
        for (unsigned i = 0; i < STAYS_TRIES && !x_stays_once_phases_are_told(send_update); ++i)
                ;
}

/* Who was told not to have ended would run again on what the one behind it wrote. */
static void what_comes_behind_does_not_begin_once_phases_are_told(void **state) {
        for (unsigned i = 0;
             i < STAYS_TRIES && !x_stays_once_phases_are_told(send_reader_and_writer); ++i)
                ;
}

static void small_job_runs_beside_one_that_never_ends(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);
        Work work;

        add_module(&supervisor, 7, source);
        fill_inputs(&arena);
        spin_init(&work, 1, 12288);
        work_send(&supervisor, &work);
        add_init(&work, 2, 7);
        work_send(&supervisor, &work);
        await_done(&supervisor, 2);
        assert_sums(&arena, 1);
        host_arena_free(&arena);
        assert_int_equal(supervisor_end(&supervisor), 0);
}

static void small_job_does_not_wait_for_what_is_freed_behind_a_long_one(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA),
                  dropped = host_arena(&supervisor, 2, 4);
        Work work;

        add_module(&supervisor, 7, source);
        add_module(&supervisor, 8, plain_source);
        fill_inputs(&arena);
        spin_init(&work, 1, 12288);
        work_send(&supervisor, &work);
        add_init(&work, 2, 7);
        work_send(&supervisor, &work);
        await_done(&supervisor, 2); /* so the long one is issued too */

        supervisor_tell(&supervisor, TO_WORKER_MODULE_DROP, 8);
        supervisor_tell(&supervisor, TO_WORKER_ARENA_DROP, 2);
        add_init(&work, 3, 7);
        work_send(&supervisor, &work);
        await_done(&supervisor, 3);
        assert_sums(&arena, 1);
        host_arena_free(&arena);
        host_arena_free(&dropped);
        assert_int_equal(supervisor_end(&supervisor), 0);
}

static void chain_of_jobs_keeps_its_order(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);
        size_t n_ended = 0;
        Work work;

        add_module(&supervisor, 7, source);
        *(float *)arena.data = 1;
        for (uint64_t id = 1; id <= 20; ++id) {
                uint64_t after = id - 1;

                work_init(&work, id);
                work_buffer(&work, 1, 0, 4, INOUT);
                work_launch(&work, work_kernel(&work, 7, "scale"), 1, 1, "bfi", 0,
                            id % 2 ? 3.0 : 1.0, 1u);
                work_launch(&work, 0, 1, 1, "bfi", 0, 1.0, 1u);
                work_after(&work, after);
                work_send(&supervisor, &work);
        }
        while (n_ended < 20) {
                const WorkerMessage *told = supervisor_await(&supervisor, FROM_WORKER_ENDS);
                const WorkerEnd *ends = told->items;

                for (size_t i = 0; i < told->head.n_items; ++i)
                        assert_int_equal(ends[i].id, ++n_ended);
        }
        assert_true(*(float *)arena.data == 59049); /* 3 to the 10th */
        host_arena_free(&arena);
        supervisor_end(&supervisor);
}

static void arenas_and_modules_can_go_and_come_again(void **state) {
        Supervisor supervisor = supervisor_start(false);
        Work work;

        for (uint64_t i = 0; i < 5; ++i) {
                HostArena arena = host_arena(&supervisor, 1, ARENA);

                add_module(&supervisor, 7 + i, i % 2 ? source : plain_source);
                fill_inputs(&arena);
                add_init(&work, 1, 7 + i);
                work_send(&supervisor, &work);
                supervisor_tell(&supervisor, TO_WORKER_MODULE_DROP, 7 + i);
                await_done(&supervisor, 1);
                assert_sums(&arena, 1);
                supervisor_tell(&supervisor, TO_WORKER_ARENA_DROP, 1);
                host_arena_free(&arena);
        }
        assert_int_equal(supervisor_end(&supervisor), 0);
}

/* Memory that was short may be there the next time; a worker that ended instead took other jobs with it. */
static void arena_that_could_not_be_added_can_be_added_again(void **state) {
        const WorkerMessage *answer;
        Supervisor supervisor = supervisor_start(false);
        int fd = memfd_create("test-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        HostArena arena;
        Work work;

        assert_int_equal(ftruncate(fd, ARENA), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0); /* cannot be mapped */
        arena_add(&supervisor, 1, GPUQ__V1__PLACE__HOST, ARENA, fd);
        answer = supervisor_await(&supervisor, FROM_WORKER_ARENA_ADDED);
        assert_int_equal(answer->head.id, 1);
        assert_int_not_equal(answer->head.code, 0);
        close(fd);

        add_module(&supervisor, 7, plain_source);
        add_init(&work, 1, 7);
        work_send(&supervisor, &work);
        assert_int_not_equal(await_end(&supervisor, 1)->head.code, 0);

        arena = host_arena(&supervisor, 1, ARENA);
        fill_inputs(&arena);
        add_init(&work, 2, 7);
        work_send(&supervisor, &work);
        await_done(&supervisor, 2);
        assert_sums(&arena, 1);

        for (unsigned i = 0; i < 2; ++i) {
                device_arena_make(&supervisor, 5, UINT64_C(1) << 46); /* more than any device has */
                answer = supervisor_await(&supervisor, FROM_WORKER_ARENA_MADE);
                assert_int_not_equal(answer->head.code, 0);
        }
        host_arena_free(&arena);
        assert_int_equal(supervisor_end(&supervisor), 0);
}

static void module_that_failed_can_come_again(void **state) {
        Supervisor supervisor;

        supervisor = supervisor_start(false);
        assert_int_not_equal(module_add_source(&supervisor, 7, broken_source)->head.code, 0);
        add_module(&supervisor, 7, plain_source); /* it is not kept for nobody */
        assert_int_equal(supervisor_end(&supervisor), 0);
}

static void worker_ends_when_its_supervisor_is_gone(void **state) {
        Supervisor supervisor = supervisor_start(false);

        assert_int_equal(supervisor_end(&supervisor), 0);
}

static void worker_ends_with_its_supervisor_whatever_it_runs(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);
        Work work;

        add_module(&supervisor, 7, source);
        spin_init(&work, 1, 0);
        work_send(&supervisor, &work);
        assert_int_equal(supervisor_end(&supervisor), 0);
        host_arena_free(&arena);
}

/* ---- words ------------------------------------------------------------------------------------------------ */

#define WAIT_MS 60000u /* for what is only seen in memory */

/* In the client's memory. */
static void wait_for_sums(const HostArena *arena) {
        const volatile float *last = (const float *)(arena->data + AT_C) + N - 1;

        for (unsigned i = 0; *last != (float)(3 * (N - 1)); ++i) {
                assert_true(i < WAIT_MS);
                usleep(1000);
        }
}

static void what_is_no_list_of_jobs_ends_the_worker(void **state) {
        enum { CUT, TOO_LONG, WITHOUT_ITS_BUFFER, OF_NO_KIND, TEXT_WITHOUT_END, N_WAYS };

        for (int way = 0; way < N_WAYS; ++way) {
                Supervisor supervisor = supervisor_start(false);
                struct {
                        WorkerHead head;
                        WorkerJob job;
                } list = {
                        {.kind = TO_WORKER_JOBS, .n_items = sizeof(WorkerJob)},
                        {.n_bytes = sizeof(WorkerJob) + (way == TOO_LONG) * 8},
                };

                list.job.n_buffers = way == WITHOUT_ITS_BUFFER;
                if (way == OF_NO_KIND)
                        list.head.kind = 99;
                if (way == TEXT_WITHOUT_END) {
                        list.head.n_text = 4;
                        list.head.n_items = sizeof(WorkerJob) - 8;
                        list.job.n_bytes = UINT32_MAX;
                }
                assert_int_equal(channel_send(supervisor.channel, (const uint8_t *)&list,
                                              sizeof(list) - (way == CUT) * 8u, -1),
                                 0);
                assert_int_equal(supervisor_wait(&supervisor), EXIT_FAILURE << 8);
        }
}

static void wait_for_word(const HostArena *arena, uint64_t offset, uint32_t word) {
        const volatile uint32_t *at = (const uint32_t *)(arena->data + offset);

        for (unsigned i = 0; *at != word; ++i) {
                assert_true(i < WAIT_MS);
                usleep(1000);
        }
}

static void send_with_word(Supervisor *supervisor, uint64_t id, uint64_t offset) {
        Work work;

        add_init(&work, id, 7);
        work.job.word_arena = offset ? 1 : 0;
        work.job.word_offset = offset;
        work_send(supervisor, &work);
}

/* Runs a job without reading anything of the worker: its results in memory show that it ran. */
static void run_unread(Supervisor *supervisor, const HostArena *arena, uint64_t id,
                       uint64_t offset) {
        memset(arena->data + AT_C, 0, N * sizeof(float));
        send_with_word(supervisor, id, offset);
        wait_for_sums(arena);
}

/*
 * A client that sees a word takes all earlier jobs for ended, so their ends must not be in the ring
 * of a dead worker alone. The worker reports ends before it takes new jobs: when the jobs 4 to 6
 * have run one after the other, it has reported job 3, and decided about its word.
 */
static void word_is_stored_once_the_supervisor_knows_all_ends_before_it(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);

        add_module(&supervisor, 7, source);
        fill_inputs(&arena);
        send_with_word(&supervisor, 1, 12800);
        wait_for_word(&arena, 12800, 1);
        run_unread(&supervisor, &arena, 2, 0);
        run_unread(&supervisor, &arena, 3, 12864);
        for (uint64_t id = 4; id <= 6; ++id)
                run_unread(&supervisor, &arena, id, 0);
        await_done(&supervisor, 1);
        await_all(&supervisor, 5);
        assert_int_equal(*(const uint32_t *)(arena.data + 12864), 0);

        (void)channel_sleep(supervisor.channel); /* releases the last message */
        channel_wake(supervisor.channel);
        send_with_word(&supervisor, 7, 12864);
        wait_for_word(&arena, 12864, 7);
        await_done(&supervisor, 7);
        host_arena_free(&arena);
        assert_int_equal(supervisor_end(&supervisor), 0);
}

#define FLOOD 1000u /* the id of the first job of a flood */

/* Jobs that fail at once, with so much to say that the ring cannot hold it. Return: how many. */
static size_t ask_for_a_flood(Supervisor *supervisor) {
        char name[1001] = "";
        size_t n, n_text;
        Work work;

        memset(name, 'x', sizeof(name) - 1);
        add_init(&work, FLOOD, 7);
        work.job.n_names = work.job.n_kernels = 0;
        work_kernel(&work, 7, name);
        work_send(supervisor, &work);
        n_text = strlen(await_end(supervisor, FLOOD)->text);
        n = CHANNEL_CAPACITY / n_text + 1;
        for (size_t i = 1; i <= n; ++i) {
                work.job.id = FLOOD + i;
                work_send(supervisor, &work);
        }
        return n;
}

/* … and then the end of job @last. */
static void await_flood(Supervisor *supervisor, size_t n, uint64_t last) {
        size_t n_seen = 0;

        for (bool is_over = false; !is_over;) {
                const WorkerMessage *told = supervisor_await(supervisor, FROM_WORKER_ENDS);
                const WorkerEnd *ends = told->items;

                for (size_t i = 0; i < told->head.n_items; ++i) {
                        if (ends[i].id == last)
                                is_over = true;
                        else
                                assert_int_equal(ends[i].id, FLOOD + ++n_seen);
                }
        }
        assert_int_equal(n_seen, n);
}

static void end_that_waits_for_room_in_the_ring_has_no_word(void **state) {
        Supervisor supervisor = supervisor_start(false);
        HostArena arena = host_arena(&supervisor, 1, ARENA);
        size_t n_told;
        Work work;

        add_module(&supervisor, 7, source);
        fill_inputs(&arena);
        n_told = ask_for_a_flood(&supervisor);
        add_init(&work, 2, 7);
        work.job.word_arena = 1;
        work.job.word_offset = 12800;
        work_send(&supervisor, &work);
        wait_for_sums(&arena);

        /* Modules are loaded when nothing runs and every end was told. */
        memset(arena.data + AT_C, 0, N * sizeof(float));
        module_send_source(&supervisor, 8, plain_source);
        add_init(&work, 3, 8);
        work_send(&supervisor, &work);
        wait_for_sums(&arena);
        await_flood(&supervisor, n_told, 2);
        supervisor_await(&supervisor, FROM_WORKER_MODULE_ADDED);
        await_done(&supervisor, 3);
        /* What a client reads there must have been written where it outlives the worker's death. */
        assert_int_equal(*(const uint32_t *)(arena.data + 12800), 0);
        host_arena_free(&arena);
        assert_int_equal(supervisor_end(&supervisor), 0);
}

static int remove_folder(void **state) {
        supervisor_folder_remove();
        return 0;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(probe_tells_every_device),
                cmocka_unit_test(worker_ends_when_its_supervisor_is_gone),
                cmocka_unit_test(worker_ends_with_its_supervisor_whatever_it_runs),
                cmocka_unit_test(module_lists_its_kernels_and_a_job_runs),
                cmocka_unit_test(source_that_does_not_compile_gives_the_log),
                cmocka_unit_test(wrong_jobs_are_refused_and_others_run),
                cmocka_unit_test(job_of_several_operations_runs_in_order_and_again),
                cmocka_unit_test(one_slice_under_two_names_is_one_memory),
                cmocka_unit_test(device_arena_outlives_its_worker),
                cmocka_unit_test(device_arena_is_where_it_is_wished_and_a_job_is_told_if_not),
                cmocka_unit_test(variables_are_read_and_written_and_each_module_has_its_own),
                cmocka_unit_test(what_a_kernel_prints_comes_with_its_job_alone),
                cmocka_unit_test(flood_of_print_is_cut),
                cmocka_unit_test(builtin_kernels_come_with_their_text_and_run),
                cmocka_unit_test(out_on_device_memory_starts_as_zeros_beside_what_is_read),
                cmocka_unit_test(job_of_a_thousand_operations_runs),
                cmocka_unit_test(cooperative_launch_runs_where_it_fits),
                cmocka_unit_test(without_device_memory_a_job_waits_for_others_or_fails_alone),
                cmocka_unit_test(a_checked_job_needs_memory_for_what_it_only_writes),
                cmocka_unit_test(job_without_memory_is_not_overtaken),
                cmocka_unit_test(buffer_of_4_gib_is_staged_whole),
                cmocka_unit_test(module_is_loaded_only_when_nothing_runs),
                cmocka_unit_test(chain_of_jobs_keeps_its_order),
                cmocka_unit_test(results_are_not_written_back_once_phases_are_told),
                cmocka_unit_test(what_comes_behind_does_not_begin_once_phases_are_told),
                cmocka_unit_test(small_job_runs_beside_one_that_never_ends),
                cmocka_unit_test(small_job_does_not_wait_for_what_is_freed_behind_a_long_one),
                cmocka_unit_test(arenas_and_modules_can_go_and_come_again),
                cmocka_unit_test(arena_that_could_not_be_added_can_be_added_again),
                cmocka_unit_test(module_that_failed_can_come_again),
                cmocka_unit_test(stray_write_stops_the_worker_and_tells_who_was_in_flight),
                cmocka_unit_test(failed_assert_comes_with_its_text),
                cmocka_unit_test(late_job_is_told_once_and_stop_ends_it),
                cmocka_unit_test(what_is_no_list_of_jobs_ends_the_worker),
                cmocka_unit_test(word_is_stored_once_the_supervisor_knows_all_ends_before_it),
                cmocka_unit_test(end_that_waits_for_room_in_the_ring_has_no_word),
        };

        return cmocka_run_group_tests(tests, NULL, remove_folder);
}
