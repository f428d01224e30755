/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_KERNEL_ENTRY_H
#define GPUQ_CPU_KERNEL_ENTRY_H

/*
 * From a kernel's type to its entry in the image: offsets and kinds of its parameters, and the
 * loop that runs the threads of a block.
 */

extern "C" {
extern const GpuqCpuEntry __start_gpuq_cpu_entries[] __attribute__((weak, visibility("hidden")));
extern const GpuqCpuEntry __stop_gpuq_cpu_entries[] __attribute__((weak, visibility("hidden")));

__attribute__((visibility("default"), used)) GpuqCpuImage gpuq_cpu_image = {
        GPUQ_CPU_IMAGE_VERSION,  sizeof(GpuqCpuImage), __start_gpuq_cpu_entries,
        __stop_gpuq_cpu_entries, gpuq_cpu_place_get,   nullptr,
};
}

template <class T> constexpr char gpuq_cpu_letter() {
        if (std::is_pointer<T>::value)
                return 'p';
        if (std::is_floating_point<T>::value)
                return sizeof(T) == 4 ? 'f' : sizeof(T) == 8 ? 'd' : 'b';
        if (std::is_integral<T>::value || std::is_enum<T>::value)
                return sizeof(T) == 1   ? 'c'
                       : sizeof(T) == 2 ? 's'
                       : sizeof(T) == 4 ? 'i'
                       : sizeof(T) == 8 ? 'l'
                                        : 'b';
        return 'b';
}

/* One line of the signature. */
template <size_t N> struct gpuq_cpu_line { char text[N]; };

/* The offsets of parameters, as in a struct. */
template <class... P> struct gpuq_cpu_layout {
        static constexpr size_t count = sizeof...(P);
        uint32_t sizes[count + 1] = {};
        uint32_t offsets[count + 1] = {};
        uint32_t align = 0;

        constexpr gpuq_cpu_layout() {
                const size_t all_sizes[] = {sizeof(P)..., 0}, aligns[] = {alignof(P)..., 1};
                size_t end = 0;

                for (size_t i = 0; i < count; i++) {
                        end = (end + aligns[i] - 1) / aligns[i] * aligns[i];
                        sizes[i] = (uint32_t)all_sizes[i];
                        offsets[i] = (uint32_t)end;
                        end += all_sizes[i];
                        if (aligns[i] > align)
                                align = (uint32_t)aligns[i];
                }
        }
};

static inline void gpuq_cpu_place_next() {
        GpuqCpuPlace &place = gpuq_cpu_place;

        place.thread = place.next;
        place.linear = place.n_next++;
        if (++place.next.x < place.block_dim.x)
                return;
        place.next.x = 0;
        if (++place.next.y < place.block_dim.y)
                return;
        place.next.y = 0;
        place.next.z++;
}

template <class Function, Function function> struct gpuq_cpu_kernel;

template <class... P, void (*function)(P...)> struct gpuq_cpu_kernel<void (*)(P...), function> {
        static constexpr gpuq_cpu_layout<P...> layout{};

        template <size_t... I>
        static inline __attribute__((always_inline)) void call(void *const *params,
                                                               std::index_sequence<I...>) {
                (void)params;
                function(*static_cast<std::remove_cv_t<P> *>(params[I])...);
        }

        static void threads(void *const *params) {
                while (gpuq_cpu_place.n_next < gpuq_cpu_place.n_threads) {
                        gpuq_cpu_place_next();
                        call(params, std::index_sequence_for<P...>{});
                        if (__builtin_expect(gpuq_cpu_place.waited, 0))
                                gpuq_cpu_image.runtime->end();
                }
        }

        static constexpr GpuqCpuEntry entry(const char *name) {
                return {name, threads, layout.sizes, layout.offsets, sizeof...(P), layout.align};
        }

        template <size_t N>
        static constexpr gpuq_cpu_line<N + 1 + (sizeof...(P) ? sizeof...(P) : 1)>
        signature(const char (&name)[N]) {
                const char letters[] = {gpuq_cpu_letter<std::remove_cv_t<P>>()..., '-'};
                gpuq_cpu_line<N + 1 + (sizeof...(P) ? sizeof...(P) : 1)> line{};
                size_t n = 0;

                for (; n < N - 1; n++)
                        line.text[n] = name[n];
                line.text[n++] = '\t';
                for (size_t i = 0; i < (sizeof...(P) ? sizeof...(P) : 1); i++)
                        line.text[n++] = letters[i];
                line.text[n] = '\n';
                return line;
        }
};

#endif
