/* SPDX-License-Identifier: Apache-2.0 */
/* With this and -default-device, functions of the host become functions of the device. NVRTC refuses them otherwise. */
#pragma once
#undef __host__
#define __host__
