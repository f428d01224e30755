/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes a texture, and how many bytes of its buffer it reads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "util/texture.h"

static const TextureShape line = {.format = TEXTURE_F32, .channels = 2, .width = 100};
static const TextureShape plane = {
        .format = TEXTURE_U8,
        .channels = 4,
        .width = 10,
        .height = 3,
        .pitch = 64,
        .to_float = true,
        .linear = true,
        .normalized = true,
        .address = {TEXTURE_WRAP, TEXTURE_MIRROR},
};

static void it_reads_from_its_first_texel_to_its_last(void **state) {
        char text[256];

        assert_int_equal(texture_texel_bytes(&line), 8);
        assert_int_equal(texture_bytes(&line), 800);
        assert_int_equal(texture_bytes(&plane), 2 * 64 + 40); /* not the rest of the last row */
        assert_true(texture_check(&line, 800, text, sizeof(text)));
        assert_false(texture_check(&line, 799, text, sizeof(text)));
        assert_string_equal(text, "is a texture of 800 bytes, but its buffer has 799");
        assert_true(texture_check(&plane, 168, text, sizeof(text)));
        assert_false(texture_check(&plane, 167, text, sizeof(text)));
}

static void assert_refused(TextureShape shape, const char *why) {
        char text[256] = "";

        assert_false(texture_check(&shape, UINT64_MAX, text, sizeof(text)));
        assert_non_null(strstr(text, why));
}

#define BUT(shape, ...)                                                                            \
        ({                                                                                         \
                TextureShape other = shape;                                                        \
                other.__VA_ARGS__;                                                                 \
                other;                                                                             \
        })

static void what_makes_no_sense_is_refused(void **state) {
        assert_refused(BUT(line, format = 0), "unknown format, 0");
        assert_refused(BUT(line, format = 9), "unknown format, 9");
        assert_refused(BUT(line, format = UINT32_MAX), "unknown format");
        assert_refused(BUT(line, channels = 0), "0 channels; it must have 1, 2 or 4");
        assert_refused(BUT(line, channels = 3), "3 channels");
        assert_refused(BUT(line, width = 0), "0 x 0 texels");
        assert_refused(BUT(line, width = UINT64_MAX), "which no device has");
        assert_refused(BUT(line, linear = true), "it has neither filtering");
        assert_refused(BUT(line, normalized = true), "it has neither filtering");
        assert_refused(BUT(line, address[1] = TEXTURE_BORDER), "it has neither filtering");
        assert_refused(BUT(line, pitch = 800), "no pitch");
        assert_refused(BUT(line, to_float = true), "read as normalized floats");
        assert_refused(BUT(plane, height = UINT64_MAX), "which no device has");
        assert_refused(BUT(plane, pitch = 39), "a pitch of 39 bytes; a row has 40");
        assert_refused(BUT(plane, pitch = UINT64_MAX), "pitch");
        assert_refused(BUT(plane, format = TEXTURE_I32), "integers of 8 or 16 bits");
        assert_refused(BUT(plane, to_float = false), "linear filtering, which needs floats");
        assert_refused(BUT(plane, normalized = false), "wrap, which needs normalized");
        assert_refused(BUT(plane, address[1] = 4), "unknown address mode, 4");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_reads_from_its_first_texel_to_its_last),
                cmocka_unit_test(what_makes_no_sense_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
