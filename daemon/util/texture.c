/* SPDX-License-Identifier: Apache-2.0 */
#include "util/texture.h"

#include <stdarg.h>
#include <stdio.h>

#include "util/macro.h"

/* So that no product overflows; devices have less. */
#define TEXTURE_WIDTH_MAX  (UINT64_C(1) << 40)
#define TEXTURE_HEIGHT_MAX (UINT64_C(1) << 20)
#define TEXTURE_PITCH_MAX  (UINT64_C(1) << 40)

static const struct {
        unsigned n_bytes;
        bool is_float;
} formats[] = {
        [TEXTURE_U8] = {1, false}, [TEXTURE_U16] = {2, false}, [TEXTURE_U32] = {4, false},
        [TEXTURE_I8] = {1, false}, [TEXTURE_I16] = {2, false}, [TEXTURE_I32] = {4, false},
        [TEXTURE_F16] = {2, true}, [TEXTURE_F32] = {4, true},
};

uint64_t texture_texel_bytes(const TextureShape *shape) {
        return (uint64_t)formats[shape->format].n_bytes * shape->channels;
}

uint64_t texture_bytes(const TextureShape *shape) {
        uint64_t n_row = shape->width * texture_texel_bytes(shape);

        return shape->height ? (shape->height - 1) * shape->pitch + n_row : n_row;
}

static bool _printf_(3, 4) texture_fail(char *text, size_t n_text, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, n_text, format, arguments);
        va_end(arguments);
        return false;
}

static bool texture_check_texels(const TextureShape *shape, char *text, size_t n_text) {
        if (shape->format >= ARRAY_SIZE(formats) || formats[shape->format].n_bytes == 0)
                return texture_fail(text, n_text, "is a texture of an unknown format, %u",
                                    shape->format);
        if (shape->channels != 1 && shape->channels != 2 && shape->channels != 4)
                return texture_fail(text, n_text,
                                    "is a texture with %u channels; it must have 1, 2 or 4",
                                    shape->channels);
        if (shape->width == 0 || shape->width > TEXTURE_WIDTH_MAX ||
            shape->height > TEXTURE_HEIGHT_MAX)
                return texture_fail(
                        text, n_text, "is a texture of %llu x %llu texels, which no device has",
                        (unsigned long long)shape->width, (unsigned long long)shape->height);
        return true;
}

/* What reading integers as floats, and filtering, ask of the format. */
static bool texture_check_reading(const TextureShape *shape, char *text, size_t n_text) {
        bool is_float = formats[shape->format].is_float;

        if (shape->to_float && (is_float || formats[shape->format].n_bytes > 2))
                return texture_fail(text, n_text,
                                    "is a texture read as normalized floats; its format must be "
                                    "integers of 8 or 16 bits");
        if (shape->linear && !is_float && !shape->to_float)
                return texture_fail(text, n_text,
                                    "is a texture with linear filtering, which needs floats: a "
                                    "format of floats, or integers read as normalized floats");
        return true;
}

static bool texture_check_line(const TextureShape *shape, char *text, size_t n_text) {
        if (shape->linear || shape->normalized || shape->address[0] || shape->address[1])
                return texture_fail(text, n_text,
                                    "is a texture of one dimension, which kernels fetch by index: "
                                    "it has neither filtering, normalized coordinates nor address "
                                    "modes; give it a height of 1 for tex2D()");
        if (shape->pitch)
                return texture_fail(text, n_text,
                                    "is a texture of one dimension, which has no pitch");
        return true;
}

static bool texture_check_rows(const TextureShape *shape, char *text, size_t n_text) {
        uint64_t n_row = shape->width * texture_texel_bytes(shape);

        for (unsigned i = 0; i < 2; i++) {
                if (shape->address[i] > TEXTURE_MIRROR)
                        return texture_fail(text, n_text,
                                            "is a texture with an unknown address mode, %u",
                                            shape->address[i]);
                if (shape->address[i] >= TEXTURE_WRAP && !shape->normalized)
                        return texture_fail(text, n_text,
                                            "is a texture with address mode %s, which needs "
                                            "normalized coordinates",
                                            shape->address[i] == TEXTURE_WRAP ? "wrap" : "mirror");
        }
        if (shape->pitch < n_row || shape->pitch > TEXTURE_PITCH_MAX)
                return texture_fail(text, n_text,
                                    "is a texture with a pitch of %llu bytes; a row has %llu",
                                    (unsigned long long)shape->pitch, (unsigned long long)n_row);
        return true;
}

bool texture_check(const TextureShape *shape, uint64_t n_buffer, char *text, size_t n_text) {
        bool ok = texture_check_texels(shape, text, n_text) &&
                  texture_check_reading(shape, text, n_text) &&
                  (shape->height ? texture_check_rows(shape, text, n_text)
                                 : texture_check_line(shape, text, n_text));

        if (!ok || texture_bytes(shape) <= n_buffer)
                return ok;
        return texture_fail(text, n_text, "is a texture of %llu bytes, but its buffer has %llu",
                            (unsigned long long)texture_bytes(shape), (unsigned long long)n_buffer);
}
