/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_DRIVER_DRIVER_H
#define GPUQ_DRIVER_DRIVER_H

/*
 * Driver
 *
 * The CUDA driver API as a table of function pointers, filled from
 * libcuda.so.1 or from libgpuq-cpu.so, which implements the same functions on
 * host threads. A member is named as the API function without its version; the
 * version that gpuq speaks is in the symbol. Everything here is in NVIDIA's
 * driver R550 (CUDA 12.4), the oldest supported.
 */

#include <stdbool.h>

#include "driver/cuda_types.h"

/* X(member, symbol, arguments) */
/* clang-format off */
#define DRIVER_FUNCTIONS(X)                                                                        \
        /* the machine */                                                                          \
        X(cuInit, cuInit, (unsigned int flags))                                                    \
        X(cuDriverGetVersion, cuDriverGetVersion, (int *ret_version))                              \
        X(cuGetErrorName, cuGetErrorName, (CUresult error, const char **ret_name))                 \
        X(cuGetErrorString, cuGetErrorString, (CUresult error, const char **ret_text))             \
        X(cuDeviceGetCount, cuDeviceGetCount, (int *ret_count))                                    \
        X(cuDeviceGet, cuDeviceGet, (CUdevice *ret_device, int ordinal))                           \
        X(cuDeviceGetName, cuDeviceGetName, (char *name, int n_name, CUdevice device))             \
        X(cuDeviceGetUuid, cuDeviceGetUuid_v2, (CUuuid *ret_uuid, CUdevice device))                \
        X(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t *ret_bytes, CUdevice device))             \
        X(cuDeviceGetAttribute, cuDeviceGetAttribute,                                              \
          (int *ret_value, CUdevice_attribute attribute, CUdevice device))                         \
        X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char *id, int n_id, CUdevice device))         \
        X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer,                                            \
          (int *ret_can, CUdevice device, CUdevice peer))                                          \
        X(cuDeviceGetP2PAttribute, cuDeviceGetP2PAttribute,                                        \
          (int *ret_value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer))       \
        /* context */                                                                              \
        X(cuCtxCreate, cuCtxCreate_v2,                                                             \
          (CUcontext *ret_context, unsigned int flags, CUdevice device))                           \
        X(cuCtxDestroy, cuCtxDestroy_v2, (CUcontext context))                                      \
        X(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext context))                                   \
        X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange,                                \
          (int *ret_least, int *ret_greatest))                                                     \
        X(cuCtxSynchronize, cuCtxSynchronize, (void))                                              \
        X(cuCtxSetLimit, cuCtxSetLimit, (CUlimit limit, size_t value))                             \
        X(cuMemGetInfo, cuMemGetInfo_v2, (size_t *ret_free, size_t *ret_total))                    \
        /* streams and events */                                                                   \
        X(cuStreamCreateWithPriority, cuStreamCreateWithPriority,                                  \
          (CUstream *ret_stream, unsigned int flags, int priority))                                \
        X(cuStreamDestroy, cuStreamDestroy_v2, (CUstream stream))                                  \
        X(cuStreamQuery, cuStreamQuery, (CUstream stream))                                         \
        X(cuStreamSynchronize, cuStreamSynchronize, (CUstream stream))                             \
        X(cuStreamWaitEvent, cuStreamWaitEvent,                                                    \
          (CUstream stream, CUevent event, unsigned int flags))                                    \
        X(cuStreamWriteValue32, cuStreamWriteValue32_v2,                                           \
          (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags))            \
        X(cuStreamWaitValue32, cuStreamWaitValue32_v2,                                             \
          (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags))            \
        X(cuStreamBeginCapture, cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode))\
        X(cuStreamEndCapture, cuStreamEndCapture, (CUstream stream, CUgraph *ret_graph))           \
        X(cuEventCreate, cuEventCreate, (CUevent *ret_event, unsigned int flags))                  \
        X(cuEventDestroy, cuEventDestroy_v2, (CUevent event))                                      \
        X(cuEventRecord, cuEventRecord, (CUevent event, CUstream stream))                          \
        X(cuEventQuery, cuEventQuery, (CUevent event))                                             \
        X(cuEventElapsedTime, cuEventElapsedTime,                                                  \
          (float *ret_milliseconds, CUevent start, CUevent end))                                   \
        /* copies and fills */                                                                     \
        X(cuMemcpyAsync, cuMemcpyAsync,                                                            \
          (CUdeviceptr to, CUdeviceptr from, size_t n_bytes, CUstream stream))                     \
        X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                 \
          (CUdeviceptr to, const void *from, size_t n_bytes, CUstream stream))                     \
        X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                                 \
          (void *to, CUdeviceptr from, size_t n_bytes, CUstream stream))                           \
        X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,                                                 \
          (CUdeviceptr to, CUdeviceptr from, size_t n_bytes, CUstream stream))                     \
        X(cuMemsetD8Async, cuMemsetD8Async,                                                        \
          (CUdeviceptr to, unsigned char value, size_t n, CUstream stream))                        \
        X(cuMemsetD16Async, cuMemsetD16Async,                                                      \
          (CUdeviceptr to, unsigned short value, size_t n, CUstream stream))                       \
        X(cuMemsetD32Async, cuMemsetD32Async,                                                      \
          (CUdeviceptr to, unsigned int value, size_t n, CUstream stream))                         \
        /* host memory */                                                                          \
        X(cuMemHostRegister, cuMemHostRegister_v2,                                                 \
          (void *memory, size_t n_bytes, unsigned int flags))                                      \
        X(cuMemHostUnregister, cuMemHostUnregister, (void *memory))                                \
        X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2,                                 \
          (CUdeviceptr *ret_pointer, void *memory, unsigned int flags))                            \
        X(cuMemHostAlloc, cuMemHostAlloc,                                                          \
          (void **ret_memory, size_t n_bytes, unsigned int flags))                                 \
        X(cuMemFreeHost, cuMemFreeHost, (void *memory))                                            \
        /* device memory that can be handed to other processes */                                  \
        X(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity,                            \
          (size_t *ret_bytes, const CUmemAllocationProp *prop,                                     \
           CUmemAllocationGranularity_flags option))                                               \
        X(cuMemCreate, cuMemCreate,                                                                \
          (CUmemGenericAllocationHandle *ret_handle, size_t size, const CUmemAllocationProp *prop, \
           unsigned long long flags))                                                              \
        X(cuMemRelease, cuMemRelease, (CUmemGenericAllocationHandle handle))                       \
        X(cuMemAddressReserve, cuMemAddressReserve,                                                \
          (CUdeviceptr *ret_address, size_t size, size_t alignment, CUdeviceptr wish,              \
           unsigned long long flags))                                                              \
        X(cuMemAddressFree, cuMemAddressFree, (CUdeviceptr address, size_t size))                  \
        X(cuMemMap, cuMemMap,                                                                      \
          (CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,   \
           unsigned long long flags))                                                              \
        X(cuMemUnmap, cuMemUnmap, (CUdeviceptr address, size_t size))                              \
        X(cuMemSetAccess, cuMemSetAccess,                                                          \
          (CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t n_access))      \
        X(cuMemExportToShareableHandle, cuMemExportToShareableHandle,                              \
          (void *ret_shared, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,  \
           unsigned long long flags))                                                              \
        X(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle,                          \
          (CUmemGenericAllocationHandle *ret_handle, void *shared, CUmemAllocationHandleType type))\
        /* stream-ordered memory */                                                                \
        X(cuMemPoolCreate, cuMemPoolCreate, (CUmemoryPool *ret_pool, const CUmemPoolProps *props)) \
        X(cuMemPoolDestroy, cuMemPoolDestroy, (CUmemoryPool pool))                                 \
        X(cuMemPoolSetAttribute, cuMemPoolSetAttribute,                                            \
          (CUmemoryPool pool, CUmemPool_attribute attribute, void *value))                         \
        X(cuMemPoolGetAttribute, cuMemPoolGetAttribute,                                            \
          (CUmemoryPool pool, CUmemPool_attribute attribute, void *ret_value))                     \
        X(cuMemPoolTrimTo, cuMemPoolTrimTo, (CUmemoryPool pool, size_t n_bytes_keep))              \
        X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync,                                        \
          (CUdeviceptr *ret_pointer, size_t n_bytes, CUmemoryPool pool, CUstream stream))          \
        X(cuMemFreeAsync, cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream))                  \
        /* modules and functions */                                                                \
        X(cuModuleLoadData, cuModuleLoadData, (CUmodule *ret_module, const void *image))           \
        X(cuModuleUnload, cuModuleUnload, (CUmodule module))                                       \
        X(cuModuleGetFunction, cuModuleGetFunction,                                                \
          (CUfunction *ret_function, CUmodule module, const char *name))                           \
        X(cuModuleGetGlobal, cuModuleGetGlobal_v2,                                                 \
          (CUdeviceptr *ret_pointer, size_t *ret_bytes, CUmodule module, const char *name))        \
        X(cuModuleGetFunctionCount, cuModuleGetFunctionCount,                                      \
          (unsigned int *ret_count, CUmodule module))                                              \
        X(cuModuleEnumerateFunctions, cuModuleEnumerateFunctions,                                  \
          (CUfunction *functions, unsigned int n_functions, CUmodule module))                      \
        X(cuFuncGetName, cuFuncGetName, (const char **ret_name, CUfunction function))              \
        X(cuFuncGetAttribute, cuFuncGetAttribute,                                                  \
          (int *ret_value, CUfunction_attribute attribute, CUfunction function))                   \
        X(cuFuncSetAttribute, cuFuncSetAttribute,                                                  \
          (CUfunction function, CUfunction_attribute attribute, int value))                        \
        X(cuFuncGetParamInfo, cuFuncGetParamInfo,                                                  \
          (CUfunction function, size_t index, size_t *ret_offset, size_t *ret_size))               \
        X(cuFuncLoad, cuFuncLoad, (CUfunction function))                                           \
        X(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor,\
          (int *ret_blocks, CUfunction function, int n_threads, size_t n_shared_bytes))            \
        X(cuLaunchKernelEx, cuLaunchKernelEx,                                                      \
          (const CUlaunchConfig *config, CUfunction function, void **params, void **extra))        \
        /* graphs */                                                                               \
        X(cuGraphCreate, cuGraphCreate, (CUgraph *ret_graph, unsigned int flags))                  \
        X(cuGraphDestroy, cuGraphDestroy, (CUgraph graph))                                         \
        X(cuGraphAddKernelNode, cuGraphAddKernelNode_v2,                                           \
          (CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *after, size_t n_after,         \
           const CUDA_KERNEL_NODE_PARAMS *params))                                                 \
        X(cuGraphAddMemcpyNode, cuGraphAddMemcpyNode,                                              \
          (CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *after, size_t n_after,         \
           const CUDA_MEMCPY3D *params, CUcontext context))                                        \
        X(cuGraphAddMemsetNode, cuGraphAddMemsetNode,                                              \
          (CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *after, size_t n_after,         \
           const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context))                              \
        X(cuGraphAddChildGraphNode, cuGraphAddChildGraphNode,                                      \
          (CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *after, size_t n_after,         \
           CUgraph child))                                                                         \
        X(cuGraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute,                            \
          (CUgraphNode node, CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue *value))    \
        X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags,                                \
          (CUgraphExec *ret_exec, CUgraph graph, unsigned long long flags))                        \
        X(cuGraphExecDestroy, cuGraphExecDestroy, (CUgraphExec exec))                              \
        X(cuGraphLaunch, cuGraphLaunch, (CUgraphExec exec, CUstream stream))                       \
        X(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2,                       \
          (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params))             \
        X(cuGraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams,                          \
          (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *params, CUcontext context))    \
        X(cuGraphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams,                          \
          (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params,              \
           CUcontext context))                                                                     \
        /* texture objects */                                                                      \
        X(cuTexObjectCreate, cuTexObjectCreate,                                                    \
          (CUtexObject *ret_texture, const CUDA_RESOURCE_DESC *resource,                           \
           const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view))                 \
        X(cuTexObjectDestroy, cuTexObjectDestroy, (CUtexObject texture))                           \
        X(cuGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams,                  \
          (CUgraphExec exec, CUgraphNode node, CUgraph child))                                     \
        /* linking, in the compiler; the CPU driver answers CUDA_ERROR_NOT_SUPPORTED */            \
        X(cuLinkCreate, cuLinkCreate_v2,                                                           \
          (unsigned int n_options, CUjit_option *options, void **values, CUlinkState *ret_state))  \
        X(cuLinkAddData, cuLinkAddData_v2,                                                         \
          (CUlinkState state, CUjitInputType type, void *data, size_t n_data, const char *name,    \
           unsigned int n_options, CUjit_option *options, void **values))                          \
        X(cuLinkComplete, cuLinkComplete,                                                          \
          (CUlinkState state, void **ret_cubin, size_t *ret_size))                                 \
        X(cuLinkDestroy, cuLinkDestroy, (CUlinkState state))

/* Functions that a driver may lack; then the member is NULL. */
#define DRIVER_OPTIONAL_FUNCTIONS(X)                                                               \
        /* a context with a part of the device's SMs, a green context */                           \
        X(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2,                               \
          (CUdevice device, unsigned int flags))                                                   \
        X(cuDeviceGetDevResource, cuDeviceGetDevResource,                                          \
          (CUdevice device, CUdevResource *ret_resource, CUdevResourceType type))                  \
        X(cuDevSmResourceSplitByCount, cuDevSmResourceSplitByCount,                                \
          (CUdevResource *ret_parts, unsigned int *n_parts, const CUdevResource *whole,            \
           CUdevResource *ret_rest, unsigned int flags, unsigned int n_least))                     \
        X(cuDevResourceGenerateDesc, cuDevResourceGenerateDesc,                                    \
          (CUdevResourceDesc *ret_desc, CUdevResource *resources, unsigned int n_resources))       \
        X(cuGreenCtxCreate, cuGreenCtxCreate,                                                      \
          (CUgreenCtx *ret_green, CUdevResourceDesc desc, CUdevice device, unsigned int flags))    \
        X(cuGreenCtxDestroy, cuGreenCtxDestroy, (CUgreenCtx green))                                \
        X(cuCtxFromGreenCtx, cuCtxFromGreenCtx, (CUcontext *ret_context, CUgreenCtx green))

/* Functions of libgpuq-cpu.so alone; with another driver the member is NULL. */
#define DRIVER_CPU_FUNCTIONS(X)                                                                    \
        /* calls a function with a copy of @data, in the order of the stream; its result is a fault of the context */ \
        X(gpuq_cpu_call, gpuq_cpu_call,                                                            \
          (CUstream stream, CUresult (*func)(void *data), const void *data, size_t n_data))
/* clang-format on */

#define DRIVER_MEMBER(name, symbol, arguments) CUresult(*name) arguments;
typedef struct Driver {
        DRIVER_FUNCTIONS(DRIVER_MEMBER)
        DRIVER_OPTIONAL_FUNCTIONS(DRIVER_MEMBER)
        DRIVER_CPU_FUNCTIONS(DRIVER_MEMBER)
        void *handle; /* of dlopen() */
        bool cpu;     /* it is libgpuq-cpu.so */
} Driver;
#undef DRIVER_MEMBER

/**
 * driver_open() - load a driver and fill the table
 * @path:        of the library, or a name that dlopen() searches, e.g. "libcuda.so.1"
 * @ret_problem: on failure, why, in words; valid until the next call in this thread
 *
 * Calls nothing in the driver; cuInit() is the caller's. The environment that the
 * CPU driver reads (GPUQ_CPU_DEVICES, GPUQ_CPU_THREADS, GPUQ_CPU_MEMORY) must be
 * set before.
 *
 * Return: 0, -ENOENT if it cannot be loaded, -ENOSYS if a function is missing (an
 *         older driver), or -ENOMEM.
 */
int driver_open(const char *path, Driver **ret_driver, const char **ret_problem);
/**
 * driver_close() - free the table; NULL is fine
 *
 * The library stays loaded: neither driver survives being unmapped while its own
 * threads run.
 *
 * Return: NULL.
 */
Driver *driver_close(Driver *driver);

#define DRIVER_VERSION_TEXT 64u

/**
 * driver_module_version() - of NVIDIA's kernel module, such as "580.159.03"; "" if it is not loaded
 *
 * The time of the file that says so means nothing: sysfs sets it anew with each start of the machine, and
 * at other times.
 */
void driver_module_version(char ret_text[static DRIVER_VERSION_TEXT]);

#endif
