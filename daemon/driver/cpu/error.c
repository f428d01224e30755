/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error
 *
 * Names and texts of result codes.
 */
#include "driver/cpu/api.h"

#include "util/macro.h"

static const struct {
        CUresult error;
        const char *name;
        const char *text;
} errors[] = {
#define ERROR(name, text)                                                                          \
        { CUDA_##name, "CUDA_" #name, text }
        ERROR(SUCCESS, "no error"),
        ERROR(ERROR_INVALID_VALUE, "invalid argument"),
        ERROR(ERROR_OUT_OF_MEMORY, "out of memory"),
        ERROR(ERROR_NOT_INITIALIZED, "initialization error"),
        ERROR(ERROR_DEINITIALIZED, "driver shutting down"),
        ERROR(ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
        ERROR(ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
        ERROR(ERROR_INVALID_DEVICE, "invalid device ordinal"),
        ERROR(ERROR_INVALID_IMAGE, "device kernel image is invalid"),
        ERROR(ERROR_INVALID_CONTEXT, "invalid device context"),
        ERROR(ERROR_MAP_FAILED, "mapping of buffer object failed"),
        ERROR(ERROR_UNMAP_FAILED, "unmapping of buffer object failed"),
        ERROR(ERROR_ALREADY_MAPPED, "resource already mapped"),
        ERROR(ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
        ERROR(ERROR_NOT_MAPPED, "resource not mapped"),
        ERROR(ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
        ERROR(ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
        ERROR(ERROR_INVALID_SOURCE, "device kernel image is invalid"),
        ERROR(ERROR_FILE_NOT_FOUND, "file not found"),
        ERROR(ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
        ERROR(ERROR_INVALID_HANDLE, "invalid resource handle"),
        ERROR(ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
        ERROR(ERROR_NOT_FOUND, "named symbol not found"),
        ERROR(ERROR_NOT_READY, "device not ready"),
        ERROR(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
        ERROR(ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
        ERROR(ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
        ERROR(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
        ERROR(ERROR_ASSERT, "device-side assert triggered"),
        ERROR(ERROR_HOST_MEMORY_ALREADY_REGISTERED,
              "part or all of the requested memory range is already mapped"),
        ERROR(ERROR_HOST_MEMORY_NOT_REGISTERED,
              "pointer does not correspond to a registered memory region"),
        ERROR(ERROR_HARDWARE_STACK_ERROR, "hardware stack error"),
        ERROR(ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
        ERROR(ERROR_MISALIGNED_ADDRESS, "misaligned address"),
        ERROR(ERROR_LAUNCH_FAILED, "unspecified launch failure"),
        ERROR(ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
        ERROR(ERROR_NOT_PERMITTED, "operation not permitted"),
        ERROR(ERROR_NOT_SUPPORTED, "operation not supported"),
        ERROR(ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
        ERROR(ERROR_TIMEOUT, "wait operation timed out"),
        ERROR(ERROR_GRAPH_EXEC_UPDATE_FAILURE,
              "the graph update was not performed because it included changes which violated "
              "constraints specific to instantiated graph update"),
        ERROR(ERROR_INVALID_CLUSTER_SIZE, "invalid cluster size"),
        ERROR(ERROR_INVALID_RESOURCE_TYPE, "invalid resource type"),
        ERROR(ERROR_INVALID_RESOURCE_CONFIGURATION, "invalid resource configuration"),
        ERROR(ERROR_UNKNOWN, "unknown error"),
#undef ERROR
};

const char gpuq_cpu_driver[] = GPUQ_VERSION;

CUresult cuGetErrorName(CUresult error, const char **ret_name) {
        for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
                if (errors[i].error == error) {
                        *ret_name = errors[i].name;
                        return CUDA_SUCCESS;
                }

        *ret_name = NULL;
        return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **ret_text) {
        for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
                if (errors[i].error == error) {
                        *ret_text = errors[i].text;
                        return CUDA_SUCCESS;
                }

        *ret_text = NULL;
        return CUDA_ERROR_INVALID_VALUE;
}
