/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_IMAGE_H
#define GPUQ_CPU_IMAGE_H

/*
 * Image
 *
 * What cuModuleLoadData() of libgpuq-cpu.so takes: an ELF shared object of this machine.
 * compiler/ptx makes C of a PTX module, and the host's C compiler makes the object, with
 *
 *     cc -std=gnu11 -O2 GPUQ_CPU_COMPILE_FLAGS -I DIR -x c FILE -o IMAGE -lm
 *
 * The C code includes DIR/gpuq_ptx.h; DIR is libexec/gpuq, in the source tree daemon/driver.
 *
 * No step has to tell whether barriers are used: a block runs as a plain loop over its threads,
 * and only a thread that has to wait costs a stack of its own.
 *
 * What a reader of the ELF file finds, without loading it:
 *
 *   section gpuq_cpu_printf  is there if kernels may print
 *   .dynsym                  each variable of the module: a defined symbol of type OBJECT and
 *                            binding GLOBAL, whose name is GPUQ_CPU_VARIABLE and the variable's
 */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#define GPUQ_CPU_COMPILE_FLAGS                                                                     \
        "-fPIC", "-shared", "-fno-semantic-interposition", "-fno-strict-aliasing",                 \
                "-fno-delete-null-pointer-checks", "-pthread", "-Wl,-Bsymbolic", "-Wl,-z,defs"

#define GPUQ_CPU_IMAGE_VERSION 5u
#define GPUQ_CPU_IMAGE_SYMBOL  "gpuq_cpu_image"
#define GPUQ_CPU_PRINTF        "gpuq_cpu_printf"
#define GPUQ_CPU_VARIABLE      "gpuq_cpu." /* no name of C or of a library */

/* Bytes of dynamic shared memory a block can ask for, the same as of sm_90. */
#define GPUQ_CPU_SHARED_MAX (227u << 10)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct GpuqCpuIndex {
        uint32_t x, y, z;
} GpuqCpuIndex;

/*
 * Where a host thread stands in a launch. Thread-local in the image; the driver
 * sets it before a block, the image counts the threads, and the driver puts
 * `thread` and `linear` back when it goes from one waiting thread to another.
 */
typedef struct GpuqCpuPlace {
        GpuqCpuIndex thread; /* threadIdx */
        GpuqCpuIndex block;  /* blockIdx */
        GpuqCpuIndex block_dim;
        GpuqCpuIndex grid_dim;
        GpuqCpuIndex cluster_dim;
        GpuqCpuIndex cluster; /* which one */
        uint32_t linear;      /* of the thread, in its block */
        uint32_t shared_bytes;

        GpuqCpuIndex next; /* thread to start */
        uint32_t n_next;
        uint32_t n_threads;
        uint32_t waited; /* some thread of this block has had to wait */

        uint32_t sm, n_sms; /* the host thread, and how many a kernel of this context may have */

        void *grid_words; /* of a cooperative grid: 8 bytes of zeros for its barrier; or NULL */
} GpuqCpuPlace;

/* A rendezvous of some threads of a warp, and what each gets from it. */
typedef enum GpuqCpuWarp {
        GPUQ_CPU_WARP_SYNC,    /* nothing */
        GPUQ_CPU_WARP_SHUFFLE, /* the value of lane `source`, or its own */
        GPUQ_CPU_WARP_BALLOT,  /* a bit a lane: its value is not 0 */
        GPUQ_CPU_WARP_MATCH,   /* the lanes whose value is the same */
        GPUQ_CPU_WARP_ADD,     /* of unsigned int */
        GPUQ_CPU_WARP_MIN,
        GPUQ_CPU_WARP_MAX,
        GPUQ_CPU_WARP_MIN_SIGNED,
        GPUQ_CPU_WARP_MAX_SIGNED,
        GPUQ_CPU_WARP_AND,
        GPUQ_CPU_WARP_OR,
        GPUQ_CPU_WARP_XOR,
        GPUQ_CPU_WARP_CALL, /* nothing; the value is the address of a GpuqCpuCall */
} GpuqCpuWarp;

/* What lanes compute together: when all have come, one of their functions is called for all. */
typedef struct GpuqCpuCall {
        void (*call)(struct GpuqCpuCall *const calls[32]); /* by lane; NULL: it is not there */
} GpuqCpuCall;

typedef enum GpuqCpuBarrier {
        GPUQ_CPU_BARRIER_BLOCK,
        GPUQ_CPU_BARRIER_CLUSTER,
        GPUQ_CPU_BARRIER_GRID,
} GpuqCpuBarrier;

/* What the driver does for running kernels; called only from them. */
typedef struct GpuqCpuRuntime {
        /* all threads of the block, cluster or grid meet; gives how many came with predicate set */
        uint32_t (*barrier)(GpuqCpuBarrier scope, uint32_t predicate);
        uint64_t (*warp)(GpuqCpuWarp operation, uint32_t mask, uint64_t value, uint32_t source);
        uint32_t (*active)(const void *site); /* __activemask(); site: of the call */
        void (*end)(void);                    /* a thread ended in a block where one waited */
        void (*relax)(uint32_t now);          /* let others run; now: at once, else only at times */
        /* the same address of shared memory in another block of the cluster */
        void *(*shared_of)(void *pointer, uint32_t rank);
        void (*print)(const char *format, va_list arguments);
        void (*assertion)(const char *text, const char *file, unsigned line, const char *function)
                __attribute__((noreturn));
        void (*trap)(void) __attribute__((noreturn));
        /* n threads of the block (0: all) meet at one of 16 barriers; a thread that does not wait
         * only counts; gives how many came with predicate set */
        uint32_t (*named)(uint32_t id, uint32_t n, uint32_t predicate, uint32_t waits);
        uint32_t (*is_local)(uint64_t address); /* on the stack of the thread that asks */
} GpuqCpuRuntime;

/* What a texture object is: its handle, a kernel's argument, is the address. */
typedef struct GpuqCpuTexture {
        uint32_t magic;    /* GPUQ_CPU_TEXTURE */
        uint32_t format;   /* as CUarray_format */
        uint32_t channels; /* 1, 2 or 4 */
        uint32_t n_bytes;  /* of one channel of a texel */
        uint64_t address;
        int64_t width, height; /* texels; height 1: memory without a second dimension, or a row */
        uint64_t pitch;        /* bytes from row to row */
        uint32_t address_x, address_y; /* as CUaddress_mode */
        uint8_t linear;                /* filtering */
        uint8_t normalized;            /* coordinates from 0 to 1 */
        uint8_t to_float; /* integers of 8 and 16 bits are read as fractions of their largest */
} GpuqCpuTexture;

#define GPUQ_CPU_TEXTURE 0x74657831u

enum {
        GPUQ_CPU_TEXTURE_U8 = 0x01,
        GPUQ_CPU_TEXTURE_U16 = 0x02,
        GPUQ_CPU_TEXTURE_U32 = 0x03,
        GPUQ_CPU_TEXTURE_I8 = 0x08,
        GPUQ_CPU_TEXTURE_I16 = 0x09,
        GPUQ_CPU_TEXTURE_I32 = 0x0a,
        GPUQ_CPU_TEXTURE_F16 = 0x10,
        GPUQ_CPU_TEXTURE_F32 = 0x20,
};

enum {
        GPUQ_CPU_TEXTURE_WRAP = 0,
        GPUQ_CPU_TEXTURE_CLAMP = 1,
        GPUQ_CPU_TEXTURE_MIRROR = 2,
        GPUQ_CPU_TEXTURE_BORDER = 3,
};

/* A kernel. */
typedef struct GpuqCpuEntry {
        const char *name;
        /* starts threads from place->next on, until all are started */
        void (*threads)(void *const *params);
        const uint32_t *sizes; /* a parameter each */
        const uint32_t *offsets;
        uint32_t n_params;
        uint32_t align;       /* the most that a parameter asks for; 0 if there is none */
        uint32_t max_threads; /* of a block; 0: as many as the device allows */
        GpuqCpuIndex block;   /* the only size that it takes; zeros: any */
} GpuqCpuEntry;

/* What the symbol gpuq_cpu_image is. */
typedef struct GpuqCpuImage {
        uint32_t version; /* GPUQ_CPU_IMAGE_VERSION */
        uint32_t size;    /* of this struct */
        const GpuqCpuEntry *entries;
        const GpuqCpuEntry *entries_end;
        GpuqCpuPlace *(*place)(void);  /* of the calling host thread */
        const GpuqCpuRuntime *runtime; /* set by the driver after loading */
} GpuqCpuImage;

#ifdef __cplusplus
}
#endif

#endif
