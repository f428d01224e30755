/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_H
#define GPUQ_H

/*
 * libgpuq - share the machine's GPUs through gpuqd
 *
 * A client is one connection to the daemon, a session. Buffers are slices of
 * memory that both sides see, or of device memory. A module holds kernels. A job
 * is a list of operations on buffers; it is submitted, runs asynchronously, and
 * ends once: done, failed or cancelled.
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
 *   - Functions that return int give 0 (or a count) on success and a negative
 *     GPUQ_E_ code on failure; gpuq_error_text() then has the full text, per
 *     thread, until the next call of that thread fails. ret_ pointers are written
 *     only on success.
 *   - Every object is freed by its _free function, which accepts NULL; elsewhere a
 *     NULL handle is GPUQ_E_INVALID. Freeing a
 *     client last or first are both right: objects of a freed client stay valid
 *     to free and give GPUQ_E_CLOSED otherwise.
 *   - Safe with threads: any thread may use any object; one object is not to be
 *     freed while another thread uses it. A callback runs in the thread that dispatches.
 *   - After fork() a handle of the parent gives GPUQ_E_FORKED in the child, which
 *     may free it (the parent's session is not disturbed) and connect anew.
 *   - Sizes, offsets and lengths are bytes; times carry their unit in the name.
 *
 * When the daemon is started again, because it was upgraded or killed, calls that wait go
 * on waiting, jobs that were submitted run once, and buffers, modules and prepared jobs are
 * what they were; gpuq_client_fd() stays the same. The library comes back from within the
 * calls that wait, submit or dispatch, for it has no thread; what a program had is kept until
 * it makes one, as long as it lives. When the daemon is stopped in order, or does not know the
 * session any more, that is GPUQ_E_SHUTDOWN; where nobody listens any more it is GPUQ_E_CLOSED
 * at once.
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
        /* told by the daemon; the numbers are those of proto/gpuq.proto, negative */
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
        /* the library's own */
        GPUQ_E_CONNECT = -100, /* no daemon there; the text has the path and what to do */
        GPUQ_E_CLOSED = -101,  /* the connection ended, or the client was freed */
        GPUQ_E_FORKED = -102,  /* a handle inherited through fork() */
        GPUQ_E_AGAIN = -103,   /* not ended within the time given */
        GPUQ_E_SYSTEM = -104,  /* a system call failed; the text has errno's word */
} gpuq_error;

/** gpuq_error_text() - what went wrong in this thread's last failed call. Never NULL; valid until the next failure. */
GPUQ_API const char *gpuq_error_text(void);
/** gpuq_error_name() - "GPUQ_E_QUOTA" for GPUQ_E_QUOTA. Never NULL. */
GPUQ_API const char *gpuq_error_name(int error);
/** gpuq_version() - of the library, as text. */
GPUQ_API const char *gpuq_version(void);

/* ---- client ---------------------------------------------------------------- */

/**
 * gpuq_connect() - open a session
 * @path: the daemon's socket; NULL: $GPUQ_SOCKET, else $XDG_RUNTIME_DIR/gpuq.sock if there is
 *        one, else /run/gpuq/gpuqd.sock
 *
 * Return: 0; GPUQ_E_CONNECT, GPUQ_E_VERSION, GPUQ_E_DENIED, GPUQ_E_QUOTA.
 */
GPUQ_API int gpuq_connect(const char *path, gpuq_client **ret_client);
/**
 * gpuq_client_free() - end the session; its unfinished jobs are cancelled, its memory goes back
 *
 * Jobs that are not freed yet end here with GPUQ_E_CLOSED, callbacks included.
 */
GPUQ_API void gpuq_client_free(gpuq_client *client);

/**
 * gpuq_client_fd() - for your own event loop: poll it for gpuq_client_events(), then gpuq_dispatch()
 *
 * It is also readable when another call has read the end of a job whose callback
 * is still to be run. It stays the same, and the library's.
 *
 * Return: the descriptor, or a negative GPUQ_E_.
 */
GPUQ_API int gpuq_client_fd(gpuq_client *client);
/** gpuq_client_events() - POLLIN, with POLLOUT when something waits to be sent; or a negative GPUQ_E_. */
GPUQ_API int gpuq_client_events(gpuq_client *client);
/**
 * gpuq_dispatch() - send and receive what is possible now, run callbacks
 * @timeout_ms: how long to wait for something to do; 0: do not wait, -1: for ever
 *
 * Returns early after any message or signal (EINTR), so that an interpreter can
 * run its handlers; the other calls that wait go on after a signal.
 *
 * Return: how many jobs ended (>= 0), or a negative GPUQ_E_.
 */
GPUQ_API int gpuq_dispatch(gpuq_client *client, int timeout_ms);
/** gpuq_client_session() - the daemon's number of this session. */
GPUQ_API uint32_t gpuq_client_session(const gpuq_client *client);
/** gpuq_client_devices() - how many devices the daemon has. */
GPUQ_API unsigned gpuq_client_devices(const gpuq_client *client);

/* ---- buffers --------------------------------------------------------------- */

/** A buffer's name across the processes of one user. */
typedef struct gpuq_buffer_ref {
        uint64_t arena;
        uint64_t offset;
        uint64_t length;
} gpuq_buffer_ref;

/** gpuq_buffer_new() - host memory that the daemon sees too; zeroed. @size > 0. */
GPUQ_API int gpuq_buffer_new(gpuq_client *client, size_t size, gpuq_buffer **ret_buffer);
/** gpuq_buffer_new_uninitialized() - the same for who writes all of it: zeros, or what a freed buffer of this client held. */
GPUQ_API int gpuq_buffer_new_uninitialized(gpuq_client *client, size_t size,
                                           gpuq_buffer **ret_buffer);
/** gpuq_buffer_new_device() - device memory, zeroed, kept between jobs. @device: index, or -1 for the daemon's choice. */
GPUQ_API int gpuq_buffer_new_device(gpuq_client *client, size_t size, int device,
                                    gpuq_buffer **ret_buffer);
/** gpuq_buffer_slice() - a part of a buffer; keeps the whole alive. */
GPUQ_API int gpuq_buffer_slice(gpuq_buffer *buffer, size_t offset, size_t size,
                               gpuq_buffer **ret_slice);
/** gpuq_buffer_get_ref() - the name under which another process of this user can open it. */
GPUQ_API int gpuq_buffer_get_ref(gpuq_buffer *buffer, gpuq_buffer_ref *ret_ref);
/** gpuq_buffer_open() - a buffer by name; it lives as long as any session has it. */
GPUQ_API int gpuq_buffer_open(gpuq_client *client, const gpuq_buffer_ref *ref,
                              gpuq_buffer **ret_buffer);
/** gpuq_buffer_data() - its host memory, yours to fill between jobs; NULL for device memory. Valid until freed. */
GPUQ_API void *gpuq_buffer_data(gpuq_buffer *buffer);
/** gpuq_buffer_size() - bytes. */
GPUQ_API size_t gpuq_buffer_size(const gpuq_buffer *buffer);
/** gpuq_buffer_device() - index of the device it is on, or -1 for host memory. */
GPUQ_API int gpuq_buffer_device(const gpuq_buffer *buffer);
/** gpuq_buffer_free() - jobs already submitted keep what they need of it. */
GPUQ_API void gpuq_buffer_free(gpuq_buffer *buffer);

/* ---- modules --------------------------------------------------------------- */

typedef enum gpuq_format {
        GPUQ_FORMAT_AUTO = 0, /* told from the first bytes */
        GPUQ_FORMAT_SOURCE = 1,
        GPUQ_FORMAT_PTX = 2,
        GPUQ_FORMAT_CUBIN = 3,
        GPUQ_FORMAT_FATBIN = 4,
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
        GPUQ_WORD64 = 8, /* of a parameter: pointer or 8-byte integer */
} gpuq_kind;

typedef struct gpuq_parameter {
        gpuq_kind kind;
        size_t size;
} gpuq_parameter;

typedef struct gpuq_kernel_info {
        const char *name; /* owned by the module */
        const char *text; /* of a built-in: what it computes; else "" */
        const gpuq_parameter *parameters;
        size_t n_parameters;
        bool kinds_known;   /* false (a cubin): only number and size are checked */
        unsigned max_block; /* threads in a block */
} gpuq_kernel_info;

/**
 * gpuq_module_load() - CUDA C++ source, PTX, a cubin or a fatbin
 * @image:   copied
 * @options: compiler options: -DNAME=VALUE, -UNAME, -std=c++NN, --use_fast_math; NULL-terminated; may be NULL
 * @name:    for messages, such as the file's name
 *
 * Waits until it is compiled and loaded. Return: 0; GPUQ_E_COMPILE (the text is
 * the compiler's log), GPUQ_E_IMAGE, GPUQ_E_QUOTA, …
 */
GPUQ_API int gpuq_module_load(gpuq_client *client, gpuq_format format, const void *image,
                              size_t n_image, const char *const *options, const char *name,
                              gpuq_module **ret_module);
/** gpuq_module_builtin() - the kernels that come with the daemon; see `gpuq kernels`. */
GPUQ_API int gpuq_module_builtin(gpuq_client *client, gpuq_module **ret_module);
/** gpuq_module_n_kernels() - how many it has. */
GPUQ_API size_t gpuq_module_n_kernels(const gpuq_module *module);
/** gpuq_module_kernel() - one of them, 0 <= @i < n; fields valid as long as the module. Return: 0 or GPUQ_E_NOT_FOUND. */
GPUQ_API int gpuq_module_kernel(const gpuq_module *module, size_t i, gpuq_kernel_info *ret_info);
/** gpuq_module_log() - the compiler's warnings, or "". */
GPUQ_API const char *gpuq_module_log(const gpuq_module *module);
/** gpuq_module_has_variables() - whether this session has its own instance, for its __device__ and __constant__ variables. */
GPUQ_API bool gpuq_module_has_variables(const gpuq_module *module);
/** gpuq_module_free() - jobs already submitted still run. */
GPUQ_API void gpuq_module_free(gpuq_module *module);

/* ---- jobs ------------------------------------------------------------------ */

/*
 * A buffer that several operations of a job use is found and left by the job as
 * a whole: OUT first, it starts as zeros once and later operations see what
 * earlier ones wrote; IN first and written later, it is INOUT. Both in one
 * operation are INOUT. A copy or fill that writes only a part of it is INOUT too,
 * unless an earlier operation had it OUT.
 *
 * Kernels must not write to what is IN only. Where one does, the buffer may be
 * changed or not, from one run to the next, as gpuq copies it or not; jobs that only
 * read it may see it change, and the job may run twice.
 */
typedef enum gpuq_direction {
        GPUQ_IN = 0,
        GPUQ_OUT = 1, /* starts as zeros on each run */
        GPUQ_INOUT = 2,
        /* OUT, and all of it is written, which saves the zeros: what is not holds anything that it held before, or zeros. */
        GPUQ_OUT_WHOLE = 3,
} gpuq_direction;

/** One kernel argument: a buffer with its direction, or a scalar. Make it with the functions below. */
typedef struct gpuq_arg {
        gpuq_buffer *buffer; /* borrowed until the call that takes it returns; NULL: a scalar */
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
/** gpuq_bytes() - a struct by value, or any scalar of another width. */
static inline gpuq_arg gpuq_bytes(const void *bytes, size_t size) {
        gpuq_arg arg = {NULL, GPUQ_IN, GPUQ_BYTES, size, {0}};
        arg.value.bytes = bytes;
        return arg;
}

typedef struct gpuq_config {
        unsigned grid[3];      /* blocks; 0 counts as 1, in block and cluster too */
        unsigned block[3];     /* threads */
        unsigned shared_bytes; /* dynamic shared memory */
        unsigned cluster[3];   /* blocks; all 0: no clusters */
        bool cooperative;      /* all blocks resident at once */
} gpuq_config;

/** gpuq_job_new() - an empty job. Build it, then submit it once. */
GPUQ_API int gpuq_job_new(gpuq_client *client, gpuq_job **ret_job);
/** gpuq_job_launch() - append a kernel launch. Return: 0; GPUQ_E_NOT_FOUND lists the module's kernels; GPUQ_E_INVALID. */
GPUQ_API int gpuq_job_launch(gpuq_job *job, gpuq_module *module, const char *kernel,
                             const gpuq_config *config, const gpuq_arg *args, size_t n_args);
/** gpuq_job_copy() - append a copy between buffers of any place; @to is written. */
GPUQ_API int gpuq_job_copy(gpuq_job *job, gpuq_buffer *to, size_t to_offset, gpuq_buffer *from,
                           size_t from_offset, size_t length);
/** gpuq_job_fill() - append a fill with a value of @width 1, 2 or 4 bytes; @length is a multiple of it. */
GPUQ_API int gpuq_job_fill(gpuq_job *job, gpuq_buffer *buffer, size_t offset, size_t length,
                           uint32_t value, unsigned width);
/** gpuq_job_read_variable() - append a copy of a __device__ or __constant__ variable to a buffer. */
GPUQ_API int gpuq_job_read_variable(gpuq_job *job, gpuq_module *module, const char *name,
                                    size_t offset, gpuq_buffer *to, size_t to_offset,
                                    size_t length);
/** gpuq_job_write_variable() - append a copy of a buffer to a variable. */
GPUQ_API int gpuq_job_write_variable(gpuq_job *job, gpuq_module *module, const char *name,
                                     size_t offset, gpuq_buffer *from, size_t from_offset,
                                     size_t length);
/** gpuq_job_after() - wait for another job of this user, of any process; if it does not end well, neither does this. */
GPUQ_API int gpuq_job_after(gpuq_job *job, uint64_t id);

/** gpuq_job_set_priority() - among this user's jobs: -100 (last) to 100 (first). */
GPUQ_API int gpuq_job_set_priority(gpuq_job *job, int priority);
/** gpuq_job_set_timeout() - of running, not of waiting; 0: the daemon's default. */
GPUQ_API int gpuq_job_set_timeout(gpuq_job *job, unsigned timeout_ms);
/** gpuq_job_set_label() - for `gpuq queue`; at most 64 bytes; copied. */
GPUQ_API int gpuq_job_set_label(gpuq_job *job, const char *label);
/** gpuq_job_set_device() - index, or -1 for the daemon's choice. */
GPUQ_API int gpuq_job_set_device(gpuq_job *job, int device);
/** gpuq_job_set_repeatable() - say that running it twice is harmless, though it changes device memory in place. */
GPUQ_API int gpuq_job_set_repeatable(gpuq_job *job, bool repeatable);
/** gpuq_job_set_timed() - ask for the GPU's own timing. */
GPUQ_API int gpuq_job_set_timed(gpuq_job *job, bool timed);

typedef enum gpuq_state {
        GPUQ_BUILDING = -1, /* not submitted */
        GPUQ_PENDING = 0,   /* submitted, not ended */
        GPUQ_DONE = 2,
        GPUQ_FAILED = 3,
        GPUQ_CANCELLED = 4,
} gpuq_state;

typedef struct gpuq_result {
        gpuq_state state;
        int error;          /* 0, or why it did not end well: a GPUQ_E_ code */
        const char *text;   /* in full, "" if done; owned by the job */
        const char *output; /* what its kernels printed, or ""; owned by the job */
        uint64_t waited_us; /* from submit to start, by the daemon's clock */
        uint64_t ran_us;    /* from start to end, by the daemon's clock */
        uint64_t gpu_ns;    /* on the GPU, if asked for with gpuq_job_set_timed() */
        int device;         /* index of where it ran */
} gpuq_result;

typedef void (*gpuq_job_func)(gpuq_job *job, void *userdata);
/**
 * gpuq_job_set_callback() - called once when it ends, with no lock held
 *
 * From gpuq_dispatch(), gpuq_wait(), gpuq_run(), gpuq_poll() or gpuq_client_free(), in
 * whichever thread is there first. It may call anything, waiting and freeing the
 * job included. A gpuq_wait() for the job returns after it has returned.
 */
GPUQ_API int gpuq_job_set_callback(gpuq_job *job, gpuq_job_func func, void *userdata);

/**
 * gpuq_submit() - queue it; does not wait for it. Buffers may not be touched until it ended.
 *
 * Sends at once what the daemon takes; the rest goes out with the next call that
 * dispatches or waits. Return: 0; GPUQ_E_AGAIN if the daemon does not read: nothing was submitted.
 */
GPUQ_API int gpuq_submit(gpuq_job *job);
/** gpuq_submit_many() - several in one message (or few, when they are large), in this order. Nothing is submitted on failure. */
GPUQ_API int gpuq_submit_many(gpuq_job *const *jobs, size_t n_jobs);
/*
 * Prepared jobs: one that is fired often is sent once, and then by number with
 * what is new in it. A fired job is a job like any other.
 */
typedef struct gpuq_prepared gpuq_prepared;

/** Another buffer in place of one, wherever the prepared job names it; it is used in the same direction. */
typedef struct gpuq_swap {
        gpuq_buffer *was, *now;
} gpuq_swap;

/** Another scalar, of the same kind and size. */
typedef struct gpuq_set {
        size_t operation; /* of the job, counted from 0 */
        size_t argument;  /* of that launch, counted from 0 */
        gpuq_arg value;
} gpuq_set;

/** What is new in one job; all 0: nothing. */
typedef struct gpuq_fire_args {
        const gpuq_swap *swaps;
        size_t n_swaps;
        const gpuq_set *sets;
        size_t n_sets;
        gpuq_job_func func; /* as of gpuq_job_set_callback() */
        void *userdata;
} gpuq_fire_args;

/**
 * gpuq_prepare() - have the daemon keep a job that is built and not submitted
 *
 * The job may be changed, submitted or freed afterwards; the prepared one stays as it
 * was, and holds its modules and buffers. It may have 256 buffers and 16 KiB of
 * operations, about 200 launches, and comes after no other job.
 *
 * Return: 0; GPUQ_E_QUOTA, GPUQ_E_INVALID, …
 */
GPUQ_API int gpuq_prepare(gpuq_job *job, gpuq_prepared **ret_prepared);
/** gpuq_fire() - submit it once more. @args: NULL: as it was prepared. @ret_job: submitted, the caller's. Return: as gpuq_submit(). */
GPUQ_API int gpuq_fire(gpuq_prepared *prepared, const gpuq_fire_args *args, gpuq_job **ret_job);
/** gpuq_prepared_free() - jobs already fired still run. */
GPUQ_API void gpuq_prepared_free(gpuq_prepared *prepared);

/*
 * Detached jobs are handed to the daemon for good: they outlive this client, and
 * the daemon. What they wrote is kept on its disk until it is fetched and
 * discarded, or was not for too long (detached_keep_s in gpuqd.conf).
 */

#define GPUQ_NOTE_MAX 65536u /* bytes */

/** What a detached job wrote into one of its buffers. */
typedef struct gpuq_output {
        const void *data;
        size_t size;
} gpuq_output;

/** How a detached job ended, and what it wrote if it is done. One block of memory, read-only. */
typedef struct gpuq_fetched {
        gpuq_result result;
        const void *note; /* as it was given to gpuq_job_detach() */
        size_t n_note;
        const gpuq_output
                *outputs; /* of each buffer that is not GPUQ_IN, as the job first named them */
        size_t n_outputs;
} gpuq_fetched;

/**
 * gpuq_job_detach() - hand over a job that is built and not submitted, with the bytes of its buffers
 * @note: yours, given back with the outputs; copied, at most GPUQ_NOTE_MAX
 *
 * Returns once all of it is on the daemon's disk. The job may be changed, submitted
 * or freed afterwards, and its buffers too. It may use host buffers alone, come after
 * no other job, and none can come after it. Wait for it with gpuq_wait_id(), end it
 * with gpuq_cancel_ids(), from any process of this user.
 *
 * Return: 0; GPUQ_E_QUOTA; GPUQ_E_NO_DEVICE: this daemon keeps none; GPUQ_E_INTERNAL: its disk; …
 */
GPUQ_API int gpuq_job_detach(gpuq_job *job, const void *note, size_t n_note, uint64_t *ret_id);
/**
 * gpuq_fetch() - wait until a detached job has ended, however, and get what it wrote
 *
 * The daemon keeps it until gpuq_discard(). Return: 0; GPUQ_E_NOT_FOUND; GPUQ_E_NO_DEVICE:
 * the daemon cannot look now; GPUQ_E_INTERNAL: it is damaged on the daemon's disk; …
 */
GPUQ_API int gpuq_fetch(gpuq_client *client, uint64_t id, gpuq_fetched **ret_fetched);
/** gpuq_fetched_free() - with the outputs. */
GPUQ_API void gpuq_fetched_free(gpuq_fetched *fetched);
/** gpuq_discard() - a detached job that has ended is wanted no more. Return: 0; GPUQ_E_NOT_FOUND; GPUQ_E_NO_DEVICE; GPUQ_E_INVALID: it has not ended. */
GPUQ_API int gpuq_discard(gpuq_client *client, uint64_t id);

/** gpuq_wait() - until it ends. @timeout_ms: -1: for ever. Return: 0 if done, its GPUQ_E_ code, or GPUQ_E_AGAIN. */
GPUQ_API int gpuq_wait(gpuq_job *job, int timeout_ms);
/** gpuq_wait_id() - for any job of this user by id, of any process. @ret_result may be NULL; its texts live until this thread's next call of this function. */
GPUQ_API int gpuq_wait_id(gpuq_client *client, uint64_t id, int timeout_ms,
                          gpuq_result *ret_result);
/** gpuq_run() - submit and wait. Return: as gpuq_wait(). */
GPUQ_API int gpuq_run(gpuq_job *job);
/** gpuq_poll() - without waiting: 1 ended, 0 not yet, or a negative GPUQ_E_. */
GPUQ_API int gpuq_poll(gpuq_job *job);
/** gpuq_cancel() - ask the daemon to end it; it still ends once, cancelled or otherwise. */
GPUQ_API int gpuq_cancel(gpuq_job *job);
/** gpuq_job_get_result() - how it ended. Return: 0, or GPUQ_E_AGAIN if it has not. */
GPUQ_API int gpuq_job_get_result(const gpuq_job *job, gpuq_result *ret_result);
/** gpuq_job_id() - for gpuq_job_after(), `gpuq queue`; 0 before it is submitted. */
GPUQ_API uint64_t gpuq_job_id(const gpuq_job *job);
/** gpuq_job_free() - a submitted job still runs; nobody learns its result. */
GPUQ_API void gpuq_job_free(gpuq_job *job);

/** gpuq_id_format() - "12.3" of an id. @text: at least 24 bytes. Return: @text. */
GPUQ_API char *gpuq_id_format(uint64_t id, char *text);
/** gpuq_id_parse() - the id of "12.3" or of a decimal number. Return: 0 or GPUQ_E_INVALID. */
GPUQ_API int gpuq_id_parse(const char *text, uint64_t *ret_id);

/* ---- the daemon's state ------------------------------------------------------ */

typedef struct gpuq_device_status {
        unsigned index;
        const char *name, *uuid, *pci, *state;
        uint64_t memory_total, memory_arenas;
        unsigned queued, running;
        uint64_t quanta,
                overruns; /* turns of one user alone on it; of them, those that ended late */
        const char *
                drained; /* NULL: it takes jobs; else by whom: "admin" or "itself", state says why */
        int64_t xids; /* errors that NVIDIA's driver logged of it; -1: the daemon does not read that log */
} gpuq_device_status;

/* How a worker ran its jobs, counted since it started; told at least once a second while it works. */
typedef struct gpuq_worker_counters {
        uint64_t batches,
                coalesced; /* launches that ran several jobs, and how many jobs those were */
        uint64_t in_place; /* jobs whose kernel worked on host memory itself */
        uint64_t staged_by_kernel, staged_by_copy; /* jobs whose host data was moved, and how */
        uint64_t graph_hits, graph_misses, graph_evictions;
} gpuq_worker_counters;

typedef struct gpuq_worker_status {
        int pid;
        unsigned device;
        uint32_t uid;
        const char *state;
        uint64_t memory; /* bytes of device memory of its process */
        unsigned running, contexts;
        uint64_t jobs;
        gpuq_worker_counters counters;
} gpuq_worker_status;

typedef struct gpuq_user_status {
        uint32_t uid;
        const char *user;
        double weight, share, gpu_seconds;
        unsigned sessions, queued, running, modules;
        uint64_t arena_bytes, device_bytes;
        double usage_seconds;  /* of GPU time, forgotten by half every usage_half_life_s */
        double window_seconds; /* of GPU time that counts against the limit gpu_seconds */
} gpuq_user_status;

typedef struct gpuq_status {
        const char *daemon, *driver, *driver_version, *state;
        gpuq_device_status *devices;
        gpuq_worker_status *workers;
        gpuq_user_status *users;
        size_t n_devices, n_workers, n_users;
        unsigned queued, running;
        uint64_t uptime_us;
} gpuq_status;

typedef struct gpuq_queue_entry {
        uint64_t id;
        uint32_t uid;
        const char *user, *label, *kernel, *reason;
        const char *state; /* "waiting" or "running" */
        uint64_t waited_us, ran_us;
        int priority;
        int device; /* -1: not chosen yet */
        unsigned retries;
} gpuq_queue_entry;

typedef struct gpuq_queue {
        gpuq_queue_entry *entries;
        size_t n_entries;
} gpuq_queue;

/** gpuq_get_status() - one block of memory, to be freed with gpuq_status_free(). */
GPUQ_API int gpuq_get_status(gpuq_client *client, gpuq_status **ret_status);
GPUQ_API void gpuq_status_free(gpuq_status *status);
/** gpuq_get_queue() - every job that waits or runs. @uid: of one user; -1: everybody. */
GPUQ_API int gpuq_get_queue(gpuq_client *client, int64_t uid, gpuq_queue **ret_queue);
GPUQ_API void gpuq_queue_free(gpuq_queue *queue);

/**
 * gpuq_drain() - a device takes no new jobs; what runs there ends. Root and the admin group alone.
 * @reason: for people, at most 200 bytes; NULL: none
 *
 * Return: how many jobs still run there, or a negative error.
 */
GPUQ_API int gpuq_drain(gpuq_client *client, unsigned device, const char *reason);
/** gpuq_resume() - it takes jobs again, whoever drained it. Return: 1: it was drained, 0: it was not, or a negative error. */
GPUQ_API int gpuq_resume(gpuq_client *client, unsigned device);

typedef struct gpuq_cancelled {
        size_t n_ended;   /* ended or ending by this call */
        size_t n_unknown; /* no such job */
        size_t n_denied;  /* another user's */
} gpuq_cancelled;

/**
 * gpuq_cancel_ids() - jobs of any process; @n_ids 0: every unfinished job of this user (of everybody's never)
 *
 * Return: 0; GPUQ_E_NO_DEVICE: one is a detached job, and the daemon cannot look now: none was cancelled; …
 */
GPUQ_API int gpuq_cancel_ids(gpuq_client *client, const uint64_t *ids, size_t n_ids,
                             gpuq_cancelled *ret_cancelled);

#ifdef __cplusplus
}
#endif

#endif
