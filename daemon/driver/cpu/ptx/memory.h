/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PTX_MEMORY_H
#define GPUQ_CPU_PTX_MEMORY_H

/*
 * Loads, stores and atomics. An address is an integer of the host's process.
 */

/* A thread that polls may wait for another thread of its block, which must then run. */
PTX_INLINE void ptx_relax(void) {
        gpuq_cpu_image.runtime->relax(0);
}

#define PTX_ACCESS(T, U)                                                                           \
        PTX_INLINE U ptx_ld_##T(uint64_t at) {                                                     \
                return *(const U *)at;                                                             \
        }                                                                                          \
        PTX_INLINE U ptx_ld_volatile_##T(uint64_t at) {                                            \
                ptx_relax();                                                                       \
                return __atomic_load_n((const U *)at, __ATOMIC_ACQUIRE);                           \
        }                                                                                          \
        PTX_INLINE U ptx_ld_own_##T(uint64_t at) {                                                 \
                return *(const volatile U *)at;                                                    \
        }                                                                                          \
        PTX_INLINE void ptx_st_own_##T(uint64_t at, U value) {                                     \
                *(volatile U *)at = value;                                                         \
        }                                                                                          \
        PTX_INLINE void ptx_st_##T(uint64_t at, U value) {                                         \
                *(U *)at = value;                                                                  \
        }                                                                                          \
        PTX_INLINE void ptx_st_volatile_##T(uint64_t at, U value) {                                \
                __atomic_store_n((U *)at, value, __ATOMIC_RELEASE);                                \
        }
PTX_ACCESS(u8, uint8_t)
PTX_ACCESS(s8, int8_t)
PTX_ACCESS(u16, uint16_t)
PTX_ACCESS(s16, int16_t)
PTX_ACCESS(u32, uint32_t)
PTX_ACCESS(s32, int32_t)
PTX_ACCESS(u64, uint64_t)
#undef PTX_ACCESS

/*
 * Replaces *p by what the expression makes of old and value. A thread that changes nothing may be
 * waiting for another one of its block, which must then run.
 */
#define PTX_CHANGE(name, T, U, expression)                                                         \
        PTX_INLINE U ptx_atom_##name##_##T(uint64_t at, U value) {                                 \
                U *p = (U *)at, old = __atomic_load_n(p, __ATOMIC_RELAXED);                        \
                                                                                                   \
                while (!__atomic_compare_exchange_n(p, &old, (U)(expression), 1, __ATOMIC_ACQ_REL, \
                                                    __ATOMIC_RELAXED))                             \
                        ;                                                                          \
                if (old == (U)(expression))                                                        \
                        ptx_relax();                                                               \
                return old;                                                                        \
        }
#define PTX_CAS(T, U)                                                                              \
        PTX_INLINE U ptx_atom_cas_##T(uint64_t at, U compare, U value) {                           \
                U old = compare;                                                                   \
                                                                                                   \
                if (!__atomic_compare_exchange_n((U *)at, &old, value, 0, __ATOMIC_ACQ_REL,        \
                                                 __ATOMIC_ACQUIRE))                                \
                        ptx_relax();                                                               \
                return old;                                                                        \
        }
#define PTX_ATOMICS(bits)                                                                          \
        PTX_CHANGE(and, b##bits, uint##bits##_t, old &value)                                       \
        PTX_CHANGE(or, b##bits, uint##bits##_t, old | value)                                       \
        PTX_CHANGE(xor, b##bits, uint##bits##_t, old ^ value)                                      \
        PTX_CHANGE(exch, b##bits, uint##bits##_t, value)                                           \
        PTX_CHANGE(add, u##bits, uint##bits##_t, old + value)                                      \
        PTX_CHANGE(add, s##bits, uint##bits##_t, old + value)                                      \
        PTX_CHANGE(min, u##bits, uint##bits##_t, ptx_min_u##bits(old, value))                      \
        PTX_CHANGE(max, u##bits, uint##bits##_t, ptx_max_u##bits(old, value))                      \
        PTX_CHANGE(min, s##bits, uint##bits##_t,                                                   \
                   ptx_min_s##bits((int##bits##_t)old, (int##bits##_t)value))                      \
        PTX_CHANGE(max, s##bits, uint##bits##_t,                                                   \
                   ptx_max_s##bits((int##bits##_t)old, (int##bits##_t)value))                      \
        PTX_CAS(b##bits, uint##bits##_t)
PTX_ATOMICS(32)
PTX_ATOMICS(64)
PTX_CAS(b16, uint16_t)
PTX_CHANGE(inc, u32, uint32_t, old >= value ? 0 : old + 1)
PTX_CHANGE(dec, u32, uint32_t, old == 0 || old > value ? value : old - 1)
PTX_CHANGE(add, f32, uint32_t, ptx_add_rn_f32(old, value, 0))
PTX_CHANGE(add, f64, uint64_t, ptx_add_rn_f64(old, value, 0))
PTX_CHANGE(add, f16, uint16_t, ptx_add_rn_f16(old, value, 0))
PTX_CHANGE(add, bf16, uint16_t, ptx_add_rn_bf16(old, value, 0))
PTX_CHANGE(add, f16x2, uint32_t, ptx_add_rn_f16x2(old, value, 0))
PTX_CHANGE(add, bf16x2, uint32_t, ptx_add_rn_bf16x2(old, value, 0))
PTX_CHANGE(min, f16, uint16_t, ptx_min_f16(old, value))
PTX_CHANGE(min, bf16, uint16_t, ptx_min_bf16(old, value))
PTX_CHANGE(min, f16x2, uint32_t, ptx_min_f16x2(old, value))
PTX_CHANGE(min, bf16x2, uint32_t, ptx_min_bf16x2(old, value))
PTX_CHANGE(max, f16, uint16_t, ptx_max_f16(old, value))
PTX_CHANGE(max, bf16, uint16_t, ptx_max_bf16(old, value))
PTX_CHANGE(max, f16x2, uint32_t, ptx_max_f16x2(old, value))
PTX_CHANGE(max, bf16x2, uint32_t, ptx_max_bf16x2(old, value))
#undef PTX_ATOMICS
#undef PTX_CHANGE
#undef PTX_CAS

/* As many bytes of the source as it has, and zeros. */
PTX_INLINE void ptx_copy(uint64_t to, uint64_t from, uint32_t size, uint32_t n_source) {
        uint32_t n = n_source < size ? n_source : size;

        memmove((void *)to, (const void *)from, n);
        memset((void *)(to + n), 0, size - n);
}

/* Each element at @to is combined with the one at @from. */
#define PTX_REDUCE(function, to, from, n)                                                          \
        do {                                                                                       \
                __typeof__(ptx_atom_##function(0, 0)) element;                                     \
                for (uint32_t at = 0; at + sizeof(element) <= n; at += sizeof(element)) {          \
                        memcpy(&element, (const void *)(from + at), sizeof(element));              \
                        (void)ptx_atom_##function(to + at, element);                               \
                }                                                                                  \
        } while (0)

PTX_INLINE void ptx_fence(void) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif
