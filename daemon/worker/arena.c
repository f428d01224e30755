/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena
 */
#include "worker/arena.h"

#include <string.h>
#include <sys/mman.h>

#include "util/human.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Larger arenas are refused, so sums with guards stay far from overflow. */
#define ARENA_SIZE_MAX (UINT64_C(1) << 46)

static size_t arena_round(uint64_t size, size_t unit) {
        return (size + unit - 1) / unit * unit;
}

int arena_new(uint64_t id, Gpuq__V1__Place place, uint64_t size, Context *context, Streams *streams,
              ArenaFunc func, void *userdata, Arena **ret_arena) {
        Arena *arena = calloc(1, sizeof(*arena));

        if (!arena)
                return -ENOMEM;

        *arena = (Arena){
                .id = id,
                .place = place,
                .size = size,
                .context = context,
                .streams = streams,
                .func = func,
                .userdata = userdata,
                .fd = -1,
        };
        *ret_arena = arena;
        return 0;
}

static void arena_release(Arena *arena);

/* Frees the parts allocated so far: no job can use them, and the client may ask again. */
static int arena_fail(Arena *arena, int r) {
        arena_release(arena);
        arena->state = ARENA_FAILED;
        return r;
}

static int arena_check(Arena *arena, CUresult result, const char *what) {
        return result_check(arena->context->cu, result,
                            result == CUDA_ERROR_OUT_OF_MEMORY ? GPUQ__V1__CODE__E_MEMORY
                                                               : GPUQ__V1__CODE__E_INTERNAL,
                            what, &arena->failure);
}

static int arena_check_size(Arena *arena) {
        if (arena->size > 0 && arena->size <= ARENA_SIZE_MAX)
                return 0;
        return failure_set(&arena->failure, GPUQ__V1__CODE__E_INVALID,
                           "invalid size of an arena: %s", human_bytes(arena->size).text);
}

/* ---- host ------------------------------------------------------------------- */

/* In another thread: the first touch of a page allocates it, and registering untouched pages would
 * stop launches. */
static void arena_on_populate(uv_work_t *work) {
        Arena *arena = work->data;
        size_t page = arena->n_guard;

        arena->work_error = 0;
        if (madvise(arena->memory, arena->n_mapped, MADV_POPULATE_WRITE) == 0)
                return;
        if (errno != EINVAL) {
                arena->work_error = -errno;
                return;
        }

        /* A kernel before 5.14. The client may be writing there, so the contents must not
         * change. */
        for (size_t i = 0; i < arena->n_mapped; i += page)
                __atomic_fetch_or(arena->memory + i, 0, __ATOMIC_RELAXED);
}

static void arena_register(Arena *arena) {
        int r;

        if (arena->work_error) {
                failure_set(&arena->failure, GPUQ__V1__CODE__E_MEMORY,
                            "no memory for an arena of %s: %s", human_bytes(arena->size).text,
                            strerror(-arena->work_error));
                arena_fail(arena, FAILURE_E_SET);
                return;
        }

        r = arena_check(arena,
                        arena->context->cu->cuMemHostRegister(arena->memory, arena->n_mapped,
                                                              CU_MEMHOSTREGISTER_PORTABLE |
                                                                      CU_MEMHOSTREGISTER_DEVICEMAP),
                        "cuMemHostRegister");
        if (r) {
                arena_fail(arena, r);
                return;
        }
        arena->registered = true;

        r = arena_check(
                arena,
                arena->context->cu->cuMemHostGetDevicePointer(&arena->address, arena->memory, 0),
                "cuMemHostGetDevicePointer");
        if (r) {
                arena_fail(arena, r);
                return;
        }
        arena->state = ARENA_READY;
}

static void arena_on_populated(uv_work_t *work, int status) {
        Arena *arena = work->data;

        arena_register(arena);
        arena->func(arena, arena->userdata);
}

static int arena_map(Arena *arena, int fd) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        uint8_t *reserved;
        void *memory;

        arena->n_guard = page;
        arena->n_mapped = arena_round(arena->size, page);
        reserved = mmap(NULL, arena->n_mapped + 2 * page, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (reserved == MAP_FAILED)
                return -errno;

        memory = mmap(reserved + page, arena->n_mapped, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, fd, 0);
        if (memory == MAP_FAILED) {
                int r = -errno;

                munmap(reserved, arena->n_mapped + 2 * page);
                return r;
        }

        arena->memory = memory;
        return 0;
}

int arena_map_host(Arena *arena, uv_loop_t *loop, int fd) {
        int r;

        r = arena_check_size(arena);
        if (r)
                return arena_fail(arena, r);

        r = arena_map(arena, fd);
        if (r == 0) {
                arena->work.data = arena;
                r = uv_queue_work(loop, &arena->work, arena_on_populate, arena_on_populated);
        }
        if (r < 0) {
                failure_set(&arena->failure, GPUQ__V1__CODE__E_MEMORY,
                            "cannot map an arena of %s: %s", human_bytes(arena->size).text,
                            strerror(-r));
                return arena_fail(arena, FAILURE_E_SET);
        }
        return 0;
}

static void arena_free_host(Arena *arena) {
        if (!arena->memory)
                return;
        if (arena->registered)
                arena->context->cu->cuMemHostUnregister(arena->memory);
        munmap(arena->memory - arena->n_guard, arena->n_mapped + 2 * arena->n_guard);
        arena->memory = NULL;
        arena->address = 0;
        arena->registered = false;
}

/* ---- device ----------------------------------------------------------------- */

/* At an address of its own. */
static int arena_map_anywhere(Arena *arena) {
        const Driver *cu = arena->context->cu;
        size_t n_bytes = arena->n_mapped + arena->n_guard;
        CUdeviceptr address;
        int r;

        r = arena_check(arena, cu->cuMemAddressReserve(&address, n_bytes, 0, 0, 0),
                        "cuMemAddressReserve");
        if (r)
                return r;
        r = arena_check(arena, cu->cuMemMap(address, arena->n_mapped, 0, arena->handle, 0),
                        "cuMemMap");
        if (r) {
                cu->cuMemAddressFree(address, n_bytes);
                return r;
        }
        arena->address = address;
        arena->is_elsewhere = true;
        return 0;
}

/* Where all workers have it, unless something else is there. */
static bool arena_map_where_wished(Arena *arena) {
        if (!arena->wish || !arena->context->has_range ||
            arena->context->cu->cuMemMap(arena->wish, arena->n_mapped, 0, arena->handle, 0) !=
                    CUDA_SUCCESS)
                return false;
        arena->address = arena->wish;
        return true;
}

/* Maps the handle with an unmapped granule behind it. */
static int arena_map_device(Arena *arena) {
        CUmemAccessDesc access = {
                .location = {CU_MEM_LOCATION_TYPE_DEVICE, arena->context->device},
                .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        int r = 0;

        if (!arena_map_where_wished(arena))
                r = arena_map_anywhere(arena);
        if (r)
                return r;
        return arena_check(
                arena,
                arena->context->cu->cuMemSetAccess(arena->address, arena->n_mapped, &access, 1),
                "cuMemSetAccess");
}

static int arena_size_device(Arena *arena) {
        int r;

        r = arena_check_size(arena);
        if (r)
                return r;
        arena->n_guard = arena->context->granularity;
        arena->n_mapped = arena_round(arena->size, arena->context->granularity);
        return 0;
}

static int arena_import_handle(Arena *arena, int fd) {
        int r;

        r = arena_size_device(arena);
        if (r)
                return r;
        r = arena_check(arena,
                        arena->context->cu->cuMemImportFromShareableHandle(
                                &arena->handle, (void *)(intptr_t)fd,
                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                        "cuMemImportFromShareableHandle");
        if (r) {
                arena->handle = 0;
                return r;
        }
        return arena_map_device(arena);
}

int arena_import(Arena *arena, int fd) {
        int r;

        r = arena_import_handle(arena, fd);
        if (r)
                return arena_fail(arena, r);

        arena->state = ARENA_READY;
        return 0;
}

static int arena_create(Arena *arena) {
        CUmemAllocationProp props = context_properties(arena->context);
        CUmemGenericAllocationHandle handle;
        CUresult result;
        int r;

        r = arena_size_device(arena);
        if (r)
                return r;

        result = arena->context->cu->cuMemCreate(&handle, arena->n_mapped, &props, 0);
        if (result == CUDA_ERROR_OUT_OF_MEMORY)
                return failure_set(&arena->failure, GPUQ__V1__CODE__E_MEMORY,
                                   "the device has less than %s of free memory",
                                   human_bytes(arena->n_mapped).text);
        r = arena_check(arena, result, "cuMemCreate");
        if (r)
                return r;

        arena->handle = handle;
        return arena_map_device(arena);
}

static int arena_zero(Arena *arena) {
        const Driver *cu = arena->context->cu;
        Stream *stream = streams_choose(arena->streams, STREAM_HIGH);
        int r;

        r = arena_check(arena,
                        cu->cuMemsetD8Async(arena->address, 0, arena->n_mapped, stream->stream),
                        "cuMemsetD8Async");
        if (r)
                return r;
        arena->zeroing = ticket_take(arena->streams, stream);
        r = arena_check(arena, ticket_mark_done(arena->streams, &arena->zeroing),
                        "cuStreamWriteValue32");
        if (r)
                ticket_release(arena->streams, &arena->zeroing);
        return r;
}

int arena_make(Arena *arena) {
        int r;

        arena->made = true;
        r = arena_create(arena);
        if (r)
                return arena_fail(arena, r);
        r = arena_check(
                arena,
                arena->context->cu->cuMemExportToShareableHandle(
                        &arena->fd, arena->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                "cuMemExportToShareableHandle");
        if (r) {
                arena->fd = -1;
                return arena_fail(arena, r);
        }
        r = arena_zero(arena);
        if (r)
                return arena_fail(arena, r);
        return 0;
}

void arena_poll(Arena *arena) {
        if (!arena_is_zeroing(arena) || !ticket_is_done(&arena->zeroing))
                return;

        ticket_release(arena->streams, &arena->zeroing);
        arena->state = ARENA_READY;
        arena->func(arena, arena->userdata);
}

static void arena_free_device(Arena *arena) {
        const Driver *cu = arena->context->cu;

        if (arena->place == GPUQ__V1__PLACE__DEVICE && arena->address) {
                cu->cuMemUnmap(arena->address, arena->n_mapped);
                if (arena->is_elsewhere)
                        cu->cuMemAddressFree(arena->address, arena->n_mapped + arena->n_guard);
        }
        if (arena->handle)
                cu->cuMemRelease(arena->handle);
        arena->address = 0;
        arena->handle = 0;
}

static void arena_release(Arena *arena) {
        arena_free_host(arena);
        arena_free_device(arena);
        if (arena->fd >= 0)
                close(arena->fd);
        arena->fd = -1;
}

Arena *arena_free(Arena *arena) {
        if (!arena)
                return NULL;

        arena_release(arena);
        failure_clear(&arena->failure);
        free(arena);
        return NULL;
}
