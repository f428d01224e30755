/* SPDX-License-Identifier: Apache-2.0 */
/* What it declares for kernels is in gpuq_cpu.h, which was included first. */
