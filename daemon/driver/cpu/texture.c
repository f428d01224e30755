/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture
 *
 * Texture objects over linear and pitched memory. Kernels do the fetches (ptx/texture.h). What a GPU refuses is
 * refused here too, so that a program that runs here runs there.
 */
#include <stdint.h>
#include <stdlib.h>

#include "driver/cpu/api.h"
#include "driver/cpu/context.h"
#include "driver/cpu/device.h"
#include "driver/cpu/image.h"
#include "util/macro.h"

_Static_assert((int)GPUQ_CPU_TEXTURE_U8 == CU_AD_FORMAT_UNSIGNED_INT8 &&
                       (int)GPUQ_CPU_TEXTURE_U16 == CU_AD_FORMAT_UNSIGNED_INT16 &&
                       (int)GPUQ_CPU_TEXTURE_U32 == CU_AD_FORMAT_UNSIGNED_INT32 &&
                       (int)GPUQ_CPU_TEXTURE_I8 == CU_AD_FORMAT_SIGNED_INT8 &&
                       (int)GPUQ_CPU_TEXTURE_I16 == CU_AD_FORMAT_SIGNED_INT16 &&
                       (int)GPUQ_CPU_TEXTURE_I32 == CU_AD_FORMAT_SIGNED_INT32 &&
                       (int)GPUQ_CPU_TEXTURE_F16 == CU_AD_FORMAT_HALF &&
                       (int)GPUQ_CPU_TEXTURE_F32 == CU_AD_FORMAT_FLOAT &&
                       (int)GPUQ_CPU_TEXTURE_WRAP == CU_TR_ADDRESS_MODE_WRAP &&
                       (int)GPUQ_CPU_TEXTURE_CLAMP == CU_TR_ADDRESS_MODE_CLAMP &&
                       (int)GPUQ_CPU_TEXTURE_MIRROR == CU_TR_ADDRESS_MODE_MIRROR &&
                       (int)GPUQ_CPU_TEXTURE_BORDER == CU_TR_ADDRESS_MODE_BORDER,
               "images know CUDA's numbers");

/* Bytes of one channel; 0: not a format. */
static uint32_t format_bytes(CUarray_format format) {
        switch (format) {
                case CU_AD_FORMAT_UNSIGNED_INT8:
                case CU_AD_FORMAT_SIGNED_INT8:
                        return 1;
                case CU_AD_FORMAT_UNSIGNED_INT16:
                case CU_AD_FORMAT_SIGNED_INT16:
                case CU_AD_FORMAT_HALF:
                        return 2;
                case CU_AD_FORMAT_UNSIGNED_INT32:
                case CU_AD_FORMAT_SIGNED_INT32:
                case CU_AD_FORMAT_FLOAT:
                        return 4;
                default:
                        return 0;
        }
}

/* Fetched by index: the sampler's modes do not matter, and outside is 0. */
static GpuqCpuTexture texture_linear(const CUDA_RESOURCE_DESC *resource) {
        uint32_t n_bytes = format_bytes(resource->res.linear.format);
        uint32_t n_texel = n_bytes * resource->res.linear.numChannels;

        return (GpuqCpuTexture){
                .format = resource->res.linear.format,
                .channels = resource->res.linear.numChannels,
                .n_bytes = n_bytes,
                .address = resource->res.linear.devPtr,
                .width = n_texel ? (int64_t)(resource->res.linear.sizeInBytes / n_texel) : 0,
                .height = 1,
                .address_x = GPUQ_CPU_TEXTURE_BORDER,
                .address_y = GPUQ_CPU_TEXTURE_BORDER,
        };
}

static GpuqCpuTexture texture_pitched(const CUDA_RESOURCE_DESC *resource,
                                      const CUDA_TEXTURE_DESC *sampler) {
        return (GpuqCpuTexture){
                .format = resource->res.pitch2D.format,
                .channels = resource->res.pitch2D.numChannels,
                .n_bytes = format_bytes(resource->res.pitch2D.format),
                .address = resource->res.pitch2D.devPtr,
                .width = (int64_t)resource->res.pitch2D.width,
                .height = (int64_t)resource->res.pitch2D.height,
                .pitch = resource->res.pitch2D.pitchInBytes,
                .address_x = sampler->addressMode[0],
                .address_y = sampler->addressMode[1],
                .linear = sampler->filterMode == CU_TR_FILTER_MODE_LINEAR,
                .normalized = (sampler->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0,
        };
}

static bool texture_is_float(const GpuqCpuTexture *texture) {
        return texture->to_float || texture->format == GPUQ_CPU_TEXTURE_F16 ||
               texture->format == GPUQ_CPU_TEXTURE_F32;
}

static bool texture_is_valid(const GpuqCpuTexture *texture) {
        if (texture->n_bytes == 0 || texture->width <= 0 || texture->height <= 0 ||
            (texture->channels != 1 && texture->channels != 2 && texture->channels != 4))
                return false;
        if (texture->address == 0 || texture->address % DEVICE_TEXTURE_ALIGNMENT != 0 ||
            texture->pitch % DEVICE_PITCH_ALIGNMENT != 0)
                return false;
        if (texture->pitch > 0 &&
            texture->pitch < (uint64_t)texture->width * texture->channels * texture->n_bytes)
                return false;
        return !texture->linear || texture_is_float(texture);
}

CUresult cuTexObjectCreate(CUtexObject *ret_texture, const CUDA_RESOURCE_DESC *resource,
                           const CUDA_TEXTURE_DESC *sampler, const CUDA_RESOURCE_VIEW_DESC *view) {
        GpuqCpuTexture texture, *made;
        Context *context;
        CUresult r;

        r = context_enter(&context);
        if (r)
                return r;
        if (!ret_texture || !resource || !sampler || view || resource->flags)
                return CUDA_ERROR_INVALID_VALUE;
        if (resource->resType != CU_RESOURCE_TYPE_LINEAR &&
            resource->resType != CU_RESOURCE_TYPE_PITCH2D)
                return CUDA_ERROR_NOT_SUPPORTED; /* there are no arrays */

        texture = resource->resType == CU_RESOURCE_TYPE_LINEAR ? texture_linear(resource)
                                                               : texture_pitched(resource, sampler);
        texture.magic = GPUQ_CPU_TEXTURE;
        texture.to_float = texture.n_bytes < 4 && texture.format != GPUQ_CPU_TEXTURE_F16 &&
                           !(sampler->flags & CU_TRSF_READ_AS_INTEGER);
        if (!texture_is_valid(&texture))
                return CUDA_ERROR_INVALID_VALUE;

        made = malloc(sizeof(*made));
        if (!made)
                return CUDA_ERROR_OUT_OF_MEMORY;
        *made = texture;
        *ret_texture = (uintptr_t)made;
        return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject handle) {
        GpuqCpuTexture *texture = (GpuqCpuTexture *)(uintptr_t)handle;
        Context *context;
        CUresult r;

        r = context_enter(&context);
        if (r)
                return r;
        if (!texture || texture->magic != GPUQ_CPU_TEXTURE)
                return CUDA_ERROR_INVALID_VALUE;

        texture->magic = 0; /* a kernel that still has the handle ends */
        free(texture);
        return CUDA_SUCCESS;
}
