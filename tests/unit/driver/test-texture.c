/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fetch gives, by the formulas of the CUDA C++ Programming Guide. The functions are those of
 * images; here they are called as they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "driver/cpu/image.h"

GpuqCpuImage gpuq_cpu_image;

#define PTX_INLINE static inline
#define PTX_CALL   static
#include "driver/cpu/ptx/texture.h"

static float row[] = {10, 20, 40, 80};

static GpuqCpuTexture texture_of(const void *memory, uint32_t format, uint32_t n_bytes) {
        return (GpuqCpuTexture){
                .magic = GPUQ_CPU_TEXTURE,
                .format = format,
                .channels = 1,
                .n_bytes = n_bytes,
                .address = (uintptr_t)memory,
                .width = 4,
                .height = 1,
                .pitch = 64,
                .address_x = GPUQ_CPU_TEXTURE_CLAMP,
                .address_y = GPUQ_CPU_TEXTURE_CLAMP,
        };
}

static float at(const GpuqCpuTexture *texture, float x, float y) {
        PtxTexel texel =
                ptx_tex_2d_f32((uintptr_t)texture, ptx_texture_bits(x), ptx_texture_bits(y));

        return ptx_texture_float(texel.bits[0]);
}

static void the_nearest_texel_is_the_floor(void **state) {
        GpuqCpuTexture texture = texture_of(row, GPUQ_CPU_TEXTURE_F32, 4);

        assert_float_equal(at(&texture, 0, 0), 10, 0);
        assert_float_equal(at(&texture, 0.99f, 0.5f), 10, 0);
        assert_float_equal(at(&texture, 1, 0.5f), 20, 0);
        texture.normalized = 1;
        assert_float_equal(at(&texture, 0.5f, 0.5f), 40, 0);
        assert_float_equal(at(&texture, 0.49f, 0.5f), 20, 0);
}

/* xB = x - 0.5, i = floor(xB), weight = frac(xB). */
static void neighbours_are_weighted_in_steps_of_1_in_256(void **state) {
        GpuqCpuTexture texture = texture_of(row, GPUQ_CPU_TEXTURE_F32, 4);

        texture.linear = 1;
        assert_float_equal(at(&texture, 1, 0.5f), 15, 0);
        assert_float_equal(at(&texture, 1.25f, 0.5f), 17.5f, 0);
        assert_float_equal(at(&texture, 1.5f, 0.5f), 20, 0);
        assert_float_equal(at(&texture, 1.5f + 1 / 256.f, 0.5f), 20 + 20 / 256.f, 0);
        assert_float_equal(at(&texture, 1.5f + 1 / 1024.f, 0.5f), 20, 0);
        assert_float_equal(at(&texture, 1.5f + 3 / 1024.f, 0.5f), 20 + 20 / 256.f, 0);
        assert_float_equal(at(&texture, 2.5f - 1 / 1024.f, 0.5f), 40, 0); /* a weight of 256/256 */
}

static void two_dimensions_are_weighted_one_after_the_other(void **state) {
        float image[2][16] = {{0, 4, 8, 12}, {100, 104, 108, 112}};
        GpuqCpuTexture texture = texture_of(image, GPUQ_CPU_TEXTURE_F32, 4);

        texture.height = 2;
        texture.linear = 1;
        assert_float_equal(at(&texture, 1, 1), 52, 0);
        assert_float_equal(at(&texture, 1.5f, 1.25f), 79, 0);
        assert_float_equal(at(&texture, 0, 0), 0, 0);
        assert_float_equal(at(&texture, 9, 9), 112, 0);
}

static void outside_is_what_the_mode_says(void **state) {
        static const struct {
                uint32_t mode;
                float wanted[8]; /* for texels -5, -2, -1, 0, 3, 4, 7, 9 */
        } modes[] = {
                {GPUQ_CPU_TEXTURE_CLAMP, {10, 10, 10, 10, 80, 80, 80, 80}},
                {GPUQ_CPU_TEXTURE_BORDER, {0, 0, 0, 10, 80, 0, 0, 0}},
                {GPUQ_CPU_TEXTURE_WRAP, {80, 40, 80, 10, 80, 10, 80, 20}},
                {GPUQ_CPU_TEXTURE_MIRROR, {80, 20, 10, 10, 80, 80, 10, 20}},
        };
        static const int texels[] = {-5, -2, -1, 0, 3, 4, 7, 9};

        for (size_t i = 0; i < 4; i++)
                for (size_t k = 0; k < 8; k++) {
                        GpuqCpuTexture texture = texture_of(row, GPUQ_CPU_TEXTURE_F32, 4);

                        texture.normalized = 1;
                        texture.address_x = modes[i].mode;
                        assert_float_equal(at(&texture, ((float)texels[k] + 0.5f) / 4, 0.5f),
                                           modes[i].wanted[k], 0);
                        texture.linear = 1;
                        assert_float_equal(at(&texture, ((float)texels[k] + 0.5f) / 4, 0.5f),
                                           modes[i].wanted[k], 0);
                }
}

static void a_border_is_a_neighbour_too(void **state) {
        GpuqCpuTexture texture = texture_of(row, GPUQ_CPU_TEXTURE_F32, 4);

        texture.linear = 1;
        texture.address_x = GPUQ_CPU_TEXTURE_BORDER;
        assert_float_equal(at(&texture, 0, 0.5f), 5, 0);
        assert_float_equal(at(&texture, 4, 0.5f), 40, 0);
        texture.normalized = 1;
        texture.address_x = GPUQ_CPU_TEXTURE_WRAP;
        assert_float_equal(at(&texture, 0, 0.5f), 45, 0); /* between the last and the first */
}

static void no_coordinate_does_harm(void **state) {
        static const float coordinates[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-40f};

        for (uint32_t mode = 0; mode < 4; mode++)
                for (size_t i = 0; i < 6; i++)
                        for (int linear = 0; linear < 4; linear++) {
                                GpuqCpuTexture texture = texture_of(row, GPUQ_CPU_TEXTURE_F32, 4);

                                texture.linear = linear & 1;
                                texture.normalized = linear > 1;
                                texture.address_x = texture.address_y = mode;
                                (void)at(&texture, coordinates[i], coordinates[5 - i]);
                        }
}

static void indices_outside_are_0(void **state) {
        GpuqCpuTexture texture = texture_of(row, GPUQ_CPU_TEXTURE_F32, 4);

        assert_int_equal(ptx_tex_1d_s32((uintptr_t)&texture, 1).bits[0], ptx_texture_bits(20));
        assert_int_equal(ptx_tex_1d_s32((uintptr_t)&texture, 4).bits[0], 0);
        assert_int_equal(ptx_tex_1d_s32((uintptr_t)&texture, UINT32_MAX).bits[0], 0);
        assert_int_equal(ptx_tex_1d_s32((uintptr_t)&texture, INT32_MAX).bits[0], 0);
        assert_int_equal(ptx_tex_1d_s32((uintptr_t)&texture, 0x80000000).bits[0], 0);
}

static void assert_texel(uint32_t format, uint32_t n_bytes, int to_float, uint32_t bits,
                         uint32_t wanted) {
        GpuqCpuTexture texture = texture_of(&bits, format, n_bytes);

        texture.to_float = (uint8_t)to_float;
        assert_int_equal(ptx_tex_1d_s32((uintptr_t)&texture, 0).bits[0], wanted);
}

static void texels_become_32_bits(void **state) {
        assert_texel(GPUQ_CPU_TEXTURE_U8, 1, 0, 0xff, 255);
        assert_texel(GPUQ_CPU_TEXTURE_I8, 1, 0, 0xff, UINT32_MAX);
        assert_texel(GPUQ_CPU_TEXTURE_U16, 2, 0, 0x8000, 0x8000);
        assert_texel(GPUQ_CPU_TEXTURE_I16, 2, 0, 0x8000, 0xffff8000);
        assert_texel(GPUQ_CPU_TEXTURE_U32, 4, 0, 0x80000001, 0x80000001);
        assert_texel(GPUQ_CPU_TEXTURE_U8, 1, 1, 0xff, 0x3f800000);
        assert_texel(GPUQ_CPU_TEXTURE_U8, 1, 1, 0x33, 0x3e4ccccd);
        assert_texel(GPUQ_CPU_TEXTURE_I8, 1, 1, 0x7f, 0x3f800000);
        assert_texel(GPUQ_CPU_TEXTURE_I8, 1, 1, 0x81, 0xbf800000);
        assert_texel(GPUQ_CPU_TEXTURE_I8, 1, 1, 0x80, 0xbf800000);
        assert_texel(GPUQ_CPU_TEXTURE_U16, 2, 1, 0xffff, 0x3f800000);
        assert_texel(GPUQ_CPU_TEXTURE_I16, 2, 1, 0x8000, 0xbf800000);
        assert_texel(GPUQ_CPU_TEXTURE_F16, 2, 0, 0x3c00, 0x3f800000);
        assert_texel(GPUQ_CPU_TEXTURE_F16, 2, 0, 0xc500, 0xc0a00000);
        assert_texel(GPUQ_CPU_TEXTURE_F16, 2, 0, 0x0001, 0x33800000); /* subnormal: 2^-24 */
        assert_texel(GPUQ_CPU_TEXTURE_F16, 2, 0, 0xfc00, 0xff800000);
        assert_texel(GPUQ_CPU_TEXTURE_F32, 4, 0, 0x40490fdb, 0x40490fdb);
}

static void channels_lie_next_to_each_other(void **state) {
        static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8};
        GpuqCpuTexture texture = texture_of(bytes, GPUQ_CPU_TEXTURE_U8, 1);
        PtxTexel texel;

        texture.channels = 4;
        texture.width = 2;
        texel = ptx_tex_1d_s32((uintptr_t)&texture, 1);
        assert_int_equal(texel.bits[0], 5);
        assert_int_equal(texel.bits[3], 8);
        texture.channels = 2;
        texel = ptx_tex_1d_s32((uintptr_t)&texture, 1);
        assert_int_equal(texel.bits[1], 4);
        assert_int_equal(texel.bits[2], 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_nearest_texel_is_the_floor),
                cmocka_unit_test(neighbours_are_weighted_in_steps_of_1_in_256),
                cmocka_unit_test(two_dimensions_are_weighted_one_after_the_other),
                cmocka_unit_test(outside_is_what_the_mode_says),
                cmocka_unit_test(a_border_is_a_neighbour_too),
                cmocka_unit_test(no_coordinate_does_harm),
                cmocka_unit_test(indices_outside_are_0),
                cmocka_unit_test(texels_become_32_bits),
                cmocka_unit_test(channels_lie_next_to_each_other),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
