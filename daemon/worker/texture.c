/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture
 */
#include "worker/texture.h"

#include <stdio.h>
#include <string.h>

void textures_init(Textures *textures, Context *context) {
        *textures = (Textures){.context = context};
        TAILQ_INIT(&textures->list);
}

/* ---- limits -------------------------------------------------------------------------- */

bool texture_check_limits(const TextureShape *shape, const ContextLimits *limits, char *text,
                          size_t n_text) {
        if (!shape->height && shape->width > limits->max_texture_line) {
                snprintf(text, n_text, "is a texture of %llu texels; this device takes %zu",
                         (unsigned long long)shape->width, limits->max_texture_line);
                return false;
        }
        if (!shape->height)
                return true;
        if (shape->width > limits->max_texture[0] || shape->height > limits->max_texture[1] ||
            shape->pitch > limits->max_texture_pitch) {
                snprintf(text, n_text,
                         "is a texture of %llu x %llu texels with a pitch of %llu bytes; this "
                         "device takes %zu x %zu texels and %zu bytes",
                         (unsigned long long)shape->width, (unsigned long long)shape->height,
                         (unsigned long long)shape->pitch, limits->max_texture[0],
                         limits->max_texture[1], limits->max_texture_pitch);
                return false;
        }
        if (shape->pitch % limits->texture_pitch_alignment == 0)
                return true;
        snprintf(text, n_text,
                 "is a texture with a pitch of %llu bytes; on this device it must be a multiple "
                 "of %zu bytes: let rows begin at such multiples",
                 (unsigned long long)shape->pitch, limits->texture_pitch_alignment);
        return false;
}

static int texture_check_address(const Textures *textures, CUdeviceptr address, Failure *failure) {
        size_t alignment = textures->context->limits.texture_alignment;

        if (address % alignment == 0)
                return 0;
        return failure_set(failure, GPUQ__V1__CODE__E_INVALID,
                           "a texture begins %llu bytes behind a multiple of %zu bytes, where this "
                           "device takes none: let it begin where its buffer does, or use a slice "
                           "at a multiple of %zu bytes",
                           (unsigned long long)(address % alignment), alignment, alignment);
}

/* ---- what the driver calls it -------------------------------------------------------- */

static CUarray_format texture_format(uint32_t format) {
        static const CUarray_format formats[] = {
                [TEXTURE_U8] = CU_AD_FORMAT_UNSIGNED_INT8,
                [TEXTURE_U16] = CU_AD_FORMAT_UNSIGNED_INT16,
                [TEXTURE_U32] = CU_AD_FORMAT_UNSIGNED_INT32,
                [TEXTURE_I8] = CU_AD_FORMAT_SIGNED_INT8,
                [TEXTURE_I16] = CU_AD_FORMAT_SIGNED_INT16,
                [TEXTURE_I32] = CU_AD_FORMAT_SIGNED_INT32,
                [TEXTURE_F16] = CU_AD_FORMAT_HALF,
                [TEXTURE_F32] = CU_AD_FORMAT_FLOAT,
        };

        return formats[format];
}

static CUaddress_mode texture_address_mode(uint32_t address) {
        static const CUaddress_mode modes[] = {
                [TEXTURE_CLAMP] = CU_TR_ADDRESS_MODE_CLAMP,
                [TEXTURE_BORDER] = CU_TR_ADDRESS_MODE_BORDER,
                [TEXTURE_WRAP] = CU_TR_ADDRESS_MODE_WRAP,
                [TEXTURE_MIRROR] = CU_TR_ADDRESS_MODE_MIRROR,
        };

        return modes[address];
}

static CUDA_RESOURCE_DESC texture_resource(const TextureShape *shape, CUdeviceptr address) {
        CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};

        if (!shape->height) {
                resource.res.linear.devPtr = address;
                resource.res.linear.format = texture_format(shape->format);
                resource.res.linear.numChannels = shape->channels;
                resource.res.linear.sizeInBytes = texture_bytes(shape);
                return resource;
        }
        resource.resType = CU_RESOURCE_TYPE_PITCH2D;
        resource.res.pitch2D.devPtr = address;
        resource.res.pitch2D.format = texture_format(shape->format);
        resource.res.pitch2D.numChannels = shape->channels;
        resource.res.pitch2D.width = shape->width;
        resource.res.pitch2D.height = shape->height;
        resource.res.pitch2D.pitchInBytes = shape->pitch;
        return resource;
}

/* The flag is for integers: floats have nothing to be read as but floats. */
static unsigned texture_flags(const TextureShape *shape) {
        bool is_integer = shape->format != TEXTURE_F16 && shape->format != TEXTURE_F32;

        return (is_integer && !shape->to_float ? CU_TRSF_READ_AS_INTEGER : 0) |
               (shape->normalized ? CU_TRSF_NORMALIZED_COORDINATES : 0);
}

static CUDA_TEXTURE_DESC texture_sampler(const TextureShape *shape) {
        return (CUDA_TEXTURE_DESC){
                .addressMode = {texture_address_mode(shape->address[0]),
                                texture_address_mode(shape->address[1]), CU_TR_ADDRESS_MODE_CLAMP},
                .filterMode = shape->linear ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT,
                .flags = texture_flags(shape),
        };
}

/* ---- life ---------------------------------------------------------------------------- */

/* An error here is one of the context, which the next call reports too. */
static void textures_destroy(Textures *textures, Texture *texture) {
        TAILQ_REMOVE(&textures->list, texture, link);
        --textures->n_idle;
        textures->context->cu->cuTexObjectDestroy(texture->object);
        free(texture);
}

void textures_clear(Textures *textures) {
        Texture *texture, *next;

        for (texture = TAILQ_FIRST(&textures->list); texture; texture = next) {
                next = TAILQ_NEXT(texture, link);
                if (texture->n_busy == 0)
                        textures_destroy(textures, texture);
        }
}

/* Those in flight are destroyed when they are released. */
void textures_forget_addresses(Textures *textures) {
        ++textures->generation;
        textures_clear(textures);
}

static Texture *textures_find(const Textures *textures, const TextureShape *shape,
                              CUdeviceptr address) {
        Texture *texture;

        TAILQ_FOREACH (texture, &textures->list, link)
                if (texture->address == address && texture->generation == textures->generation &&
                    memcmp(&texture->shape, shape, sizeof(*shape)) == 0)
                        return texture;
        return NULL;
}

static void textures_make_room(Textures *textures) {
        Texture *texture;

        if (textures->n_idle < TEXTURES_MAX)
                return;
        TAILQ_FOREACH_REVERSE (texture, &textures->list, TexturesList, link)
                if (texture->n_busy == 0) {
                        textures_destroy(textures, texture);
                        return;
                }
}

static int textures_make(Textures *textures, const TextureShape *shape, CUdeviceptr address,
                         Texture **ret_texture, Failure *failure) {
        const CUDA_RESOURCE_DESC resource = texture_resource(shape, address);
        const CUDA_TEXTURE_DESC sampler = texture_sampler(shape);
        const Driver *cu = textures->context->cu;
        Texture *texture;
        int r;

        r = texture_check_address(textures, address, failure);
        if (r)
                return r;
        texture = calloc(1, sizeof(*texture));
        if (!texture)
                return -ENOMEM;
        r = result_check(cu, cu->cuTexObjectCreate(&texture->object, &resource, &sampler, NULL),
                         GPUQ__V1__CODE__E_LAUNCH, "cuTexObjectCreate", failure);
        if (r) {
                free(texture);
                return r;
        }

        texture->shape = *shape;
        texture->address = address;
        texture->generation = textures->generation;
        TAILQ_INSERT_HEAD(&textures->list, texture, link);
        ++textures->n_idle;
        *ret_texture = texture;
        return 0;
}

int textures_take(Textures *textures, const TextureShape *shape, CUdeviceptr address,
                  Texture **ret_texture, Failure *failure) {
        Texture *texture = textures_find(textures, shape, address);
        int r;

        if (!texture) {
                textures_make_room(textures);
                r = textures_make(textures, shape, address, &texture, failure);
                if (r)
                        return r;
        }

        if (texture->n_busy++ == 0)
                --textures->n_idle;
        TAILQ_REMOVE(&textures->list, texture, link);
        TAILQ_INSERT_HEAD(&textures->list, texture, link);
        *ret_texture = texture;
        return 0;
}

void textures_release(Textures *textures, Texture *texture) {
        if (--texture->n_busy > 0)
                return;
        ++textures->n_idle;
        if (texture->generation != textures->generation || textures->n_idle > TEXTURES_MAX)
                textures_destroy(textures, texture);
}
