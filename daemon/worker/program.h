/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_PROGRAM_H
#define GPUQ_WORKER_PROGRAM_H

/*
 * Program
 *
 * A job's operations, decoded and checked: kernels found, arguments matched to parameters, ranges inside
 * their buffers. Errors are reported here with a text; the driver accepts what passes. Protobuf types
 * end here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler/fence.h"
#include "util/texture.h"
#include "worker/geometry.h"
#include "worker/operation.h"

typedef struct ProgramBuffer {
        uint64_t length;    /* bytes */
        uint64_t alignment; /* its address has that of this offset: in its arena, or in scratch */
        bool writable;      /* out or inout */
} ProgramBuffer;

typedef struct ProgramKernel {
        const char *name; /* of a kernel or of a variable */
        Image *image;
} ProgramKernel;

typedef struct ProgramInput {
        const uint8_t *operations; /* packed gpuq.v1.Operations */
        size_t n_operations;       /* bytes */
        const ProgramBuffer *buffers;
        size_t n_buffers;
        const ProgramKernel *kernels;
        size_t n_kernels;
        ProtobufCAllocator *allocator; /* for what is decoded on the way; NULL: malloc */
} ProgramInput;

typedef struct ProgramCopy {
        ProgramPlace to, from;
        size_t length; /* bytes, > 0 */
} ProgramCopy;

typedef struct ProgramFill {
        ProgramPlace to;
        size_t n; /* elements, > 0 */
        uint32_t value;
        unsigned width; /* bytes of an element: 1, 2, 4 */
} ProgramFill;

/* A texture over a buffer, or the same for several arguments. */
typedef struct ProgramTexture {
        TextureShape shape;
        uint32_t buffer;
        CUtexObject object; /* set this before running */
} ProgramTexture;

typedef enum StepKind {
        STEP_LAUNCH,
        STEP_COPY,
        STEP_FILL,
        STEP_GEMM,
        STEP_FFT,
} StepKind;

typedef struct Step {
        StepKind kind;
        union {
                ProgramLaunch launch;
                ProgramCopy copy;
                ProgramFill fill;
                ProgramGemm gemm;
                ProgramFft fft;
        };
} Step;

/* One allocation. Jobs with equal operations share it: the addresses differ and are set at each
 * issue. */
typedef struct Program {
        unsigned n_refs;
        uint64_t number;        /* of a program kept for reuse; else 0 */
        CUdeviceptr *addresses; /* one per buffer: set these before running */
        uint64_t *needs;        /* bytes, one per buffer: what built-in kernels reach */
        size_t n_buffers;
        Step *steps;
        size_t n_steps;
        ProgramTexture *textures;
        size_t n_textures;
        CUdeviceptr wide;      /* memory of wide launches (wide.h): set this too if is_wide */
        bool is_wide;          /* there are such */
        CUdeviceptr workspace; /* of libraries, n_workspace bytes: set this too */
        size_t n_workspace;
        bool has_new_library; /* a library's first run of this may wait for running kernels */
        bool has_fft; /* such a step is in no graph: its library's plan may end before the graph */
        bool has_printf; /* a kernel may print: runs alone */
        bool is_fenced;  /* kernels take a fence: set it before running (fence.h) */
        Fence fence;
        bool is_checked;    /* accesses of a kernel are compared: see checked.h */
        bool launches_only; /* no step's check depends on a buffer, but for needs */
} Program;

/**
 * program_new() - decode and check
 *
 * Return: 0, FAILURE_E_SET, FAILURE_E_FAULT (a question to the driver found the
 * context spent), FAILURE_E_WAIT (a library has to be opened, or to plan, when nothing runs), or -ENOMEM.
 */
int program_new(const ProgramInput *input, const Context *context, Program **ret_program,
                Failure *failure);
/** program_ref() - one more reference. Return: @program. */
Program *program_ref(Program *program);
/** program_unref() - NULL is fine. Return: NULL. */
Program *program_unref(Program *program);
DEFINE_CLEANUP(Program, program_unref)
/** program_only_launch() - the only step, if it is a launch; else NULL. */
const ProgramLaunch *program_only_launch(const Program *program);

/** program_gemm_places() - the current addresses of a step. */
static inline GemmPlaces program_gemm_places(const Program *program, const ProgramGemm *step) {
        return (GemmPlaces){
                .a = place_address(&step->a),
                .b = place_address(&step->b),
                .c = place_address(&step->c),
                .workspace = program->workspace,
        };
}

#endif
