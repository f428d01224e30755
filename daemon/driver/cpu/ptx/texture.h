/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PTX_TEXTURE_H
#define GPUQ_CPU_PTX_TEXTURE_H

/*
 * Texture fetches, as the CUDA C++ Programming Guide defines them
 *
 * A coordinate selects texel i = floor(x), or with linear filtering the texels i = floor(x - 0.5) and i + 1, whose
 * weights are multiples of 1/256. Each texel outside is brought inside by the address mode, or is 0 (border, and
 * memory that is fetched by index). A handle is the address of a GpuqCpuTexture; what is none ends the kernel.
 */

/* Of v4: the bits of each component. What the texture does not have is 0. */
typedef struct PtxTexel {
        uint32_t bits[4];
} PtxTexel;

PTX_INLINE const GpuqCpuTexture *ptx_texture(uint64_t handle) {
        const GpuqCpuTexture *texture = (const GpuqCpuTexture *)handle;

        if (!handle || handle % _Alignof(GpuqCpuTexture) || texture->magic != GPUQ_CPU_TEXTURE)
                gpuq_cpu_image.runtime->trap();
        return texture;
}

/* ---- one texel --------------------------------------------------------------------- */

PTX_INLINE uint32_t ptx_texture_bits(float x) {
        uint32_t bits;

        memcpy(&bits, &x, sizeof(bits));
        return bits;
}

PTX_INLINE float ptx_texture_float(uint32_t bits) {
        float x;

        memcpy(&x, &bits, sizeof(x));
        return x;
}

PTX_INLINE float ptx_texture_half(uint16_t bits) {
        uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
        float x = exponent == 31  ? ptx_texture_float(0x7f800000 | fraction << 13)
                  : exponent == 0 ? (float)fraction * 0x1p-24f
                                  : ptx_texture_float((exponent + 112) << 23 | fraction << 13);

        return bits >> 15 ? -x : x;
}

/* The component as a kernel gets it: an integer of 32 bits, or a float. */
PTX_INLINE uint32_t ptx_texture_component(const GpuqCpuTexture *texture, const void *at) {
        int32_t value;

        switch (texture->format) {
                case GPUQ_CPU_TEXTURE_U8:
                        value = *(const uint8_t *)at;
                        return texture->to_float ? ptx_texture_bits((float)value / 255)
                                                 : (uint32_t)value;
                case GPUQ_CPU_TEXTURE_I8:
                        value = *(const int8_t *)at;
                        return texture->to_float
                                       ? ptx_texture_bits((float)(value < -127 ? -127 : value) /
                                                          127)
                                       : (uint32_t)value;
                case GPUQ_CPU_TEXTURE_U16:
                        value = *(const uint16_t *)at;
                        return texture->to_float ? ptx_texture_bits((float)value / 65535)
                                                 : (uint32_t)value;
                case GPUQ_CPU_TEXTURE_I16:
                        value = *(const int16_t *)at;
                        return texture->to_float
                                       ? ptx_texture_bits((float)(value < -32767 ? -32767 : value) /
                                                          32767)
                                       : (uint32_t)value;
                case GPUQ_CPU_TEXTURE_F16:
                        return ptx_texture_bits(ptx_texture_half(*(const uint16_t *)at));
                default:
                        return *(const uint32_t *)at;
        }
}

PTX_INLINE PtxTexel ptx_texel(const GpuqCpuTexture *texture, int64_t x, int64_t y) {
        PtxTexel texel = {{0}};
        const uint8_t *at;

        if (x < 0 || y < 0 || x >= texture->width || y >= texture->height)
                return texel;
        at = (const uint8_t *)texture->address + (uint64_t)y * texture->pitch +
             (uint64_t)x * texture->channels * texture->n_bytes;
        for (uint32_t i = 0; i < texture->channels; i++)
                texel.bits[i] = ptx_texture_component(texture, at + i * texture->n_bytes);
        return texel;
}

/* ---- coordinates ------------------------------------------------------------------- */

/* The texel for one outside; -1, which is outside, for the border. */
PTX_INLINE int64_t ptx_texture_inside(int64_t i, int64_t n, uint32_t mode) {
        int64_t turn;

        if ((i >= 0 && i < n) || mode == GPUQ_CPU_TEXTURE_BORDER)
                return i >= 0 && i < n ? i : -1;
        if (mode == GPUQ_CPU_TEXTURE_CLAMP)
                return i < 0 ? 0 : n - 1;
        turn = (i % n + n) % n;
        if (mode == GPUQ_CPU_TEXTURE_WRAP || (i - turn) / n % 2 == 0)
                return turn;
        return n - 1 - turn;
}

/* In texels. What is far outside, or no number, stays in the range of integers. */
PTX_INLINE double ptx_texture_coordinate(const GpuqCpuTexture *texture, float x, int64_t n) {
        double at = texture->normalized ? (double)x * (double)n : x;

        if (!(at > -0x1p40))
                return at == at ? -0x1p40 : 0;
        return at < 0x1p40 ? at : 0x1p40;
}

/* floor(x - 0.5), and the weight of the texel behind it in 1/256. */
PTX_INLINE int64_t ptx_texture_place(double x, uint32_t *ret_weight) {
        double place = x - 0.5, whole = floor(place);

        *ret_weight = (uint32_t)floor((place - whole) * 256 + 0.5);
        return (int64_t)whole;
}

PTX_INLINE float ptx_texture_mix(float a, float b, uint32_t weight) {
        return (float)(256 - weight) / 256 * a + (float)weight / 256 * b;
}

/* ---- fetches ----------------------------------------------------------------------- */

/* By index, from memory without a second dimension: outside is 0. */
PTX_CALL PtxTexel ptx_tex_1d_s32(uint64_t handle, uint32_t x) {
        return ptx_texel(ptx_texture(handle), (int32_t)x, 0);
}

PTX_CALL PtxTexel ptx_tex_2d_linear(const GpuqCpuTexture *texture, double x, double y) {
        uint32_t right, below;
        int64_t i = ptx_texture_place(x, &right), k = ptx_texture_place(y, &below);
        int64_t columns[2], rows[2];
        PtxTexel texels[2][2], result = {{0}};

        for (int n = 0; n < 2; n++) {
                columns[n] = ptx_texture_inside(i + n, texture->width, texture->address_x);
                rows[n] = ptx_texture_inside(k + n, texture->height, texture->address_y);
        }
        for (int n = 0; n < 4; n++)
                texels[n / 2][n % 2] = ptx_texel(texture, columns[n % 2], rows[n / 2]);
        for (uint32_t c = 0; c < texture->channels; c++) {
                float upper = ptx_texture_mix(ptx_texture_float(texels[0][0].bits[c]),
                                              ptx_texture_float(texels[0][1].bits[c]), right);
                float lower = ptx_texture_mix(ptx_texture_float(texels[1][0].bits[c]),
                                              ptx_texture_float(texels[1][1].bits[c]), right);

                result.bits[c] = ptx_texture_bits(ptx_texture_mix(upper, lower, below));
        }
        return result;
}

/* @x_, @y_: the bits of floats. */
PTX_CALL PtxTexel ptx_tex_2d_f32(uint64_t handle, uint32_t x_, uint32_t y_) {
        const GpuqCpuTexture *texture = ptx_texture(handle);
        double x = ptx_texture_coordinate(texture, ptx_texture_float(x_), texture->width);
        double y = ptx_texture_coordinate(texture, ptx_texture_float(y_), texture->height);

        if (texture->linear)
                return ptx_tex_2d_linear(texture, x, y);
        return ptx_texel(
                texture, ptx_texture_inside((int64_t)floor(x), texture->width, texture->address_x),
                ptx_texture_inside((int64_t)floor(y), texture->height, texture->address_y));
}

PTX_INLINE uint32_t ptx_txq_width(uint64_t handle) {
        return (uint32_t)ptx_texture(handle)->width;
}

PTX_INLINE uint32_t ptx_txq_height(uint64_t handle) {
        return (uint32_t)ptx_texture(handle)->height;
}

#endif
