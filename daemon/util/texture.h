/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_TEXTURE_H
#define GPUQ_UTIL_TEXTURE_H

/*
 * Texture
 *
 * What an argument says about a texture over a buffer, and whether it makes sense. libgpuq checks this when a job is
 * built, the worker when it receives the job. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are those of the protocol and of gpuq.h. */
typedef enum TextureFormat {
        TEXTURE_U8 = 1,
        TEXTURE_U16 = 2,
        TEXTURE_U32 = 3,
        TEXTURE_I8 = 4,
        TEXTURE_I16 = 5,
        TEXTURE_I32 = 6,
        TEXTURE_F16 = 7,
        TEXTURE_F32 = 8,
} TextureFormat;

typedef enum TextureAddress {
        TEXTURE_CLAMP = 0,
        TEXTURE_BORDER = 1,
        TEXTURE_WRAP = 2,
        TEXTURE_MIRROR = 3,
} TextureAddress;

/* Compared as bytes: @_padding is 0. */
typedef struct TextureShape {
        uint64_t width;  /* texels */
        uint64_t height; /* rows; 0: memory of one dimension, fetched by index */
        uint64_t pitch;  /* bytes from row to row; 0 without rows */
        uint32_t format, channels;
        uint32_t address[2];
        bool linear;     /* filtering */
        bool normalized; /* coordinates from 0 to 1 */
        bool to_float;   /* integers of 8 and 16 bits become fractions of the largest */
        uint8_t _padding[5];
} TextureShape;

/** texture_texel_bytes() - of a valid shape. */
uint64_t texture_texel_bytes(const TextureShape *shape);
/** texture_bytes() - that fetches may read, of a valid shape: from the first texel to the last. */
uint64_t texture_bytes(const TextureShape *shape);
/**
 * texture_check() - whether the shape is one, and fits into a buffer
 * @n_buffer: bytes of the buffer
 * @text: says what is wrong with it, as the end of "argument 1 of k …"
 */
bool texture_check(const TextureShape *shape, uint64_t n_buffer, char *text, size_t n_text);

#endif
