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
#include "worker/cufft.h"
#include "worker/fftw.h"

#define LIBRARY_ELEMENTS    4u
#define LIBRARY_THREADS     256u
#define LIBRARY_THREADS_CPU 1u /* on the host a block of one thread is one call */
#define LIBRARY_BLOCKS_MAX  4096u
#define LIBRARY_TILE        32u /* of the built-in kernel gemm, as its text says */
#define LIBRARY_GEMM_VALUES 4u  /* a, b, c, LibraryGemm */
#define LIBRARY_TILE_VALUES 8u  /* a, b, c, m, n, k, alpha, beta */

/* gpuq's own kernels for a type of elements. */
typedef struct LibraryKernel {
        Function function; /* of any layout */
        FunctionParameter parameters[LIBRARY_GEMM_VALUES];
        Function *
                tiles; /* the built-in kernel gemm, for one product of contiguous matrices; NULL: none */
} LibraryKernel;

struct Library {
        Context *context;
        const char *folders;
        bool has_opened_gemm, has_opened_fft;
        bool is_busy;       /* opening a library or making a plan on the device would wait */
        Blas *blas;         /* NULL: none, or not needed so far */
        Cublaslt *cublaslt; /* likewise, as the next */
        Fftw *fftw;
        Cufft *cufft;
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

/* It has no wider form, no twin, and the arguments that its text lists. */
static Function *builtin_tiles(const Image *image, Gpuq__V1__Element element) {
        for (size_t i = 0; i < image->n_functions; ++i)
                if (strcmp(image->functions[i].name, gemm_name(element)) == 0 &&
                    image->functions[i].n_parameters == LIBRARY_TILE_VALUES)
                        return &image->functions[i];
        return NULL;
}

void library_set_builtin(Library *library, const Image *image) {
        for (unsigned element = 0; element < LIBRARY_ELEMENTS; ++element) {
                kernel_set(&library->gemm[element], image, element);
                library->gemm[element].tiles = builtin_tiles(image, element);
        }
}

/* ---- a launch of them ------------------------------------------------------------------------ */

static bool step_is_plain(const ProgramGemm *step) {
        const Gemm *gemm = &step->gemm;

        return gemm->batch == 1 && !gemm->a.transposed && !gemm->b.transposed &&
               gemm->a.ld == gemm->k && gemm->b.ld == gemm->n && gemm->c.ld == gemm->n &&
               step->a.offset == 0 && step->b.offset == 0 && step->c.offset == 0;
}

static void launch_tiles(const Library *library, Function *tiles, const Gemm *gemm,
                         LibraryArguments *arguments, ProgramLaunch *launch) {
        uint64_t across = (gemm->n + LIBRARY_TILE - 1) / LIBRARY_TILE;
        uint64_t down = (gemm->m + LIBRARY_TILE - 1) / LIBRARY_TILE;
        const ContextLimits *limits = &library->context->limits;
        float alpha = (float)gemm->alpha, beta = (float)gemm->beta;

        if (gemm->element == GPUQ__V1__ELEMENT__SINGLE) {
                memcpy(&arguments->alpha, &alpha, sizeof(alpha));
                memcpy(&arguments->beta, &beta, sizeof(beta));
        } else {
                memcpy(&arguments->alpha, &gemm->alpha, sizeof(gemm->alpha));
                memcpy(&arguments->beta, &gemm->beta, sizeof(gemm->beta));
        }
        launch->function = tiles;
        launch->grid[0] = (unsigned)MIN(across, limits->max_grid[0]);
        launch->grid[1] = (unsigned)MIN(down, limits->max_grid[1]);
        launch->block[0] = LIBRARY_THREADS;
        launch->values[3] = &arguments->gemm.m;
        launch->values[4] = &arguments->gemm.n;
        launch->values[5] = &arguments->gemm.k;
        launch->values[6] = &arguments->alpha;
        launch->values[7] = &arguments->beta;
}

static void launch_any(const Library *library, const LibraryKernel *kernel, const Gemm *gemm,
                       LibraryArguments *arguments, ProgramLaunch *launch) {
        unsigned n_threads = library->context->cu->cpu ? LIBRARY_THREADS_CPU : LIBRARY_THREADS;
        uint64_t n_blocks = (gemm->batch * gemm->m * gemm->n + n_threads - 1) / n_threads;

        launch->function = (Function *)&kernel->function;
        launch->grid[0] = (unsigned)MIN(n_blocks, LIBRARY_BLOCKS_MAX);
        launch->grid[1] = 1;
        launch->block[0] = n_threads;
        launch->values[3] = &arguments->gemm;
}

/* A launch has no offsets into buffers, so they are in the kernel's own parameter. */
static LibraryGemm launch_parameter(const ProgramGemm *step) {
        const Gemm *gemm = &step->gemm;
        const GemmMatrix *a = &gemm->a, *b = &gemm->b;
        unsigned n_element = element_bytes(gemm->element);

        return (LibraryGemm){
                .m = gemm->m,
                .n = gemm->n,
                .k = gemm->k,
                .batch = gemm->batch,
                .a = step->a.offset / n_element,
                .a_row = a->transposed ? 1 : a->ld,
                .a_column = a->transposed ? a->ld : 1,
                .a_batch = a->stride,
                .b = step->b.offset / n_element,
                .b_row = b->transposed ? 1 : b->ld,
                .b_column = b->transposed ? b->ld : 1,
                .b_batch = b->stride,
                .c = step->c.offset / n_element,
                .c_row = gemm->c.ld,
                .c_batch = gemm->c.stride,
                .alpha = gemm->alpha,
                .beta = gemm->beta,
        };
}

int library_launch_gemm(const Library *library, const ProgramGemm *step,
                        LibraryArguments *arguments, ProgramLaunch *launch) {
        const LibraryKernel *kernel = &library->gemm[step->gemm.element];

        if (!kernel->function.function)
                return LIBRARY_E_NONE;

        *launch = (ProgramLaunch){.grid = {1, 1, 1}, .block = {1, 1, 1}, .values = launch->values};
        *arguments = (LibraryArguments){.gemm = launch_parameter(step)};
        launch->values[0] = (void *)step->a.base;
        launch->values[1] = (void *)step->b.base;
        launch->values[2] = (void *)step->c.base;
        if (kernel->tiles && step_is_plain(step))
                launch_tiles(library, kernel->tiles, &step->gemm, arguments, launch);
        else
                launch_any(library, kernel, &step->gemm, arguments, launch);
        return 0;
}

/* ---- libraries ------------------------------------------------------------------------------ */

/* On the host neither waits for anything. */
void library_set_busy(Library *library, bool is_busy) {
        if (library)
                library->is_busy = is_busy && !library->context->cu->cpu;
}

const char *library_folders(const char *setting) {
        return setting && strcmp(setting, "none") != 0 ? setting : NULL;
}

static bool library_is_off(const Library *library) {
        return library->folders && !library_folders(library->folders);
}

static void library_open_gemm(Library *library) {
        if (library->has_opened_gemm)
                return;
        library->has_opened_gemm = true;
        if (library_is_off(library))
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

static void library_open_fft(Library *library) {
        if (library->has_opened_fft)
                return;
        library->has_opened_fft = true;
        if (library_is_off(library))
                return;
        if (library->context->cu->cpu)
                library->fftw = fftw_open(library->folders);
        else
                library->cufft = cufft_open(library->context->cu, library->folders);
}

int library_plan_gemm(Library *library, const Gemm *gemm, LibraryPlan *ret_plan) {
        LibraryPlan plan = {0};

        if (library->is_busy && !library->has_opened_gemm)
                return LIBRARY_E_BUSY;
        library_open_gemm(library);
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

/* ---- Fourier transforms ---------------------------------------------------------------------- */

int library_plan_fft(Library *library, const Fft *fft, LibraryPlan *ret_plan) {
        LibraryPlan plan = {0};

        if (library->is_busy && !library->has_opened_fft)
                return LIBRARY_E_BUSY;
        library_open_fft(library);
        if (library->is_busy && library->cufft && !cufft_has_plan(library->cufft, fft))
                return LIBRARY_E_BUSY;
        if (library->cufft && !cufft_plan(library->cufft, fft, &plan.n_workspace))
                return LIBRARY_E_NONE;
        if (library->fftw)
                plan.n_workspace = fftw_workspace(fft);
        if (!library->fftw && !library->cufft)
                return LIBRARY_E_NONE;
        *ret_plan = plan;
        return 0;
}

/* As LibraryCall. */
typedef struct LibraryFftCall {
        Fftw *fftw;
        Fft fft;
        FftPlaces places;
} LibraryFftCall;

static CUresult library_on_fft_call(void *data) {
        const LibraryFftCall *call = data;

        return fftw_transform(call->fftw, &call->fft, &call->places) ? CUDA_SUCCESS
                                                                     : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult library_fft(Library *library, const Fft *fft, const FftPlaces *places, CUstream stream) {
        const LibraryFftCall call = {library->fftw, *fft, *places};

        if (library->cufft)
                return cufft_transform(library->cufft, fft, places, stream);
        return library->context->cu->gpuq_cpu_call(stream, library_on_fft_call, &call,
                                                   sizeof(call));
}
