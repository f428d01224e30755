/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_PROTOCOL_H
#define GPUQ_WORKER_PROTOCOL_H

/*
 * Worker protocol
 *
 * The messages between the supervisor and one worker, over their channel (util/channel.h). Both ends are of one
 * build, so the messages are plain structs in native byte order. READY carries WORKER_PROTOCOL as a check.
 *
 *     WorkerHead | text | more | zeros up to a multiple of 8 | items
 *
 * The two texts end with a NUL each and may be absent. What the items are depends on the kind. A reader uses all of
 * them where they stand in the received message. Both ends check what they read: a worker runs as its user, who can
 * stop it and, on the CPU driver, runs code of his own in it.
 *
 * An address is a uint64_t: where all workers map this device arena, if they can; 0: anywhere.
 *
 * A descriptor travels with ARENA_ADD, DIRECT_RING and DIRECT_BELL, with MODULE_ADD unless the module is built in, and with ARENA_MADE unless it
 * tells an error.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/channel.h"

typedef enum WorkerMessageKind {
        /* supervisor to worker */
        TO_WORKER_ARENA_ADD =
                1, /* id, number: bytes, detail: Place, items: an address. A host memfd to map, or device memory to import */
        TO_WORKER_ARENA_MAKE, /* id, number: bytes, items: an address. Make device memory, zero it, answer ARENA_MADE */
        TO_WORKER_ARENA_DROP, /* id. No job in flight or to come uses it */
        TO_WORKER_MODULE_ADD, /* id, number: bytes of the image, detail: Format, text: name, items: words, a WorkerWord before and a NUL behind each */
        TO_WORKER_MODULE_DROP, /* id */
        TO_WORKER_JOBS,        /* items: WorkerJob and its parts, one after the other */
        TO_WORKER_DIRECT_RING, /* id: of a session. The descriptor is the memory of its direct ring */
        TO_WORKER_DIRECT_BELL, /* id likewise. The descriptor is this side of its bell */
        TO_WORKER_LEND, /* id likewise, items: as of JOBS: a template of each of its prepared jobs, whose numbers are their ids and `after`, number: WORKER_TAKEN(), detail: the most jobs at once. Take jobs from the ring */
        TO_WORKER_RECALL, /* id likewise. Answer RETURNED, unless that was sent already */
        TO_WORKER_STOP,   /* issue nothing more, answer STOPPED, exit */

        /* worker to supervisor; code and text: an error, if code is not 0 */
        FROM_WORKER_PROBED, /* of gpuqd-worker --probe, its only message. Error, detail, more: driver version, items: WorkerDevice */
        FROM_WORKER_READY, /* the context is there. Error, detail, number: WORKER_PROTOCOL, id: bytes of device memory that are free. A spare sends it once more when it has become its user */
        FROM_WORKER_ARENA_ADDED, /* id, error. Answers ARENA_ADD only where that failed */
        FROM_WORKER_ARENA_MADE,  /* id, error, number: its address */
        FROM_WORKER_MODULE_ADDED, /* id, error, items: bytes of a gpuq.v1.ModuleReady, for the client */
        FROM_WORKER_ENDS, /* items: WorkerEnd. Error, detail (1: nothing of it ran) and more (what its kernels printed) are those of the only one */
        FROM_WORKER_LATE, /* id of a job that ran past its timeout; the supervisor decides */
        FROM_WORKER_STOPPED, /* the worker exits next. Error, detail, more: assert text, items: WorkerInFlight, all without an end so far */
        FROM_WORKER_RETURNED, /* id: of a session whose ring the worker does not read any more, number: WORKER_TAKEN(), items: WorkerTaken, the jobs that it has, by their tags; their ends follow */
        FROM_WORKER_LENT, /* items: WorkerLent, number: ns in which such jobs were in flight, since the last one */
        FROM_WORKER_STATS, /* number: bytes of device memory in use, id: those in use by all programs, detail: a WorkerWait, items: bytes of a gpuq.v1.WorkerCounters */
} WorkerMessageKind;

/* Why a worker holds jobs back. */
typedef enum WorkerWait {
        WORKER_WAITS_NOT,
        WORKER_WAITS_FOR_QUIET,   /* a module is loaded, for example, when no kernel runs */
        WORKER_WAITS_FOR_BUILTIN, /* no job runs before gpuq's own kernels are loaded */
        WORKER_WAITS_FOR_ONE,     /* a job runs alone, or is to */
        _WORKER_WAITS_N,
} WorkerWait;

/* What a word of MODULE_ADD is. */
typedef enum WorkerWord {
        WORKER_WORD_OPTION = 'o',  /* of the compiler */
        WORKER_WORD_KERNEL = 'k',  /* a kernel that the client names */
        WORKER_WORD_HEADERS = 'h', /* bytes of headers behind the image; one */
} WorkerWord;

typedef struct WorkerHead {
        uint32_t kind;   /* WorkerMessageKind */
        uint32_t code;   /* gpuq.v1.Code of an error; 0: none */
        uint64_t id;     /* of an arena, a module or a job */
        uint64_t number; /* as its kind says */
        uint32_t detail; /* as its kind says; PROBED, READY, STOPPED: 1: the device failed */
        uint32_t n_text, n_more; /* bytes with the NUL; 0: absent */
        uint32_t n_items;
} WorkerHead;

/* A message to send, or one that was read. */
typedef struct WorkerMessage {
        WorkerHead head;         /* n_text and n_more are set by what sends it */
        const char *text, *more; /* NULL or "": absent; never NULL in one that was read */
        const void *items;       /* aligned to 8 */
} WorkerMessage;

/*
 * A job, aligned to 8, followed by its parts: WorkerBuffer[n_buffers], the modules of its kernels as
 * uint64_t[n_kernels], the jobs of this worker to run after, if still in flight, as uint64_t[n_after], the names of its
 * kernels with a NUL behind each, and its operations, which are bytes of a gpuq.v1.Operations.
 */
typedef struct WorkerJob {
        uint32_t n_bytes; /* of all that, a multiple of 8 */
        int32_t priority;
        uint64_t id;
        uint64_t
                word_arena; /* gets the lower half of the id when the job is done and ENDS is written; 0: none */
        uint64_t word_offset;
        uint32_t timeout_ms; /* counted by the worker from the start on the GPU; 0: none */
        uint32_t n_buffers, n_kernels, n_after;
        uint32_t n_names, n_operations; /* bytes */
        uint16_t timed;
        uint16_t by_address; /* each of its device arenas must be where other workers have it */
        uint32_t alone;      /* no job will come that it could run together with: do not wait */
} WorkerJob;

typedef struct WorkerBuffer {
        uint64_t arena, offset, length;
        uint64_t direction; /* gpuq.v1.Direction */
} WorkerBuffer;

typedef struct WorkerJobParts {
        const WorkerBuffer *buffers;
        const uint64_t *modules;
        const uint64_t *after;
        const char *names;
        const uint8_t *operations; /* behind the names */
} WorkerJobParts;

typedef struct WorkerEnd {
        uint64_t id;
        uint64_t gpu_ns;
        uint64_t ran_us : 48; /* first issued to seen done */
        uint64_t stream : 16; /* that it was issued on: index + 1; 0: none */
} WorkerEnd;

/* Jobs of one prepared job that were done in a direct ring; times are sums. */
typedef struct WorkerLent {
        uint32_t session;
        uint32_t prepared;
        uint64_t n_done;
        uint64_t waited_us;
        uint64_t ran_us;
        uint64_t busy_ns; /* their part of the time in which jobs of direct rings were in flight */
} WorkerLent;

/* A job from a direct ring. */
typedef struct WorkerTaken {
        uint32_t tag, prepared;
} WorkerTaken;

/* How far a direct ring was read: entries taken, modulo 2^32, and the tag of the last job so far. */
#define WORKER_TAKEN(n_taken, last_tag) ((uint64_t)(last_tag) << 32 | (n_taken))

#define WORKER_DIRECT_JOBS   128u /* in flight, of one ring */
#define WORKER_TEMPLATES_MAX 64u  /* prepared jobs of a session whose ring is lent */

typedef enum WorkerPhase {
        WORKER_PHASE_QUEUED,     /* not issued */
        WORKER_PHASE_ISSUED,     /* kernels may have run; none of its results is in a host arena */
        WORKER_PHASE_COMMITTING, /* results may be half written to host arenas */
} WorkerPhase;

typedef struct WorkerInFlight {
        uint64_t id;
        uint64_t phase; /* WorkerPhase */
} WorkerInFlight;

/* Texts with a NUL. */
typedef struct WorkerDevice {
        char name[128], uuid[64], pci[32];
        uint64_t memory_total; /* bytes */
        uint64_t peers;        /* a bit for each device, by its index, whose memory it can access */
        uint64_t near; /* those of them on whose memory its atomic operations work as on its own */
} WorkerDevice;

#define WORKER_PROTOCOL                                                                            \
        (sizeof(WorkerHead) + sizeof(WorkerJob) * 1000 + sizeof(WorkerBuffer) * 1000000 +          \
         sizeof(WorkerDevice) * 1000000000 + FROM_WORKER_STATS)
#define WORKER_ALIGN(n) (((n) + 7) & ~(uint64_t)7)

/**
 * protocol_pack() - write a message into memory of the channel
 * @ret_data: for channel_send(); valid until the next message is packed
 *
 * Return: 0, -EMSGSIZE, or -ENOMEM.
 */
int protocol_pack(Channel *channel, const WorkerMessage *message, const uint8_t **ret_data,
                  size_t *ret_n_data);
/** protocol_send() - pack it and send it. Return: as both. */
int protocol_send(Channel *channel, const WorkerMessage *message, int fd);
/**
 * protocol_read() - check a message, which stays where it is
 * @data: aligned to 8
 *
 * Return: false: of no known kind, cut short, too long, or a text without an end. Of the items only the length is checked.
 */
bool protocol_read(const uint8_t *data, size_t n_data, WorkerMessage *ret_message);
/**
 * protocol_job() - check a job at the start of what is left of a list, and find its parts
 * @data: aligned to 8
 *
 * Return: NULL: cut short, or not as long as its parts are.
 */
const WorkerJob *protocol_job(const uint8_t *data, size_t n_data, WorkerJobParts *ret_parts);

#endif
