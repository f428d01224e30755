/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_DOCTOR_GPU_H
#define GPUQ_CLI_DOCTOR_GPU_H

/*
 * Checks of the GPU's driver, libraries and other users
 */

#include <limits.h>

#include "doctor.h"

/** doctor_check_gpu() - whether this machine has any, if gpuqd is to use one. Sets lacks_gpu. */
void doctor_check_gpu(Doctor *doctor);
/** doctor_check_nodes() - the device nodes below /dev. */
void doctor_check_nodes(Doctor *doctor);
/** doctor_check_driver() - the kernel module, libcuda, and what gpuqd found. */
void doctor_check_driver(Doctor *doctor);
/** doctor_check_compiler() - NVRTC, and whether the driver is too old for it; or clang. After the configuration. */
void doctor_check_compiler(Doctor *doctor);
/** doctor_check_others() - MPS, and other processes that have a device open. */
void doctor_check_others(Doctor *doctor);
/** doctor_check_mode() - the compute mode of each device. */
void doctor_check_mode(Doctor *doctor);

/* CUDA versions are 1000 * major + 10 * minor. */
typedef struct DoctorCompilers {
        int nvrtc;             /* 0: not installed */
        char folder[PATH_MAX]; /* of an NVRTC whose minor version is not known; "": the loader's */
        int driver;            /* 0: not installed */
        bool has_clang;
} DoctorCompilers;

/** doctor_judge_compiler() - which of them compiles source, and for which driver. */
void doctor_judge_compiler(Doctor *doctor, const DoctorCompilers *compilers);

#endif
