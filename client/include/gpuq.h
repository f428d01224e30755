/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_H
#define GPUQ_H

/*
 * libgpuq - run kernels on this machine's shared GPUs through gpuqd
 *
 * A client is one connection to the daemon, called a session. A buffer is memory
 * that client and daemon share, or device memory. A module contains kernels. A job
 * is a list of operations on buffers. Once submitted it runs asynchronously, and it
 * ends exactly once: done, failed or cancelled.
 *
 *     gpuq_client *q = NULL;
 *     gpuq_module *m = NULL;
 *     gpuq_buffer *x = NULL, *y = NULL;
 *     gpuq_job *job = NULL;
 *
 *     if (gpuq_connect(NULL, &q) < 0 ||
 *         gpuq_module_builtin(q, &m) < 0 ||
 *         gpuq_buffer_new(q, 10000 * sizeof(double), &x) < 0 ||
 *         gpuq_buffer_new(q, sizeof(double), &y) < 0)
 *             errx(1, "%s", gpuq_error_text());
 *     fill((double *)gpuq_buffer_data(x), 10000);
 *
 *     gpuq_arg args[] = {gpuq_in(x), gpuq_out(y), gpuq_u64(10000)};
 *     gpuq_config config = {.grid = {1}, .block = {256}};
 *     if (gpuq_job_new(q, &job) < 0 ||
 *         gpuq_job_launch(job, m, "sum_of_squares_f64", &config, args, 3) < 0 ||
 *         gpuq_run(job) < 0)
 *             errx(1, "%s", gpuq_error_text());
 *     printf("%g\n", *(double *)gpuq_buffer_data(y));
 *
 * Conventions
 *   - Errors: functions that return int return 0 (or a count) on success and a
 *     negative GPUQ_E_ code on failure. gpuq_error_text() then returns the full
 *     message. Pointers named ret_ are written only on success.
 *   - Ownership: every object is freed by its _free function, which accepts NULL.
 *     Other functions return GPUQ_E_INVALID for a NULL handle, or 0, NULL, false or "" if
 *     they return no error. Objects may be freed before or after their client. After the
 *     client is freed, its objects can still be freed and asked what they are, such as their
 *     size; every other use of them returns GPUQ_E_CLOSED.
 *   - Threads: any thread may use any object, but an object must not be freed while
 *     another thread uses it. Callbacks run in the thread that dispatches.
 *   - fork(): in the child, the parent's handles return GPUQ_E_FORKED, except where
 *     they are only asked what they are. The child may free them, which does not affect
 *     the parent's session, and may connect anew.
 *   - Units: sizes, offsets and lengths are in bytes. Times have their unit in the name.
 *
 * Restart of the daemon
 *   - If the daemon is upgraded or killed and starts again, the library reconnects.
 *     Waiting calls keep waiting, each job ends once, and buffers, modules and prepared
 *     jobs stay valid. gpuq_client_fd() stays the same.
 *   - A job that was running then runs again if it can. Otherwise it fails with
 *     GPUQ_E_HALF_WRITTEN. A job cannot run again if it changes device memory in place and
 *     is not marked as repeatable, uses module variables, changes host memory in place, or
 *     if a later job may have overwritten its input (docs/reliability.md). The values of
 *     module variables are lost, and jobs that use them fail once with
 *     GPUQ_E_VARIABLES_LOST.
 *   - The library has no thread of its own. It reconnects within calls that wait,
 *     submit or dispatch. The daemon keeps the session until such a call, for as long
 *     as the process lives. If the daemon cannot watch the process, as may be the case
 *     between containers, it keeps the session for takeover_s (gpuqd.conf(5)) only.
 *   - If the daemon was stopped normally, or no longer knows the session, calls return
 *     GPUQ_E_SHUTDOWN. If nothing listens on the socket any more, calls return
 *     GPUQ_E_CLOSED immediately.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUQ_API __attribute__((visibility("default")))

typedef struct gpuq_client gpuq_client;
typedef struct gpuq_buffer gpuq_buffer;
typedef struct gpuq_module gpuq_module;
typedef struct gpuq_job gpuq_job;

/* ---- errors ---------------------------------------------------------------- */

typedef enum gpuq_error {
        GPUQ_OK = 0,
        /* reported by the daemon; the codes of proto/gpuq.proto, negated */
        GPUQ_E_PROTOCOL = -1,
        GPUQ_E_VERSION = -2,
        GPUQ_E_INVALID = -3,
        GPUQ_E_NOT_FOUND = -4,
        GPUQ_E_DENIED = -5,
        GPUQ_E_QUOTA = -6,
        GPUQ_E_NO_DEVICE = -7,
        GPUQ_E_COMPILE = -8,
        GPUQ_E_IMAGE = -9,
        GPUQ_E_DEPENDENCY = -10,
        GPUQ_E_CYCLE = -11,
        GPUQ_E_LAUNCH = -12,
        GPUQ_E_FAULT = -13,
        GPUQ_E_TIMEOUT = -14,
        GPUQ_E_CANCELLED = -15,
        GPUQ_E_HALF_WRITTEN = -16,
        GPUQ_E_VARIABLES_LOST = -17,
        GPUQ_E_MEMORY = -18,
        GPUQ_E_SHUTDOWN = -19,
        GPUQ_E_INTERNAL = -20,
        /* reported by the library */
        GPUQ_E_CONNECT = -100, /* no daemon listens there; the text has the path and what to do */
        GPUQ_E_CLOSED = -101,  /* the connection was lost, or the client was freed */
        GPUQ_E_FORKED = -102,  /* the handle was inherited through fork() */
        GPUQ_E_AGAIN = -103,   /* not finished within the given time */
        GPUQ_E_SYSTEM = -104,  /* a system call failed; the text has the message for errno */
} gpuq_error;

/**
 * gpuq_error_text() - the message of this thread's last failed call
 *
 * Return: never NULL; valid until the next failure in this thread.
 */
GPUQ_API const char *gpuq_error_text(void);
/** gpuq_error_name() - the name of a code, such as "GPUQ_E_QUOTA". Return: never NULL. */
GPUQ_API const char *gpuq_error_name(int error);
/** gpuq_version() - the version of the library, as text. */
GPUQ_API const char *gpuq_version(void);

/* ---- client ---------------------------------------------------------------- */

/**
 * gpuq_connect() - open a session
 * @path: the daemon's socket; NULL: $GPUQ_SOCKET, else $XDG_RUNTIME_DIR/gpuq.sock if it
 *        exists in a folder that only this user may write, else /run/gpuq/gpuqd.sock
 *
 * Return: 0, GPUQ_E_CONNECT, GPUQ_E_VERSION, GPUQ_E_DENIED or GPUQ_E_QUOTA.
 */
GPUQ_API int gpuq_connect(const char *path, gpuq_client **ret_client);
/**
 * gpuq_client_free() - end the session
 *
 * The daemon cancels its unfinished jobs and releases its memory. Job objects that are
 * not freed yet end with GPUQ_E_CLOSED, and their callbacks run.
 */
GPUQ_API void gpuq_client_free(gpuq_client *client);

/**
 * gpuq_client_fd() - a descriptor for your own event loop
 *
 * Poll it for the events of gpuq_client_events(), then call gpuq_dispatch(). It is also
 * readable if another call has received the end of a job and the job's callback must
 * still run. It never changes. It belongs to the library: do not close it.
 *
 * Return: the descriptor, or a negative GPUQ_E_ code.
 */
GPUQ_API int gpuq_client_fd(gpuq_client *client);
/**
 * gpuq_client_events() - the poll() events to wait for
 *
 * Return: POLLIN, with POLLOUT if data waits to be sent; or a negative GPUQ_E_ code.
 */
GPUQ_API int gpuq_client_events(gpuq_client *client);
/**
 * gpuq_dispatch() - send and receive what is possible now, and run callbacks
 * @timeout_ms: how long to wait for an event; 0: do not wait; -1: no limit
 *
 * Returns after any message or signal (EINTR), so that an interpreter can run its
 * handlers. Other calls that wait continue after a signal.
 *
 * Return: the number of jobs that ended (>= 0), or a negative GPUQ_E_ code.
 */
GPUQ_API int gpuq_dispatch(gpuq_client *client, int timeout_ms);
/** gpuq_client_session() - the number of this session; the first part of its jobs' ids. */
GPUQ_API uint32_t gpuq_client_session(const gpuq_client *client);
/** gpuq_client_devices() - the number of devices of the daemon. */
GPUQ_API unsigned gpuq_client_devices(const gpuq_client *client);

/* ---- buffers --------------------------------------------------------------- */

/** Identifies a buffer across all processes of one user. */
typedef struct gpuq_buffer_ref {
        uint64_t arena;  /* the memory that the buffer is a part of */
        uint64_t offset; /* bytes */
        uint64_t length; /* bytes */
} gpuq_buffer_ref;

/**
 * gpuq_buffer_new() - allocate host memory that is shared with the daemon, filled with zeros
 * @size: bytes, > 0
 */
GPUQ_API int gpuq_buffer_new(gpuq_client *client, size_t size, gpuq_buffer **ret_buffer);
/**
 * gpuq_buffer_new_uninitialized() - allocate host memory with undefined contents
 *
 * For callers that overwrite the whole buffer. It contains zeros, or the contents of a
 * freed buffer of this client.
 */
GPUQ_API int gpuq_buffer_new_uninitialized(gpuq_client *client, size_t size,
                                           gpuq_buffer **ret_buffer);
/**
 * gpuq_buffer_new_device() - allocate device memory, filled with zeros, that persists between jobs
 * @device: index, or -1: the device of this client's first device memory; the daemon divides clients
 *          among devices
 *
 * While the daemon has no usable device this is GPUQ_E_NO_DEVICE; or it waits for one, if the environment has
 * GPUQ_WAIT_FOR_DEVICE=1.
 */
GPUQ_API int gpuq_buffer_new_device(gpuq_client *client, size_t size, int device,
                                    gpuq_buffer **ret_buffer);
/** gpuq_buffer_slice() - create a buffer that is a part of another; it keeps the memory alive. */
GPUQ_API int gpuq_buffer_slice(gpuq_buffer *buffer, size_t offset, size_t size,
                               gpuq_buffer **ret_slice);
/** gpuq_buffer_get_ref() - get the reference with which another process of this user can open the buffer. */
GPUQ_API int gpuq_buffer_get_ref(gpuq_buffer *buffer, gpuq_buffer_ref *ret_ref);
/** gpuq_buffer_open() - open a buffer by reference; its memory lives as long as any session has it open. */
GPUQ_API int gpuq_buffer_open(gpuq_client *client, const gpuq_buffer_ref *ref,
                              gpuq_buffer **ret_buffer);
/**
 * gpuq_buffer_data() - the host memory of a buffer
 *
 * Do not access it while a job uses the buffer.
 *
 * Return: valid until the buffer is freed; NULL for device memory.
 */
GPUQ_API void *gpuq_buffer_data(gpuq_buffer *buffer);
/** gpuq_buffer_size() - the size in bytes. */
GPUQ_API size_t gpuq_buffer_size(const gpuq_buffer *buffer);
/** gpuq_buffer_device() - the index of the device that the buffer is on, or -1 for host memory. */
GPUQ_API int gpuq_buffer_device(const gpuq_buffer *buffer);
/**
 * gpuq_buffer_address() - the address of a device buffer's first byte, as kernels see it
 *
 * It is the same in all jobs of this user, on whichever device they run, until the memory is freed, so it can be
 * stored in structs and in arrays of pointers. A job whose kernels follow such a pointer names the buffer
 * with gpuq_job_use().
 *
 * Return: 0, GPUQ_E_INVALID (host memory), or GPUQ_E_MEMORY: this memory has no fixed address.
 */
GPUQ_API int gpuq_buffer_address(const gpuq_buffer *buffer, uint64_t *ret_address);
/** gpuq_buffer_free() - free a buffer; submitted jobs keep the memory that they use. */
GPUQ_API void gpuq_buffer_free(gpuq_buffer *buffer);

/* ---- modules --------------------------------------------------------------- */

typedef enum gpuq_format {
        GPUQ_FORMAT_AUTO = 0, /* detected from the first bytes */
        GPUQ_FORMAT_SOURCE = 1,
        GPUQ_FORMAT_PTX = 2,
        GPUQ_FORMAT_CUBIN = 3,
        GPUQ_FORMAT_FATBIN = 4,
        GPUQ_FORMAT_OPENCL = 6, /* OpenCL C source; never detected */
} gpuq_format;

typedef enum gpuq_kind {
        GPUQ_BYTES = 0, /* a struct by value, or unknown */
        GPUQ_POINTER = 1,
        GPUQ_I32 = 2, /* also unsigned */
        GPUQ_I64 = 3, /* also unsigned */
        GPUQ_F32 = 4,
        GPUQ_F64 = 5,
        GPUQ_I8 = 6,
        GPUQ_I16 = 7,
        GPUQ_WORD64 = 8,   /* of a parameter: a pointer or an 8-byte integer */
        GPUQ_LOCAL = 9,    /* a __local pointer of OpenCL C; of an argument: so many bytes */
        GPUQ_NULL = 10,    /* of an argument: a null pointer */
        GPUQ_TEXTURE = 11, /* of an argument: a texture object over a buffer */
} gpuq_kind;

typedef struct gpuq_parameter {
        gpuq_kind kind;
        size_t size;
} gpuq_parameter;

/* As the device tells them on which the module was loaded first; 0: not told. */
typedef struct gpuq_attributes {
        unsigned registers;      /* of a thread */
        unsigned shared_bytes;   /* static shared memory of a block */
        unsigned const_bytes;    /* of the module's constants */
        unsigned local_bytes;    /* local memory of a thread */
        unsigned ptx_version;    /* of the virtual architecture: 90 is 9.0 */
        unsigned binary_version; /* of the architecture */
} gpuq_attributes;

typedef struct gpuq_kernel_info {
        const char *name; /* owned by the module, as text and parameters are */
        const char *text; /* what a built-in kernel computes; else "" */
        const gpuq_parameter *parameters;
        size_t n_parameters;
        bool kinds_known;   /* false, as for cubins: only the number and sizes are checked */
        unsigned max_block; /* maximum number of threads in a block */
        const char *symbol; /* its mangled name; the same as name if it has none */
        gpuq_attributes attributes;
} gpuq_kernel_info;

/* A header file as text, for what includes it as @name. */
typedef struct gpuq_header {
        const char *name; /* a relative path, such as "util/sum.h" */
        const char *text;
} gpuq_header;

/* What a module is made of. Members that are not needed are zero. */
typedef struct gpuq_code {
        gpuq_format format;
        const void *image;          /* copied */
        size_t n_image;             /* bytes */
        const char *name;           /* for messages, such as the name of the file */
        const char *const *options; /* for the compiler, as of gpuq_module_load() */
        /*
         * Kernels that will be used, at most 512; NULL-terminated. With CUDA C++, a name with
         * template arguments, such as "ns::reduce<float, 256u>", is an expression in the scope of
         * the source's end, and its instance is compiled even if the source does not use it.
         */
        const char *const *names;
        const gpuq_header *headers;
        size_t n_headers;
} gpuq_code;

/**
 * gpuq_module_load() - compile and load CUDA C++ source, PTX, a cubin or a fatbin
 * @image:   copied
 * @n_image: bytes
 * @options: compiler options: -DNAME=VALUE, -UNAME, -std=c++NN, --use_fast_math, --check (see
 *           gpuq_job_set_checked()), -IFOLDER, --fmad=true|false, --ftz, --prec-div and --prec-sqrt
 *           likewise, --device-int128, -maxrregcount=N, -lineinfo, -G; in any spelling of nvcc or
 *           NVRTC, also as two words; NULL-terminated; may be NULL. This process reads what the source
 *           includes by name from a FOLDER, directly or indirectly, but not where a macro has the name. A
 *           folder of the CUDA Toolkit is left out: the daemon's compilers have its headers. For one
 *           that does not exist the log has a warning. An absolute path is read by the daemon's compiler,
 *           if it may. The CPU driver ignores the last three.
 * @name:    for messages, such as the name of the file
 *
 * Waits until the module is loaded.
 *
 * Return: 0, GPUQ_E_COMPILE (the text is the compiler's log), GPUQ_E_IMAGE,
 *         GPUQ_E_QUOTA or another error.
 */
GPUQ_API int gpuq_module_load(gpuq_client *client, gpuq_format format, const void *image,
                              size_t n_image, const char *const *options, const char *name,
                              gpuq_module **ret_module);
/**
 * gpuq_module_load_code() - the same, with more choices
 * @code: everything in it is copied
 *
 * Return: as gpuq_module_load(); GPUQ_E_NOT_FOUND if there is no kernel of a name in @code->names.
 */
GPUQ_API int gpuq_module_load_code(gpuq_client *client, const gpuq_code *code,
                                   gpuq_module **ret_module);
/** gpuq_module_builtin() - get the built-in kernels, which `gpuq kernels` lists. */
GPUQ_API int gpuq_module_builtin(gpuq_client *client, gpuq_module **ret_module);
/** gpuq_module_n_kernels() - the number of kernels in a module. */
GPUQ_API size_t gpuq_module_n_kernels(const gpuq_module *module);
/**
 * gpuq_module_kernel() - describe a kernel
 * @i: 0 <= @i < gpuq_module_n_kernels()
 * @ret_info: its pointers are valid until the module is freed
 *
 * Return: 0 or GPUQ_E_NOT_FOUND.
 */
GPUQ_API int gpuq_module_kernel(const gpuq_module *module, size_t i, gpuq_kernel_info *ret_info);
/**
 * gpuq_module_find() - find a kernel by one of its names
 * @name: as in @names when the module was loaded; its mangled name; its C++ name with template
 *        arguments, which are compared by meaning: "f<int, 256u>" is "f<int,256>"; or, if no
 *        other kernel has it, its plain name with or without its namespace
 *
 * gpuq_job_launch() takes the same names.
 *
 * Return: 0 or GPUQ_E_NOT_FOUND (the text lists the module's kernels).
 */
GPUQ_API int gpuq_module_find(const gpuq_module *module, const char *name, size_t *ret_i);
/**
 * gpuq_module_occupancy() - how many blocks of a kernel one multiprocessor runs at once
 * @threads:      in a block
 * @shared_bytes: of dynamic shared memory
 * @device:       -1: the daemon's choice
 *
 * The device answers in a job, which takes its turn. Waits for it.
 *
 * Return: 0, GPUQ_E_NOT_FOUND, GPUQ_E_INVALID (no device has blocks like that) or another error.
 */
GPUQ_API int gpuq_module_occupancy(gpuq_module *module, const char *kernel, unsigned threads,
                                   unsigned shared_bytes, int device, unsigned *ret_blocks);
/** gpuq_module_log() - the compiler's warnings, or "". Valid until the module is freed. */
GPUQ_API const char *gpuq_module_log(const gpuq_module *module);
/**
 * gpuq_module_has_variables() - whether the module has __device__ or __constant__ variables
 *
 * If so, this session has its own instance of the module.
 */
GPUQ_API bool gpuq_module_has_variables(const gpuq_module *module);
/**
 * gpuq_module_variable_size() - bytes of a __device__ or __constant__ variable
 * @name: its symbol, or its name without namespace
 *
 * Return: 0, or GPUQ_E_NOT_FOUND, also for what the compiler made a constant.
 */
GPUQ_API int gpuq_module_variable_size(const gpuq_module *module, const char *name,
                                       size_t *ret_bytes);
/** gpuq_module_free() - free a module; submitted jobs still run. */
GPUQ_API void gpuq_module_free(gpuq_module *module);

/* ---- jobs ------------------------------------------------------------------ */

/*
 * Directions
 *
 * Each use of a buffer in a job has a direction. If several operations of a job use the
 * same buffer, gpuq derives one direction for the whole job:
 *
 *   - OUT if the first operation that uses it has it as OUT. It is filled with zeros
 *     once, and later operations see what earlier ones wrote.
 *   - INOUT if it is IN first and written later, or if one operation has it as both.
 *   - INOUT if a copy or fill writes only a part of it, unless an earlier operation had
 *     it as OUT.
 *
 * Kernels must not write to a buffer that is only IN. If one does, the write may be lost
 * or may stay, and this can differ from run to run, because gpuq may or may not copy the
 * buffer. Other jobs that read the buffer may see the change, and the job itself may run
 * twice.
 */
typedef enum gpuq_direction {
        GPUQ_IN = 0,
        GPUQ_OUT = 1, /* filled with zeros before each run */
        GPUQ_INOUT = 2,
        /*
         * As OUT, but the job writes all of it, so gpuq does not fill it with zeros. Bytes that
         * the job does not write hold zeros or an earlier content of the buffer.
         */
        GPUQ_OUT_WHOLE = 3,
} gpuq_direction;

/** One kernel argument: a buffer with its direction, a null pointer, or a scalar. Create it with the functions below. */
typedef struct gpuq_arg {
        gpuq_buffer *
                buffer; /* borrowed until the call that takes it returns; NULL: scalar or null pointer */
        gpuq_direction direction;
        gpuq_kind kind;
        size_t size;
        union {
                int32_t i32;
                uint32_t u32;
                int64_t i64;
                uint64_t u64;
                float f32;
                double f64;
                const void *bytes; /* kind GPUQ_BYTES; copied by the call that takes it */
                const struct gpuq_texture_desc *texture; /* kind GPUQ_TEXTURE; likewise */
        } value;
} gpuq_arg;

static inline gpuq_arg gpuq_in(gpuq_buffer *buffer) {
        gpuq_arg arg = {buffer, GPUQ_IN, GPUQ_POINTER, sizeof(uint64_t), {0}};
        return arg;
}
static inline gpuq_arg gpuq_out(gpuq_buffer *buffer) {
        gpuq_arg arg = {buffer, GPUQ_OUT, GPUQ_POINTER, sizeof(uint64_t), {0}};
        return arg;
}
static inline gpuq_arg gpuq_out_whole(gpuq_buffer *buffer) {
        gpuq_arg arg = {buffer, GPUQ_OUT_WHOLE, GPUQ_POINTER, sizeof(uint64_t), {0}};
        return arg;
}
static inline gpuq_arg gpuq_inout(gpuq_buffer *buffer) {
        gpuq_arg arg = {buffer, GPUQ_INOUT, GPUQ_POINTER, sizeof(uint64_t), {0}};
        return arg;
}
/** gpuq_null() - a null pointer, where the kernel takes one. Built-in kernels take none. */
static inline gpuq_arg gpuq_null(void) {
        gpuq_arg arg = {NULL, GPUQ_IN, GPUQ_NULL, sizeof(uint64_t), {0}};
        return arg;
}
/**
 * gpuq_local() - @size bytes of shared memory for a __local pointer of OpenCL C
 *
 * They are added to the shared_bytes of the launch. Prepared jobs keep their size.
 */
static inline gpuq_arg gpuq_local(size_t size) {
        gpuq_arg arg = {NULL, GPUQ_IN, GPUQ_LOCAL, sizeof(uint64_t), {0}};
        arg.value.u64 = size;
        return arg;
}

/* What each channel of a texel is. */
typedef enum gpuq_texel_format {
        GPUQ_TEXEL_U8 = 1,
        GPUQ_TEXEL_U16 = 2,
        GPUQ_TEXEL_U32 = 3,
        GPUQ_TEXEL_I8 = 4,
        GPUQ_TEXEL_I16 = 5,
        GPUQ_TEXEL_I32 = 6,
        GPUQ_TEXEL_F16 = 7, /* kernels get floats */
        GPUQ_TEXEL_F32 = 8,
} gpuq_texel_format;

/* What a fetch outside of a texture gets. */
typedef enum gpuq_address_mode {
        GPUQ_ADDRESS_CLAMP = 0,  /* the nearest texel */
        GPUQ_ADDRESS_BORDER = 1, /* 0 */
        GPUQ_ADDRESS_WRAP = 2,   /* as if the texture were repeated; needs normalized coordinates */
        GPUQ_ADDRESS_MIRROR = 3, /* the same, every other time reversed */
} gpuq_address_mode;

/*
 * A texture over a buffer. All 0 but format, channels and width: memory of one dimension, which
 * kernels fetch by index, with tex1Dfetch(). With a height: rows for tex2D().
 */
typedef struct gpuq_texture_desc {
        gpuq_texel_format format;
        unsigned channels;            /* of a texel: 1, 2 or 4 */
        size_t width;                 /* texels */
        size_t height;                /* rows; 0: one dimension */
        size_t pitch;                 /* bytes from row to row; 0: rows follow each other */
        gpuq_address_mode address[2]; /* in x and y; only with a height, as the next two */
        bool linear;                  /* bilinear filtering; else the nearest texel */
        bool normalized;              /* coordinates are from 0 to 1, not in texels */
        bool to_float; /* integers of 8 or 16 bits are read as floats: 0 to 1, signed ones -1 to 1 */
} gpuq_texture_desc;

/**
 * gpuq_texture() - a texture object, for a parameter of type cudaTextureObject_t
 * @buffer: borrowed as by gpuq_in(); the job reads it
 * @desc:   borrowed until the call that takes the argument returns
 *
 * The texture must lie in the buffer. On today's GPUs it must begin at a multiple of 512 bytes, as every new buffer
 * does, and its pitch must be a multiple of 32 bytes; else the job fails with GPUQ_E_INVALID. Kernels with textures run
 * alone in their launch, and never on host memory in place. There are no surfaces: CUDA has them for its arrays only,
 * not for memory like that of a buffer. Write to a buffer instead.
 */
static inline gpuq_arg gpuq_texture(gpuq_buffer *buffer, const gpuq_texture_desc *desc) {
        gpuq_arg arg = {buffer, GPUQ_IN, GPUQ_TEXTURE, sizeof(uint64_t), {0}};
        arg.value.texture = desc;
        return arg;
}
#define GPUQ_SCALAR_(name, type, k)                                                                \
        static inline gpuq_arg gpuq_##name(type value) {                                           \
                gpuq_arg arg = {NULL, GPUQ_IN, k, sizeof(type), {0}};                              \
                arg.value.name = value;                                                            \
                return arg;                                                                        \
        }
GPUQ_SCALAR_(i32, int32_t, GPUQ_I32)
GPUQ_SCALAR_(u32, uint32_t, GPUQ_I32)
GPUQ_SCALAR_(i64, int64_t, GPUQ_I64)
GPUQ_SCALAR_(u64, uint64_t, GPUQ_I64)
GPUQ_SCALAR_(f32, float, GPUQ_F32)
GPUQ_SCALAR_(f64, double, GPUQ_F64)
#undef GPUQ_SCALAR_
/** gpuq_bytes() - a struct by value, or a scalar of another width. */
static inline gpuq_arg gpuq_bytes(const void *bytes, size_t size) {
        gpuq_arg arg = {NULL, GPUQ_IN, GPUQ_BYTES, size, {0}};
        arg.value.bytes = bytes;
        return arg;
}

typedef struct gpuq_config {
        unsigned grid[3];      /* blocks; 0 means 1, also in block and cluster */
        unsigned block[3];     /* threads */
        unsigned shared_bytes; /* dynamic shared memory per block */
        unsigned cluster[3];   /* blocks; all 0: no clusters */
        bool cooperative;      /* all blocks are resident at once */
} gpuq_config;

/** gpuq_job_new() - create an empty job. Append operations, then submit it once. */
GPUQ_API int gpuq_job_new(gpuq_client *client, gpuq_job **ret_job);
/**
 * gpuq_job_launch() - append a kernel launch
 *
 * Return: 0, GPUQ_E_NOT_FOUND (the text lists the module's kernels) or GPUQ_E_INVALID.
 */
GPUQ_API int gpuq_job_launch(gpuq_job *job, gpuq_module *module, const char *kernel,
                             const gpuq_config *config, const gpuq_arg *args, size_t n_args);
/**
 * gpuq_job_use() - name a device buffer that the job's kernels reach by gpuq_buffer_address()
 * @direction: how they use it, as for an argument; GPUQ_OUT fills it with zeros before the job
 *
 * Order between jobs, checks and retries count it like an argument. A slice names only itself: name the whole
 * buffer if the kernels may reach all of it.
 */
GPUQ_API int gpuq_job_use(gpuq_job *job, gpuq_buffer *buffer, gpuq_direction direction);
/** gpuq_job_copy() - append a copy from one buffer to another, in host or device memory, of ranges that do not overlap. */
GPUQ_API int gpuq_job_copy(gpuq_job *job, gpuq_buffer *to, size_t to_offset, gpuq_buffer *from,
                           size_t from_offset, size_t length);
/**
 * gpuq_job_fill() - append a fill with a repeated value
 * @length: bytes, a multiple of @width
 * @width:  bytes of @value that are used: 1, 2 or 4
 */
GPUQ_API int gpuq_job_fill(gpuq_job *job, gpuq_buffer *buffer, size_t offset, size_t length,
                           uint32_t value, unsigned width);

/*
 * Library operations
 *
 * A library of the daemon's machine computes them, in the job's order like a launch: on a GPU cuBLASLt and
 * cuFFT, with the CPU driver a BLAS and FFTW 3. Without a library, a kernel of gpuq multiplies matrices, which
 * is slower, and Fourier transforms fail.
 *
 * The worker chooses an algorithm by the shape and the alignment alone. So the result has the same bits each
 * time, with the same versions of gpuq, library, driver and device. Workspace is scratch memory of the user's
 * worker, like copies of host buffers. In a prepared job their buffers can be replaced, their numbers stay.
 */
typedef enum gpuq_type {
        GPUQ_TYPE_F16 = 0,
        GPUQ_TYPE_BF16 = 1,
        GPUQ_TYPE_F32 = 2,
        GPUQ_TYPE_F64 = 3,
        GPUQ_TYPE_I32 = 4, /* integers: not for matrix products and transforms */
        GPUQ_TYPE_U32 = 5,
        GPUQ_TYPE_I64 = 6,
        GPUQ_TYPE_U64 = 7,
} gpuq_type;

typedef enum gpuq_compute {
        GPUQ_COMPUTE_DEFAULT = 0, /* f16 and bf16 are summed in f32, others in their own type */
        GPUQ_COMPUTE_TF32 = 1,    /* f32 may be rounded to TF32 (10 bits) before it is multiplied */
} gpuq_compute;

/* A row-major matrix in a buffer; in a batch, as many at equal distances. */
typedef struct gpuq_matrix {
        gpuq_buffer *buffer; /* borrowed until the call that takes it returns */
        size_t offset;       /* bytes, a multiple of an element's */
        uint64_t ld;         /* elements from one row to the next; 0: as many as a row has */
        uint64_t stride;     /* elements from one matrix of a batch to the next; 0: the same one */
        bool transposed;     /* it is stored transposed */
} gpuq_matrix;

/*
 * C = alpha A B + beta C. A is m x k, B is k x n, C is m x n. Begin with zeros, and set alpha.
 *
 * If beta is 0, C is not read. For f16, bf16 and f32, alpha and beta are rounded to f32.
 */
typedef struct gpuq_gemm {
        gpuq_type type; /* of all three matrices */
        gpuq_compute compute;
        uint64_t m, n, k; /* 1 to INT32_MAX */
        uint64_t batch;   /* products; 0 means 1 */
        double alpha, beta;
        gpuq_matrix a, b;
        gpuq_matrix c; /* not transposed; its matrices overlap neither each other nor a or b */
} gpuq_gemm;

/**
 * gpuq_job_gemm() - append a matrix product, or a batch of them
 *
 * a and b are used as GPUQ_IN, c as GPUQ_OUT_WHOLE if beta is 0 and all of the buffer is written, else as
 * GPUQ_INOUT. The first call of a client waits until the built-in kernels are loaded.
 *
 * Return: 0, or GPUQ_E_INVALID, whose text names the argument.
 */
GPUQ_API int gpuq_job_gemm(gpuq_job *job, const gpuq_gemm *gemm);

typedef enum gpuq_fft_form {
        GPUQ_FFT_COMPLEX = 0,
        GPUQ_FFT_REAL_TO_COMPLEX = 1,
        GPUQ_FFT_COMPLEX_TO_REAL = 2,
} gpuq_fft_form;

/*
 * Fourier transforms of contiguous arrays, one behind the other. Begin with zeros.
 *
 * They are not scaled: forth and back gives the numbers times the product of the lengths. A complex number is two
 * real ones. Of the complex side of a real transform only the first half of the last axis is there,
 * length / 2 + 1 numbers; from there to real numbers it is the inverse.
 */
typedef struct gpuq_fft {
        gpuq_type type; /* of a real number: GPUQ_TYPE_F32 or GPUQ_TYPE_F64 */
        gpuq_fft_form form;
        bool inverse;        /* of GPUQ_FFT_COMPLEX: the exponent is positive */
        unsigned rank;       /* axes: 1 to 3 */
        uint64_t lengths[3]; /* of the axes, the last one contiguous; together at most INT32_MAX */
        uint64_t batch;      /* transforms; 0 means 1 */
        gpuq_buffer *from;   /* borrowed, as the next, until the call that takes them returns */
        gpuq_buffer *to;     /* does not overlap from */
        size_t from_offset;  /* bytes, a multiple of a complex number's */
        size_t to_offset;    /* likewise */
} gpuq_fft;

/**
 * gpuq_job_fft() - append Fourier transforms: by cuFFT on a GPU, by FFTW 3 with the CPU driver
 *
 * The directions are as for gpuq_job_gemm(). Where the machine has no such library, the job fails with
 * GPUQ_E_NOT_FOUND.
 *
 * Return: 0, or GPUQ_E_INVALID, whose text names the argument.
 */
GPUQ_API int gpuq_job_fft(gpuq_job *job, const gpuq_fft *fft);

/*
 * Scan, sort and random numbers, as launches of built-in kernels
 *
 * They need no library, and have the same bits on every device, with the same version of gpuq. What they need between
 * their launches, the workspace, are buffers that the library makes, and that are charged to the user like any others,
 * until the job has ended or the prepared job is freed: in device memory if the result is there, else in host memory.
 * Of a detached job they are further outputs, behind those that the job has when the operation is appended.
 * Which buffers may overlap is checked when the operation is appended, and by gpuq_fire() of those that it swaps in.
 */

/* Prefix sums. Begin with zeros. */
typedef struct gpuq_scan {
        gpuq_type type; /* not GPUQ_TYPE_F16 or _BF16 */
        bool exclusive; /* number i of the result is the sum of the numbers before i, else also of i */
        uint64_t n;     /* numbers: 1 or more */
        gpuq_buffer *from; /* borrowed, as the next, until the call that takes them returns */
        gpuq_buffer *to;   /* the same buffer, or one that does not overlap from */
} gpuq_scan;

/**
 * gpuq_job_scan() - append prefix sums
 *
 * Integers wrap around. f32 and f64 are added up in f64, in an order that depends on n alone. @to is used as
 * GPUQ_OUT_WHOLE if all of its buffer is written, else as GPUQ_INOUT. It needs up to 8 KiB between its launches.
 *
 * Return: how many launches it appended, 1 or 2, each of which is an operation of the job; or GPUQ_E_INVALID, whose
 *         text names the argument, or another error.
 */
GPUQ_API int gpuq_job_scan(gpuq_job *job, const gpuq_scan *scan);

/*
 * Keys in order, and values that move with them. Begin with zeros.
 *
 * Equal keys keep their order, also in descending order. Of floats, -0.0 equals 0.0, and NaN counts as the largest: it
 * comes last, in descending order first. Bits do not change, also those of NaN.
 */
typedef struct gpuq_sort {
        gpuq_type type; /* of the keys: not GPUQ_TYPE_F16 or _BF16 */
        bool descending;
        uint64_t n;           /* keys: 1 or more */
        gpuq_buffer *keys;    /* borrowed, as the others, until the call that takes them returns */
        gpuq_buffer *to;      /* the same buffer, or one that does not overlap keys */
        unsigned value_bytes; /* of a value, a multiple of 4; 0: the next are NULL */
        gpuq_buffer *values;  /* does not overlap keys and to */
        gpuq_buffer
                *values_to; /* the same buffer as values, or one that overlaps none of the others */
} gpuq_sort;

/**
 * gpuq_job_sort() - append a radix sort
 *
 * The workspace is as large as the result, with about 2 MiB more at most. Results are used as for gpuq_job_scan().
 *
 * Return: how many launches it appended, 12 for keys of 4 bytes and 24 for those of 8; else as gpuq_job_scan().
 */
GPUQ_API int gpuq_job_sort(gpuq_job *job, const gpuq_sort *sort);

typedef enum gpuq_distribution {
        GPUQ_RANDOM_BITS = 0,    /* all values, equally: for i32, u32, i64 and u64 */
        GPUQ_RANDOM_UNIFORM = 1, /* greater than 0, at most 1: for f32 and f64, as the next */
        GPUQ_RANDOM_NORMAL = 2,  /* of mean 0 and variance 1 */
} gpuq_distribution;

/*
 * Random numbers of Philox 4x32-10, with the conventions of cuRAND. Begin with zeros.
 *
 * A seed and a stream give a sequence for each distribution and size of a type. Numbers offset to offset + n - 1 of it
 * are written, so several calls can continue a sequence, in any order. They have the same bits on every device.
 */
typedef struct gpuq_random {
        gpuq_distribution distribution;
        gpuq_type type;
        uint64_t n; /* numbers: 1 or more */
        uint64_t seed;
        uint64_t stream; /* what cuRAND calls the subsequence */
        uint64_t offset; /* of the first number, in numbers; with n less than 2^62 */
        gpuq_buffer *to; /* borrowed until the call that takes it returns */
} gpuq_random;

/**
 * gpuq_job_random() - append random numbers, by one launch of a built-in kernel
 *
 * @to is used as for gpuq_job_scan(). There is no workspace.
 *
 * Return: 1; else as gpuq_job_scan().
 */
GPUQ_API int gpuq_job_random(gpuq_job *job, const gpuq_random *random);

/** gpuq_job_read_variable() - append a copy from a __device__ or __constant__ variable to a buffer. */
GPUQ_API int gpuq_job_read_variable(gpuq_job *job, gpuq_module *module, const char *name,
                                    size_t offset, gpuq_buffer *to, size_t to_offset,
                                    size_t length);
/** gpuq_job_write_variable() - append a copy from a buffer to a variable. */
GPUQ_API int gpuq_job_write_variable(gpuq_job *job, gpuq_module *module, const char *name,
                                     size_t offset, gpuq_buffer *from, size_t from_offset,
                                     size_t length);
/**
 * gpuq_job_after() - run the job only after another job of this user
 * @id: a job of any process of this user
 *
 * If that job fails or is cancelled, this job fails with GPUQ_E_DEPENDENCY.
 */
GPUQ_API int gpuq_job_after(gpuq_job *job, uint64_t id);

/** gpuq_job_set_priority() - set the priority among this user's jobs: -100 (last) to 100 (first). */
GPUQ_API int gpuq_job_set_priority(gpuq_job *job, int priority);
/** gpuq_job_set_timeout() - limit the running time; waiting does not count. 0: the daemon's default. */
GPUQ_API int gpuq_job_set_timeout(gpuq_job *job, unsigned timeout_ms);
/** gpuq_job_set_label() - set a label that `gpuq queue` shows; at most 64 bytes; copied. */
GPUQ_API int gpuq_job_set_label(gpuq_job *job, const char *label);
/**
 * gpuq_job_set_device() - choose a device by index; -1: the daemon chooses
 *
 * Without a choice, a job with device memory runs on the device of the first such buffer that it
 * writes, else of the first that it reads. If that one is busy for long and another device of the
 * same kind is not, it may run there, where the data are read and written by peer access. A job may use
 * memory of other devices too, where the hardware allows their access (peer access); elsewhere it
 * fails with GPUQ_E_INVALID.
 */
GPUQ_API int gpuq_job_set_device(gpuq_job *job, int device);
/**
 * gpuq_job_set_repeatable() - declare that running the job twice is harmless
 *
 * It matters only for a job that changes device memory in place. After a fault of another
 * job or a crash of the daemon, gpuq may then run the job again instead of failing it.
 */
GPUQ_API int gpuq_job_set_repeatable(gpuq_job *job, bool repeatable);
/** gpuq_job_set_timed() - request the running time on the GPU, gpuq_result.gpu_ns. */
GPUQ_API int gpuq_job_set_timed(gpuq_job *job, bool timed);
/**
 * gpuq_job_set_checked() - compare each access of the job's kernels with its buffers
 *
 * The first load, store or atomic operation outside of all buffers of the job, of the block's shared
 * memory and of the module's variables ends the job with GPUQ_E_FAULT, and so does a store to a
 * GPUQ_IN buffer. The text names the kernel, the argument and the index, the thread, and the line of
 * the source. Nothing is read or written there, and no other job is affected.
 *
 * So does a load of bytes that nobody wrote, in a buffer that is GPUQ_OUT or GPUQ_OUT_WHOLE for the whole
 * job. Written is what the job's kernels stored there before, atomic operations included, and what its
 * fills, copies and library operations wrote. The zeros of GPUQ_OUT do not count: a kernel that loads
 * them takes the buffer as GPUQ_INOUT, or comes behind a fill. The job needs device memory for this, an
 * eighth of these buffers, and fails with GPUQ_E_MEMORY without it. See docs/kernels.md for what is
 * not seen.
 *
 * The job runs a version of its kernels that takes several to 80 times as long (docs/benchmarks.md). gpuq_submit() compiles it, from
 * source or PTX, for the first job of a module, and may fail like gpuq_module_load(); so do
 * gpuq_prepare() and gpuq_job_detach(). That version has variables of its own.
 *
 * Not found is an access that lies in another buffer of the job. Buffers in host memory are kept
 * 64 KiB apart while the job runs; device buffers stay where they are. Not checked are local
 * variables, textures, constant memory, and shared memory of other blocks. The module's variables count as one. A
 * module in which a kernel calls malloc() is refused.
 *
 * Of library operations, scans, sorts and random numbers are launches of built-in kernels, whose accesses are
 * compared like those of others. Those of matrix products and Fourier transforms are not compared, whether a library
 * or gpuq's own code computes them: of these, and of copies and fills, only the ranges that the call names are compared
 * with their buffers, as in every job, before the operation runs.
 */
GPUQ_API int gpuq_job_set_checked(gpuq_job *job, bool checked);

typedef enum gpuq_state {
        GPUQ_BUILDING = -1, /* not submitted yet */
        GPUQ_PENDING = 0,   /* submitted, not finished */
        GPUQ_DONE = 2,
        GPUQ_FAILED = 3,
        GPUQ_CANCELLED = 4,
} gpuq_state;

typedef struct gpuq_result {
        gpuq_state state;
        int error;          /* 0, or the GPUQ_E_ code of the failure */
        const char *text;   /* the full message, "" if done; owned by the job */
        const char *output; /* what the kernels printed, or ""; owned by the job */
        uint64_t waited_us; /* from submission to start, measured by the daemon */
        uint64_t ran_us;    /* from start to end, measured by the daemon */
        uint64_t gpu_ns;    /* running time on the GPU, if gpuq_job_set_timed() requested it */
        int device;         /* index of the device where it ran */
} gpuq_result;

typedef void (*gpuq_job_func)(gpuq_job *job, void *userdata);
/**
 * gpuq_job_set_callback() - set a function that is called once when the job ends
 *
 * gpuq_dispatch(), gpuq_wait(), gpuq_run(), gpuq_poll() or gpuq_client_free() calls it, in
 * the first thread that is in one of them. No lock is held: the function may call the
 * library, and may also wait or free the job. A gpuq_wait() for the job returns after the
 * function has returned.
 */
GPUQ_API int gpuq_job_set_callback(gpuq_job *job, gpuq_job_func func, void *userdata);

/**
 * gpuq_submit() - submit a job without waiting for it
 *
 * Do not access its buffers until it has ended. The call sends as much as the daemon
 * accepts now; the next call that dispatches or waits sends the rest.
 *
 * Return: 0, or GPUQ_E_AGAIN if the daemon does not read: nothing was submitted.
 */
GPUQ_API int gpuq_submit(gpuq_job *job);
/**
 * gpuq_submit_many() - submit several jobs in this order, in as few messages as possible
 *
 * On failure, no job is submitted.
 */
GPUQ_API int gpuq_submit_many(gpuq_job *const *jobs, size_t n_jobs);

/*
 * Prepared jobs
 *
 * For jobs that run often. The client sends the job once; the daemon keeps it. To run it,
 * the client fires it: it sends only the job's number and what has changed. A fired job is
 * like any other job.
 */
typedef struct gpuq_prepared gpuq_prepared;

/**
 * Replaces a buffer everywhere in the prepared job; the direction stays the same. What a copy or a library operation
 * keeps apart must be apart afterwards, too.
 */
typedef struct gpuq_swap {
        gpuq_buffer *was, *now;
} gpuq_swap;

/** Replaces a scalar by one of the same kind and size. */
typedef struct gpuq_set {
        /* index in the job, from 0; a scan or sort has as many as it appended; error messages count from 1 */
        size_t operation;
        size_t argument; /* index in that launch, from 0; error messages count from 1 */
        gpuq_arg value;
} gpuq_set;

/** What differs in one fired job; all 0: nothing. */
typedef struct gpuq_fire_args {
        const gpuq_swap *swaps;
        size_t n_swaps;
        const gpuq_set *sets;
        size_t n_sets;
        gpuq_job_func func; /* as for gpuq_job_set_callback() */
        void *userdata;
} gpuq_fire_args;

/**
 * gpuq_prepare() - prepare a job that is built but not submitted
 *
 * Afterwards the job may be changed, submitted or freed; the prepared job does not change
 * and keeps its modules and buffers alive. It may have 256 buffers and 16 KiB of
 * operations, which is about 200 launches, and may not depend on other jobs.
 *
 * Return: 0, GPUQ_E_QUOTA, GPUQ_E_INVALID or another error.
 */
GPUQ_API int gpuq_prepare(gpuq_job *job, gpuq_prepared **ret_prepared);
/**
 * gpuq_fire() - submit a prepared job
 * @args:    NULL: as it was prepared
 * @ret_job: the submitted job; the caller frees it
 *
 * A client that fires jobs as they were prepared and does nothing else with the daemon may have its
 * worker take them without the daemon, which is faster; then, with 512 unfinished jobs, this waits up
 * to 20 ms for one to end.
 *
 * Return: as gpuq_submit().
 */
GPUQ_API int gpuq_fire(gpuq_prepared *prepared, const gpuq_fire_args *args, gpuq_job **ret_job);
/** gpuq_prepared_free() - free a prepared job; jobs already fired still run. */
GPUQ_API void gpuq_prepared_free(gpuq_prepared *prepared);

/*
 * Detached jobs
 *
 * The daemon stores a detached job on its disk. The job outlives this client and the
 * daemon. Its outputs stay on disk until they are fetched and discarded, or until
 * detached_keep_s (gpuqd.conf) has passed.
 */

#define GPUQ_NOTE_MAX 65536u /* bytes */

/** The contents of one buffer that a detached job wrote. */
typedef struct gpuq_output {
        const void *data;
        size_t size;
} gpuq_output;

/** How a detached job ended, and its outputs if it is done. One block of memory, read-only. */
typedef struct gpuq_fetched {
        gpuq_result result;
        const void *note; /* the note given to gpuq_job_detach() */
        size_t n_note;
        const gpuq_output
                *outputs; /* one per buffer that is not GPUQ_IN, in the order of first use */
        size_t n_outputs;
} gpuq_fetched;

/**
 * gpuq_job_detach() - submit a job that is built but not submitted as a detached job
 * @note:   any bytes of the caller; returned with the outputs; copied
 * @n_note: bytes, at most GPUQ_NOTE_MAX
 *
 * Returns when the job and the contents of its buffers are on the daemon's disk.
 * Afterwards the job and its buffers may be changed, used or freed. The job may use only
 * host buffers. It may not depend on other jobs, and other jobs may not depend on it. Any
 * process of this user can wait for it with gpuq_wait_id() and cancel it with
 * gpuq_cancel_ids().
 *
 * Return: 0, GPUQ_E_QUOTA, GPUQ_E_NO_DEVICE (this daemon keeps no detached jobs),
 *         GPUQ_E_INTERNAL (its disk failed) or another error.
 */
GPUQ_API int gpuq_job_detach(gpuq_job *job, const void *note, size_t n_note, uint64_t *ret_id);
/**
 * gpuq_fetch() - wait until a detached job has ended, and get its result and outputs
 *
 * The daemon keeps them until gpuq_discard().
 *
 * Return: 0 also if the job failed, see gpuq_fetched.result; GPUQ_E_NOT_FOUND,
 *         GPUQ_E_NO_DEVICE (the daemon cannot access its detached jobs now),
 *         GPUQ_E_INTERNAL (the job is damaged on the daemon's disk) or another error.
 */
GPUQ_API int gpuq_fetch(gpuq_client *client, uint64_t id, gpuq_fetched **ret_fetched);
/** gpuq_fetched_free() - free a result and its outputs. */
GPUQ_API void gpuq_fetched_free(gpuq_fetched *fetched);
/**
 * gpuq_discard() - delete a detached job that has ended
 *
 * Return: 0, GPUQ_E_NOT_FOUND, GPUQ_E_NO_DEVICE, or GPUQ_E_INVALID (it has not ended).
 */
GPUQ_API int gpuq_discard(gpuq_client *client, uint64_t id);

/**
 * gpuq_wait() - wait until a job ends
 * @timeout_ms: -1: no limit
 *
 * Return: 0 if the job is done, the GPUQ_E_ code of its failure, or GPUQ_E_AGAIN if it has
 *         not ended in time.
 */
GPUQ_API int gpuq_wait(gpuq_job *job, int timeout_ms);
/**
 * gpuq_wait_id() - wait until a job of any process of this user ends
 * @ret_result: may be NULL; its strings are valid until this thread calls this function again
 *
 * Return: as gpuq_wait().
 */
GPUQ_API int gpuq_wait_id(gpuq_client *client, uint64_t id, int timeout_ms,
                          gpuq_result *ret_result);
/** gpuq_run() - submit a job and wait until it ends. Return: as gpuq_wait(). */
GPUQ_API int gpuq_run(gpuq_job *job);
/** gpuq_poll() - check without waiting. Return: 1 if it has ended, 0 if not, or a negative GPUQ_E_ code. */
GPUQ_API int gpuq_poll(gpuq_job *job);
/** gpuq_cancel() - ask the daemon to cancel a job. It may still end in another way. */
GPUQ_API int gpuq_cancel(gpuq_job *job);
/** gpuq_job_get_result() - get the result of a job. Return: 0, or GPUQ_E_AGAIN if it has not ended. */
GPUQ_API int gpuq_job_get_result(const gpuq_job *job, gpuq_result *ret_result);
/** gpuq_job_id() - the id of a job, for gpuq_job_after() and `gpuq queue`; 0 before it is submitted. */
GPUQ_API uint64_t gpuq_job_id(const gpuq_job *job);
/** gpuq_job_free() - free a job. If it was submitted, it still runs, and its result is lost. */
GPUQ_API void gpuq_job_free(gpuq_job *job);

/** gpuq_id_format() - format an id as text, such as "12.3". @text: at least 24 bytes. Return: @text. */
GPUQ_API char *gpuq_id_format(uint64_t id, char *text);
/** gpuq_id_parse() - parse "12.3" or a decimal number. Return: 0 or GPUQ_E_INVALID. */
GPUQ_API int gpuq_id_parse(const char *text, uint64_t *ret_id);

/* ---- the daemon's state ------------------------------------------------------ */

typedef struct gpuq_device_status {
        unsigned index;
        const char *name, *uuid, *pci;
        const char *state;                    /* "ready", or why not */
        uint64_t memory_total, memory_arenas; /* bytes: in all, and in buffers */
        unsigned queued, running;             /* jobs: waiting, and running */
        uint64_t quanta;     /* time slices in which one user had the device alone */
        uint64_t overruns;   /* of these, time slices that ended late */
        const char *drained; /* NULL: accepts jobs; else drained by "admin" or "itself" */
        int64_t xids; /* errors that NVIDIA's driver logged; -1: the daemon does not read that log */
        uint64_t memory_used; /* bytes in use by all programs, as last measured; 0: not yet */
} gpuq_device_status;

/* How a worker ran its jobs since it started. A busy worker reports at least once a second. */
typedef struct gpuq_worker_counters {
        uint64_t batches;   /* launches that ran several jobs */
        uint64_t coalesced; /* jobs in these launches */
        uint64_t in_place;  /* jobs whose kernel worked on host memory directly */
        uint64_t staged_by_kernel, staged_by_copy; /* jobs whose host data was copied, and how */
        uint64_t graph_hits, graph_misses, graph_evictions; /* of the cache of CUDA graphs */
        uint64_t direct; /* prepared jobs that the worker took from its clients itself */
} gpuq_worker_counters;

typedef struct gpuq_worker_status {
        int pid;
        unsigned device;
        uint32_t uid;
        const char *state;
        uint64_t memory;            /* device memory of its process, bytes */
        unsigned running, contexts; /* jobs; CUDA contexts */
        uint64_t jobs;              /* since it started */
        gpuq_worker_counters counters;
        unsigned express; /* 1: for the short jobs of a user whose other worker has a long one */
} gpuq_worker_status;

typedef struct gpuq_spread {
        uint64_t median_us, p95_us, p99_us; /* to about 10 % */
} gpuq_spread;

typedef struct gpuq_user_status {
        uint32_t uid;
        const char *user;
        double weight;
        double share;                       /* of the GPU time of the last minute, 0 to 1 */
        double gpu_seconds;                 /* GPU time, in seconds */
        unsigned sessions;                  /* connections */
        unsigned queued, running;           /* jobs: waiting, and running */
        unsigned modules;                   /* loaded ones */
        uint64_t arena_bytes, device_bytes; /* of host and of device memory in buffers */
        double usage_seconds;               /* GPU time, halved every usage_half_life_s */
        double window_seconds;              /* GPU time that counts against the limit gpu_seconds */
        uint64_t done, failed, cancelled;   /* jobs that ended; like gpu_seconds, from 0 again after
                                           * a restart of gpuqd, or if the user was idle for long */
        bool has_waited;                    /* jobs ended in the last minute */
        gpuq_spread waited;                 /* the time that each of these waited */
        const char *sms; /* share of each device's SMs, as in gpuqd.conf, such as "25%"; "": all */
} gpuq_user_status;

/* A limit of gpuqd.conf. A key that ends in _bytes counts bytes, gpu_seconds counts seconds. */
typedef struct gpuq_user_limit {
        uint32_t uid;
        const char *key; /* in gpuqd.conf, such as "jobs" */
        uint64_t limit;  /* UINT64_MAX: none */
        uint64_t used;
        uint64_t
                left; /* what the user can still get: less than limit - used where all users share what
                        * there is of it; UINT64_MAX: no end */
} gpuq_user_limit;

/* A job of Slurm that connected clients belong to. */
typedef struct gpuq_slurm_job_status {
        uint32_t number;
        uint32_t uid;
        const char *account; /* "": not known */
        double weight;       /* of the user, for all of the user's jobs together */
        unsigned clients;    /* connections */
} gpuq_slurm_job_status;

typedef struct gpuq_status {
        const char *daemon, *driver, *driver_version, *state;
        gpuq_device_status *devices;
        gpuq_worker_status *workers;
        gpuq_user_status *users;
        size_t n_devices, n_workers, n_users;
        unsigned queued, running;
        uint64_t uptime_us;
        const char *lacks;           /* a right that the daemon lacks, and the effect; NULL: none */
        const char *history_problem; /* why no history is being written; "": it is */
        uint64_t history_lost;       /* jobs since the start that are missing in it */
        uint32_t uid;                /* of the calling process */
        gpuq_user_limit *limits;     /* of that user; for root and the admin group of all users */
        size_t n_limits;
        gpuq_slurm_job_status *slurm_jobs; /* of the same users */
        size_t n_slurm_jobs;
        const char *isolation; /* "user", "shared" or "shared, fenced"; "": not told */
} gpuq_status;

typedef struct gpuq_queue_entry {
        uint64_t id;
        uint32_t uid;
        const char *user, *label, *kernel;
        const char *reason; /* why it waits, or why its worker runs no job yet; "": neither */
        const char *state;  /* "waiting" or "running" */
        uint64_t waited_us, ran_us;
        int priority;
        int device; /* -1: not chosen yet */
        unsigned retries;
        uint32_t
                slurm_job; /* of the process that submitted it; 0: none, or hidden like the label */
} gpuq_queue_entry;

/* A module that is not loaded yet. */
typedef struct gpuq_queue_module {
        uint32_t uid;
        const char *user, *name, *reason;
        uint64_t waited_us;
        int device; /* -1: not chosen yet */
} gpuq_queue_module;

typedef struct gpuq_queue {
        gpuq_queue_entry *entries;
        size_t n_entries;
        gpuq_queue_module *modules;
        size_t n_modules;
} gpuq_queue;

/** gpuq_get_status() - get the state of the daemon. Free it with gpuq_status_free(). */
GPUQ_API int gpuq_get_status(gpuq_client *client, gpuq_status **ret_status);
GPUQ_API void gpuq_status_free(gpuq_status *status);
/**
 * gpuq_get_queue() - get all waiting and running jobs, and loading modules. Free it with gpuq_queue_free().
 * @uid: of this user; -1: of all users. Names and labels of others are empty, except for administrators.
 *
 * The daemon sends 1,024 of them at a time: a longer list shows each part as it was when it was sent.
 */
GPUQ_API int gpuq_get_queue(gpuq_client *client, int64_t uid, gpuq_queue **ret_queue);
GPUQ_API void gpuq_queue_free(gpuq_queue *queue);

/* Where a job's time went, one part after the other. */
typedef struct gpuq_job_times {
        uint64_t dependencies_us; /* it waited for jobs that it has to follow */
        uint64_t module_us;       /* for its modules to be loaded */
        uint64_t queue_us;        /* for its turn */
        uint64_t launch_us;       /* in its worker, before and after it ran */
        uint64_t ran_us;          /* with copies of host data */
        uint64_t moved_bytes;     /* of host data: copied, or accessed where it is */
        uint64_t gpu_ns;          /* of ran_us, if gpuq_job_set_timed() requested it */
} gpuq_job_times;

typedef struct gpuq_explanation {
        uint64_t id;
        uint32_t uid;
        const char *state;          /* "waiting", "running", "done", "failed" or "cancelled" */
        const char *label, *kernel; /* "" once it has ended */
        const char *reason;         /* why it waits, failed or was cancelled, or "" */
        int device;                 /* -1: none */
        gpuq_job_times times;       /* so far, of a job that has not ended */
        gpuq_job_times median; /* of each, of jobs of the same kernels and size that were done */
        size_t n_median;       /* those jobs: of the user's last 4,096 */
        unsigned n_beside;     /* most jobs in its worker, itself included; 0: not known */
        const char *advice;    /* what would help it most: "nothing", "less-memory", "pin",
                                    * "keep-data", "in-flight" or "prepare", see gpuq(1) */
} gpuq_explanation;

/**
 * gpuq_explain() - find out where a job's time went, and what would help it most
 *
 * The job waits, runs, or is one of the last 4,096 of its user that ended. Free the explanation with
 * gpuq_explanation_free(). Detached jobs are not explained. The advice for a job that failed or was
 * cancelled is "nothing".
 *
 * Return: 0, GPUQ_E_DENIED (another user's), GPUQ_E_NOT_FOUND (unknown, or forgotten), GPUQ_E_INVALID (detached)
 * or another error.
 */
GPUQ_API int gpuq_explain(gpuq_client *client, uint64_t id, gpuq_explanation **ret_explanation);
GPUQ_API void gpuq_explanation_free(gpuq_explanation *explanation);

/*
 * A job that ended, as gpuq trace draws it. Times that end with _ns are of the CLOCK_MONOTONIC of gpuqd,
 * unless they are durations. A job waits from submitted_ns until started_ns: behind_ns of that for jobs
 * that it has to follow, parked_ns for its modules, and the rest for its turn. It then is in its worker
 * until ended_ns, and runs for ran_us before that.
 */
typedef struct gpuq_trace_job {
        uint64_t id;
        uint32_t uid;
        const char *state;   /* "done", "failed" or "cancelled" */
        const char *code;    /* as "GPUQ_E_FAULT"; "" when done */
        const char *label;   /* or "" */
        const char *kernels; /* separated by ", ", at most 96 bytes */
        const char *program; /* of the client that submitted it; "": not known */
        int client_pid;      /* 0: not known */
        int device;          /* -1: it reached no worker */
        int worker_pid;      /* 0: it reached none */
        int stream;          /* of the worker, from 0; -1: not known */
        uint64_t submitted_ns;
        uint64_t started_ns; /* when it was handed over to its worker; 0: never */
        uint64_t ended_ns;
        uint64_t behind_ns, parked_ns; /* durations */
        uint64_t ran_us;               /* with copies of host data */
        uint64_t gpu_ns;               /* of that, if gpuq_job_set_timed() requested it */
        uint64_t moved_bytes;          /* of host data: copied, or accessed where it is */
        unsigned n_beside;             /* most jobs in its worker, itself included */
        unsigned retries;
} gpuq_trace_job;

/* Where a trace goes on. Begin with zeros; gpuq_get_trace() sets it. */
typedef struct gpuq_trace_cursor {
        uint64_t trace, next;
} gpuq_trace_cursor;

typedef struct gpuq_trace {
        gpuq_trace_job *jobs; /* the first to end first */
        size_t n_jobs;        /* at most 256 */
        uint64_t lost;        /* jobs that ended since the call before and are missing */
        uint64_t now_ns;      /* CLOCK_MONOTONIC of gpuqd */
        uint64_t unix_ns;     /* the same moment, since 1970 */
        bool is_last;         /* no more jobs have ended; else call again at once */
        bool all_users;       /* the jobs are those of all users, not only of this one */
} gpuq_trace;

/**
 * gpuq_get_trace() - get the jobs that ended since the call before with the same @cursor
 *
 * They are those of this user; for root and the admin group, those of all users. The first call begins
 * the trace and gets no job. gpuqd keeps the last 4,096 jobs, each for at least 0.25 s if the next call
 * comes within that time, and counts the others in `lost`. It forgets a trace for which nobody called for
 * 5 s. Free the result with gpuq_trace_free().
 *
 * Return: 0, GPUQ_E_NOT_FOUND (the trace was forgotten, or gpuqd restarted: set @cursor to zeros and begin
 * again), GPUQ_E_QUOTA (too many users trace now, or this user has no memory left for it) or another error.
 */
GPUQ_API int gpuq_get_trace(gpuq_client *client, gpuq_trace_cursor *cursor, gpuq_trace **ret_trace);
GPUQ_API void gpuq_trace_free(gpuq_trace *trace);

/* What to read of the history. Times in milliseconds since 1970. */
typedef struct gpuq_history_query {
        int64_t uid; /* -1: all users for root and the admin group, and for others themselves */
        const uint32_t *uids; /* these users, unless there is a uid; at most 100 */
        size_t n_uids;
        const uint64_t *ids; /* these jobs; at most 100 */
        size_t n_ids;        /* 0: all */
        int device;          /* -1: all */
        uint64_t since_ms;   /* jobs that ended from then on */
        uint64_t until_ms;   /* and before that; 0: without end */
        const char *state;   /* of "done", "failed", "cancelled" some, with commas; NULL: all */
        const char *kernel;  /* jobs with this kernel; NULL: all */
        const char *label;   /* NULL: all */
        uint64_t next_ms;    /* gpuq_get_history() sets these two; 0 at first */
        uint64_t next_row;
        uint32_t slurm_job; /* jobs of this job of Slurm; 0: all */
} gpuq_history_query;

/* One job, or several short ones of one user, label, kernels, device, Slurm job and minute that ended alike. */
typedef struct gpuq_history_row {
        uint64_t id;    /* 0: of several jobs */
        uint64_t at_ms; /* since 1970: when it ended; of a row for several: when its minute began */
        uint64_t submitted_ms; /* since 1970; 0: of a row for several */
        uint32_t uid, gid;
        const char *label;
        const char *kernels; /* separated by ", " */
        const char *state;   /* "done", "failed" or "cancelled" */
        const char *code;    /* as "GPUQ_E_FAULT"; "" when done */
        const char *reason;  /* of several: of the first one */
        int device;          /* -1: none */
        uint64_t jobs;
        uint64_t waited_us, ran_us; /* of all jobs together, like the next three */
        uint64_t gpu_ns; /* that counts for fair share: of concurrent jobs once together */
        uint64_t bytes;  /* copied for host buffers */
        uint64_t retries;
        gpuq_spread waited, ran; /* of one job three times its time */
        uint32_t slurm_job;      /* of the process that submitted it; 0: none */
} gpuq_history_row;

typedef struct gpuq_history {
        gpuq_history_row *rows; /* the oldest first */
        size_t n_rows;          /* may be 0 although there are more */
        bool is_last;
} gpuq_history;

/**
 * gpuq_get_history() - get a part of the history; the next call with the same @query gets the next one
 *
 * Free it with gpuq_history_free().
 *
 * Return: 0, GPUQ_E_DENIED (another user's), GPUQ_E_NOT_FOUND (none is kept) or another error.
 */
GPUQ_API int gpuq_get_history(gpuq_client *client, gpuq_history_query *query,
                              gpuq_history **ret_history);
GPUQ_API void gpuq_history_free(gpuq_history *history);

typedef enum gpuq_report_by {
        GPUQ_REPORT_BY_USER,
        GPUQ_REPORT_BY_GROUP,
        GPUQ_REPORT_BY_LABEL,     /* of each user */
        GPUQ_REPORT_BY_SLURM_JOB, /* of each user */
        GPUQ_REPORT_BY_ACCOUNT,   /* of Slurm */
} gpuq_report_by;

/* Sums of history rows. */
typedef struct gpuq_report_row {
        uint32_t uid;      /* 0 by group and account */
        uint32_t gid;      /* 0 by label and account */
        const char *label; /* "" but by label */
        uint64_t jobs;
        uint64_t failed, cancelled; /* of them */
        uint64_t waited_us, ran_us;
        uint64_t gpu_ns;
        uint64_t bytes;
        uint64_t retries;
        uint32_t slurm_job;  /* by Slurm job; 0: jobs of no job of Slurm */
        const char *account; /* "" but by account; by account: jobs without one */
} gpuq_report_row;

typedef struct gpuq_report {
        gpuq_report_row *rows; /* the most GPU time first */
        size_t n_rows;         /* at most 1,000 */
        bool is_cut;           /* there are more */
} gpuq_report;

/* What to sum up; all but `by` as in gpuq_history_query. */
typedef struct gpuq_report_query {
        gpuq_report_by by;
        int64_t uid;
        const uint32_t *uids;
        size_t n_uids;
        int device;
        uint64_t since_ms;
        uint64_t until_ms;
} gpuq_report_query;

/**
 * gpuq_get_report() - sum up the history
 *
 * Free it with gpuq_report_free(). Return: as gpuq_get_history(), or GPUQ_E_TIMEOUT: there are too many
 * rows for one report.
 */
GPUQ_API int gpuq_get_report(gpuq_client *client, const gpuq_report_query *query,
                             gpuq_report **ret_report);
GPUQ_API void gpuq_report_free(gpuq_report *report);

/**
 * gpuq_drain() - stop new jobs on a device; running jobs finish. Root and the admin group only.
 * @reason: shown to users, at most 200 bytes; NULL: that of an earlier drain stays, else none
 *
 * Return: the number of jobs still running there, or a negative GPUQ_E_ code.
 */
GPUQ_API int gpuq_drain(gpuq_client *client, unsigned device, const char *reason);
/**
 * gpuq_resume() - let a device accept jobs again, whether an administrator or gpuqd drained it
 *
 * Return: 1 if it was drained, 0 if not, or a negative GPUQ_E_ code.
 */
GPUQ_API int gpuq_resume(gpuq_client *client, unsigned device);

typedef struct gpuq_cancelled {
        size_t n_ended;   /* cancelled, or being cancelled, by this call */
        size_t n_unknown; /* no such job */
        size_t n_denied;  /* jobs of other users */
} gpuq_cancelled;

/**
 * gpuq_cancel_ids() - cancel jobs of any process
 * @n_ids: 0: all unfinished jobs of this user, but never those of others
 *
 * Ids are sent 4,096 at a time; after an error the jobs of earlier portions are cancelled all the same.
 *
 * Return: 0, GPUQ_E_NO_DEVICE (one is a detached job and the daemon cannot access these
 *         now; no job of its portion was cancelled) or another error.
 */
GPUQ_API int gpuq_cancel_ids(gpuq_client *client, const uint64_t *ids, size_t n_ids,
                             gpuq_cancelled *ret_cancelled);
/**
 * gpuq_cancel_slurm_job() - cancel the unfinished jobs that processes of a job of Slurm submitted, detached ones too
 *
 * They are those of this user; for root and the admin group, those of all users. Return: 0, GPUQ_E_INVALID
 * (0 is no job) or another error.
 */
GPUQ_API int gpuq_cancel_slurm_job(gpuq_client *client, uint32_t slurm_job,
                                   gpuq_cancelled *ret_cancelled);

#ifdef __cplusplus
}
#endif

#endif
