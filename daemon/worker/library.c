/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Library
 */
#include "worker/library.h"

#include <stdio.h>
#include <string.h>

#include "util/log.h"
#include "util/symbol.h"
#include "worker/blas.h"
#include "worker/cublaslt.h"

#define LIBRARY_ELEMENTS    4u
#define LIBRARY_THREADS     256u
#define LIBRARY_THREADS_CPU 1u /* on the host a block of one thread is one call */
#define LIBRARY_BLOCKS_MAX  4096u

/* gpuq's own kernel for a type of elements. */
typedef struct LibraryKernel {
        Function function;
        FunctionParameter parameters[LIBRARY_GEMM_VALUES];
} LibraryKernel;

struct Library {
        Context *context;
        const char *folders;
        bool is_opened;
        Blas *blas;         /* NULL: none, or not needed so far */
        Cublaslt *cublaslt; /* likewise */
        LibraryKernel gemm[LIBRARY_ELEMENTS];
};

int library_new(Context *context, const char *folders) {
        context->library = calloc(1, sizeof(*context->library));
        if (!context->library)
                return -ENOMEM;

        context->library->context = context;
        context->library->folders = folders;
        return 0;
}

/* ---- gpuq's own kernels ------------------------------------------------------------------ */

static void kernel_set(LibraryKernel *kernel, const Image *image, Gpuq__V1__Element element) {
        char symbol[64];
        size_t offset = 0;

        snprintf(symbol, sizeof(symbol), SYMBOL_INTERNAL "%s", gemm_name(element));
        kernel->function = (Function){
                .function = image_internal(image, symbol),
                .symbol = gemm_name(element),
                .name = gemm_name(element),
                .text = "",
                .parameters = kernel->parameters,
                .n_parameters = LIBRARY_GEMM_VALUES,
                .kinds_known = true,
                .max_threads = LIBRARY_THREADS,
        };
        for (unsigned i = 0; i < LIBRARY_GEMM_VALUES; ++i) {
                bool is_last = i == LIBRARY_GEMM_VALUES - 1;
                size_t size = is_last ? sizeof(LibraryGemm) : sizeof(CUdeviceptr);

                kernel->parameters[i] = (FunctionParameter){
                        .kind = is_last ? GPUQ__V1__KIND__BYTES : GPUQ__V1__KIND__POINTER,
                        .size = size,
                        .offset = offset,
                };
                offset += size;
        }
        kernel->function.n_parameter_bytes = offset;
}

void library_set_builtin(Library *library, const Image *image) {
        for (unsigned element = 0; element < LIBRARY_ELEMENTS; ++element)
                kernel_set(&library->gemm[element], image, element);
}

int library_launch_gemm(const Library *library, const Gemm *gemm, ProgramLaunch *launch) {
        const LibraryKernel *kernel = &library->gemm[gemm->element];
        bool cpu = library->context->cu->cpu;
        unsigned n_threads = cpu ? LIBRARY_THREADS_CPU : LIBRARY_THREADS;
        uint64_t n_blocks = (gemm->batch * gemm->m * gemm->n + n_threads - 1) / n_threads;

        if (!kernel->function.function)
                return LIBRARY_E_NONE;
        *launch = (ProgramLaunch){
                .function = (Function *)&kernel->function,
                .grid = {(unsigned)MIN(n_blocks, LIBRARY_BLOCKS_MAX), 1, 1},
                .block = {n_threads, 1, 1},
                .values = launch->values,
        };
        return 0;
}

/* ---- libraries ------------------------------------------------------------------------------ */

static void library_open(Library *library) {
        if (library->is_opened)
                return;
        library->is_opened = true;
        if (library->folders && strcmp(library->folders, "none") == 0)
                return;
        if (library->context->cu->cpu)
                library->blas =
                        blas_open(library->folders, library->context->limits.n_multiprocessors);
        else
                library->cublaslt = cublaslt_open(library->folders);
        if (!library->blas && !library->cublaslt)
                log_info("no library for matrix products was found: gpuq's own kernels compute "
                         "them");
}

int library_plan_gemm(Library *library, const Gemm *gemm, LibraryPlan *ret_plan) {
        LibraryPlan plan = {0};

        library_open(library);
        if (library->cublaslt &&
            !cublaslt_plan(library->cublaslt, gemm, &plan.n_workspace, &plan.is_new))
                return LIBRARY_E_NONE;
        if (library->blas)
                plan.n_workspace = blas_workspace(gemm);
        if (!library->blas && !library->cublaslt)
                return LIBRARY_E_NONE;
        *ret_plan = plan;
        return 0;
}

/* A product of the CPU driver: copied when it is issued, and computed in its stream's thread. */
typedef struct LibraryCall {
        const Blas *blas;
        Gemm gemm;
        GemmPlaces places;
} LibraryCall;

static CUresult library_on_call(void *data) {
        const LibraryCall *call = data;

        blas_gemm(call->blas, &call->gemm, &call->places);
        return CUDA_SUCCESS;
}

CUresult library_gemm(Library *library, const Gemm *gemm, const GemmPlaces *places,
                      CUstream stream) {
        const LibraryCall call = {library->blas, *gemm, *places};

        if (library->cublaslt)
                return cublaslt_gemm(library->cublaslt, gemm, places, stream);
        return library->context->cu->gpuq_cpu_call(stream, library_on_call, &call, sizeof(call));
}

CUresult library_capture_gemm(Library *library, const Gemm *gemm, const GemmPlaces *places,
                              CUstream stream, CUgraph *ret_graph) {
        const Driver *cu = library->context->cu;
        CUgraph graph = NULL;
        CUresult result, ended;

        result = cu->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
        if (result != CUDA_SUCCESS)
                return result;
        result = library_gemm(library, gemm, places, stream);
        ended = cu->cuStreamEndCapture(stream, &graph);
        if (result == CUDA_SUCCESS && ended == CUDA_SUCCESS) {
                *ret_graph = graph;
                return CUDA_SUCCESS;
        }
        if (ended == CUDA_SUCCESS && graph)
                cu->cuGraphDestroy(graph);
        return result == CUDA_SUCCESS ? ended : result;
}
