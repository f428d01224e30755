/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/copy.h"

#include <string.h>

#include "driver/cpu/api.h"
#include "driver/cpu/broken.h"
#include "driver/cpu/engine.h"
#include "driver/cpu/range.h"
#include "driver/cpu/stream.h"

/* One end of a copy, as an address and steps between rows and planes. */
typedef struct CopyEnd {
        char *address;
        size_t pitch, plane; /* bytes */
} CopyEnd;

typedef struct CopyWork {
        Work work;
        CopyEnd to, from;
        size_t width, height, depth;
} CopyWork;

typedef struct CopyFill {
        Work work;
        char *to;
        uint32_t value;
        uint32_t element; /* bytes: 1, 2 or 4 */
        size_t pitch, width, height;
} CopyFill;

static void copy_free(Work *work) {
        free(work);
}

/* ---- running -------------------------------------------------------------------- */

static CUresult copy_rows(void *argument) {
        const CopyWork *copy = argument;

        for (size_t z = 0; z < copy->depth; z++)
                for (size_t y = 0; y < copy->height; y++)
                        memmove(copy->to.address + z * copy->to.plane + y * copy->to.pitch,
                                copy->from.address + z * copy->from.plane + y * copy->from.pitch,
                                copy->width);

        return CUDA_SUCCESS;
}

static CUresult copy_run(Work *work, Stream *stream) {
        return engine_run_guarded(stream->engine, copy_rows, work);
}

static void copy_fill_row(const CopyFill *fill, char *row) {
        uint16_t half = (uint16_t)fill->value;

        if (fill->element == 1)
                memset(row, (int)fill->value, fill->width);
        else if (fill->element == 2)
                for (size_t x = 0; x < fill->width; x++)
                        memcpy(row + x * 2, &half, 2);
        else
                for (size_t x = 0; x < fill->width; x++)
                        memcpy(row + x * 4, &fill->value, 4);
}

static CUresult copy_fill_rows(void *argument) {
        const CopyFill *fill = argument;

        for (size_t y = 0; y < fill->height; y++)
                copy_fill_row(fill, fill->to + y * fill->pitch);

        return CUDA_SUCCESS;
}

static CUresult copy_fill_run(Work *work, Stream *stream) {
        return engine_run_guarded(stream->engine, copy_fill_rows, work);
}

/* ---- checking and making ----------------------------------------------------------- */

/* Bytes from the first to the last of some rows. */
static size_t copy_span(size_t pitch, size_t plane, size_t width, size_t height, size_t depth) {
        if (!width || !height || !depth)
                return 0;

        return (depth - 1) * plane + (height - 1) * pitch + width;
}

/* Checks an address as CUDA does: device memory must be known to the driver, host memory need
 * not. */
static CUresult copy_check(CUmemorytype type, const char *address, size_t n_bytes) {
        Range range;
        uintptr_t start = (uintptr_t)address;

        if (!n_bytes)
                return CUDA_SUCCESS;

        switch (type) {
                case CU_MEMORYTYPE_HOST:
                        return address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
                case CU_MEMORYTYPE_UNIFIED:
                        if (!range_find(start, RANGE_DEVICE | RANGE_PINNED, &range))
                                return address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
                        /* fall through */
                case CU_MEMORYTYPE_DEVICE:
                        return range_covers(start, n_bytes, RANGE_DEVICE | RANGE_PINNED)
                                       ? CUDA_SUCCESS
                                       : CUDA_ERROR_INVALID_VALUE;
                default:
                        return CUDA_ERROR_INVALID_VALUE;
        }
}

static CUresult copy_end(CUmemorytype type, const void *host, CUdeviceptr device, size_t x,
                         size_t y, size_t z, size_t pitch, size_t rows, const CUDA_MEMCPY3D *copy,
                         CopyEnd *ret_end) {
        char *base =
                type == CU_MEMORYTYPE_HOST ? (char *)(uintptr_t)host : (char *)(uintptr_t)device;
        CopyEnd end;

        if (!pitch)
                pitch = copy->WidthInBytes + x;
        if (!rows)
                rows = copy->Height + y;
        if (pitch < copy->WidthInBytes + x && (copy->Height > 1 || copy->Depth > 1))
                return CUDA_ERROR_INVALID_VALUE;

        end = (CopyEnd){.pitch = pitch, .plane = pitch * rows};
        end.address = base ? base + z * end.plane + y * pitch + x : NULL;
        *ret_end = end;
        return copy_check(
                type, end.address,
                copy_span(end.pitch, end.plane, copy->WidthInBytes, copy->Height, copy->Depth));
}

CUresult copy_work_new(const CUDA_MEMCPY3D *copy, Work **ret_work) {
        CopyEnd to, from;
        CopyWork *work;
        CUresult r;

        if (copy->srcLOD || copy->dstLOD)
                return CUDA_ERROR_INVALID_VALUE;
        r = copy_end(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcXInBytes,
                     copy->srcY, copy->srcZ, copy->srcPitch, copy->srcHeight, copy, &from);
        if (!r)
                r = copy_end(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstXInBytes,
                             copy->dstY, copy->dstZ, copy->dstPitch, copy->dstHeight, copy, &to);
        if (r)
                return r;

        work = calloc(1, sizeof(*work));
        if (!work)
                return CUDA_ERROR_OUT_OF_MEMORY;

        *work = (CopyWork){
                .work = {.n_refs = 1, .run = copy_run, .free = copy_free},
                .to = to,
                .from = from,
                .width = copy->WidthInBytes,
                .height = copy->WidthInBytes ? copy->Height : 0,
                .depth = copy->Depth,
        };
        *ret_work = &work->work;
        return CUDA_SUCCESS;
}

CUresult copy_fill_new(const CUDA_MEMSET_NODE_PARAMS *fill, Work **ret_work) {
        size_t row = fill->width * fill->elementSize;
        CopyFill *work;
        CUresult r;

        if (fill->elementSize != 1 && fill->elementSize != 2 && fill->elementSize != 4)
                return CUDA_ERROR_INVALID_VALUE;
        if (fill->dst % fill->elementSize || (fill->height > 1 && fill->pitch < row))
                return CUDA_ERROR_INVALID_VALUE;
        r = copy_check(CU_MEMORYTYPE_DEVICE, (const char *)(uintptr_t)fill->dst,
                       copy_span(fill->pitch, 0, row, fill->height, 1));
        if (r)
                return r;

        work = calloc(1, sizeof(*work));
        if (!work)
                return CUDA_ERROR_OUT_OF_MEMORY;

        *work = (CopyFill){
                .work = {.n_refs = 1, .run = copy_fill_run, .free = copy_free},
                .to = (char *)(uintptr_t)fill->dst,
                .value = fill->value,
                .element = fill->elementSize,
                .pitch = fill->pitch,
                .width = fill->width,
                .height = row ? fill->height : 0,
        };
        *ret_work = &work->work;
        return CUDA_SUCCESS;
}

/* ---- the API ------------------------------------------------------------------------ */

static CUresult copy_push(CUmemorytype to_type, CUdeviceptr to, CUmemorytype from_type,
                          CUdeviceptr from, size_t n_bytes, CUstream handle) {
        CUDA_MEMCPY3D copy = {
                .srcMemoryType = from_type,
                .srcHost = (const void *)(uintptr_t)from,
                .srcDevice = from,
                .dstMemoryType = to_type,
                .dstHost = (void *)(uintptr_t)to,
                .dstDevice = to,
                .WidthInBytes = n_bytes,
                .Height = 1,
                .Depth = 1,
        };
        Context *context;
        Stream *stream;
        Work *work;
        CUresult r;

        r = stream_enter(handle, &context, &stream);
        if (r || !n_bytes)
                return r;
        r = copy_work_new(&copy, &work);
        if (r)
                return r;

        return stream_push(stream, work);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n_bytes, CUstream stream) {
        return copy_push(CU_MEMORYTYPE_UNIFIED, to, CU_MEMORYTYPE_UNIFIED, from, n_bytes, stream);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n_bytes, CUstream stream) {
        return copy_push(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_HOST, (CUdeviceptr)from, n_bytes,
                         stream);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n_bytes, CUstream stream) {
        return copy_push(CU_MEMORYTYPE_HOST, (CUdeviceptr)to, CU_MEMORYTYPE_DEVICE, from, n_bytes,
                         stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n_bytes, CUstream stream) {
        return copy_push(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_DEVICE, from, n_bytes, stream);
}

static CUresult copy_fill_push(CUdeviceptr to, unsigned value, unsigned element, size_t n,
                               CUstream handle) {
        CUDA_MEMSET_NODE_PARAMS fill = {
                .dst = to, .value = value, .elementSize = element, .width = n, .height = 1};
        Context *context;
        Stream *stream;
        Work *work;
        CUresult r;

        r = stream_enter(handle, &context, &stream);
        if (r || !n)
                return r;
        if (n > SIZE_MAX / element)
                return CUDA_ERROR_INVALID_VALUE;
        r = copy_fill_new(&fill, &work);
        if (r)
                return r;

        return stream_push(stream, work);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream) {
        CUresult r = broken_call("cuMemsetD8Async");

        if (r)
                return r;
        return copy_fill_push(to, value, 1, n, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t n, CUstream stream) {
        return copy_fill_push(to, value, 2, n, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t n, CUstream stream) {
        return copy_fill_push(to, value, 4, n, stream);
}
