/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_BACKEND_H
#define GPUQ_COMPILER_BACKEND_H

/*
 * Backend
 *
 * The compilers and linkers, each in a file of its own. Each stores its outcome in the Result. A
 * negative errno is for failures that no compiler caused, such as lack of memory.
 */

#include "compiler/check_rewrite.h"
#include "compiler/fence_rewrite.h"
#include "compiler/request.h"
#include "compiler/result.h"

enum {
        _BACKEND_E_SUCCESS,
        BACKEND_E_MISSING, /* it is not on this machine: try the next */
};

/** PTX on its way from a compiler to a linker. */
typedef struct Ptx {
        char *text; /* malloc()ed, with a zero byte behind it */
        size_t n_text;
} Ptx;

/** cpu_compile() - source or PTX to a shared object for the CPU driver. */
int cpu_compile(const Request *request, Result *result);
/** cpu_compile_ptx() - the same for this PTX, whatever the request's image is. */
int cpu_compile_ptx(const Request *request, const Ptx *ptx, Result *result);
/** cpu_machine() - the compiler's option for what this machine has, "-w" (nothing) without. */
const char *cpu_machine(void);
/**
 * source_compile() - C++ to PTX, by NVRTC or else by clang, or OpenCL C
 *
 * The result's image is a cubin where NVRTC knows the device. Return: 0 or a negative errno.
 */
int source_compile(const Request *request, Result *result, Ptx *ret_ptx);
/**
 * nvrtc_compile() - source to PTX, and to a cubin where NVRTC knows the device
 *
 * Return: 0, BACKEND_E_MISSING, or a negative errno.
 */
int nvrtc_compile(const Request *request, Result *result, Ptx *ret_ptx);
/** clang_compile() - source to PTX. Return: 0, BACKEND_E_MISSING, or a negative errno. */
int clang_compile(const Request *request, Result *result, Ptx *ret_ptx);
/**
 * link_image() - PTX or a fatbin to a cubin, by nvJitLink or the driver
 * @format: FORMAT_PTX, FORMAT_FATBIN, or FORMAT_CUBIN for one without the device runtime that it calls
 */
int link_image(const Request *request, Result *result, Format format, const void *image,
               size_t n_image);
/**
 * link_twins() - replace the image by one of the same PTX in which kernels have twins (batch.h)
 *
 * Leaves the result as it is where there are no twins, or no linker takes them.
 * Return: 1 if there is such an image now, 0 if not, or a negative errno.
 */
int link_twins(const Request *request, Result *result, const char *ptx, size_t n_ptx);
/** link_ptx() - PTX to a cubin, with twins if possible. */
int link_ptx(const Request *request, Result *result, const char *ptx, size_t n_ptx);
/**
 * check_ptx() - PTX to PTX that is checked (check.h)
 *
 * Return: 0, also if the result says why it is refused, or a negative errno.
 */
int check_ptx(const Request *request, Result *result, const char *ptx, size_t n_ptx,
              Checked *ret_checked);
/** check_take_sites() - the result's image is one of @checked. */
void check_take_sites(Result *result, Checked *checked);
/** link_checked() - PTX to a checked cubin. */
int link_checked(const Request *request, Result *result, const char *ptx, size_t n_ptx);
/** fence_ptx() - PTX to PTX that is fenced (fence.h). Return: as check_ptx(). */
int fence_ptx(const Request *request, Result *result, const char *ptx, size_t n_ptx,
              Fenced *ret_fenced);
/** link_fenced() - PTX to a fenced cubin, with twins if possible. */
int link_fenced(const Request *request, Result *result, const char *ptx, size_t n_ptx);
/** gpu_compile() - any format to a cubin, by the functions above. */
int gpu_compile(const Request *request, Result *result);
/** builtin_find() - the built-in kernels for the target. */
int builtin_find(const Request *request, Result *result);

/** backend_read_file() - a whole file. @ret_data: the caller's, with a zero byte behind it. */
int backend_read_file(const char *path, char **ret_data, size_t *ret_n_data);
/**
 * backend_write_file() - make a file of some bytes
 *
 * Return: 0 or a negative errno.
 */
int backend_write_file(const char *path, const char *data, size_t n_data);
/**
 * backend_write_source() - the client's source, for a compiler program
 *
 * The client's macros are defined in it, not on the command line, as they must not
 * change the headers that are included before it; a line marker gives it its own name.
 * Instances that the request names follow it (instance.h).
 */
int backend_write_source(const Request *request, const char *path);

#endif
