/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linking of PTX and cubins, which the CPU driver does not support.
 */
#include "driver/cpu/api.h"

CUresult cuLinkCreate_v2(unsigned int n_options, CUjit_option *options, void **values,
                         CUlinkState *ret_state) {
        return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t n_data,
                          const char *name, unsigned int n_options, CUjit_option *options,
                          void **values) {
        return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuLinkComplete(CUlinkState state, void **ret_cubin, size_t *ret_size) {
        return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuLinkDestroy(CUlinkState state) {
        return CUDA_ERROR_NOT_SUPPORTED;
}
