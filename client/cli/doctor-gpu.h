/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_DOCTOR_GPU_H
#define GPUQ_CLI_DOCTOR_GPU_H

/*
 * Checks of the GPU's driver, libraries and other users
 */

#include "doctor.h"

/** doctor_check_gpu() - whether this machine has any, if gpuqd is to use one. Sets lacks_gpu. */
void doctor_check_gpu(Doctor *doctor);
/** doctor_check_nodes() - the device nodes below /dev. */
void doctor_check_nodes(Doctor *doctor);
/** doctor_check_driver() - the kernel module, libcuda, and what gpuqd found. */
void doctor_check_driver(Doctor *doctor);
/** doctor_check_compiler() - NVRTC, and whether the driver is too old for it. */
void doctor_check_compiler(Doctor *doctor);
/** doctor_check_others() - MPS, and other processes that have a device open. */
void doctor_check_others(Doctor *doctor);
/** doctor_check_mode() - the compute mode of each device. */
void doctor_check_mode(Doctor *doctor);

/** doctor_judge_compiler() - CUDA versions as 1000 * major + 10 * minor; 0: not installed. */
void doctor_judge_compiler(Doctor *doctor, int nvrtc, int driver);

#endif
