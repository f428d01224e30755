/* SPDX-License-Identifier: Apache-2.0 */
/* For source that has functions of the host, which NVRTC refuses: with -default-device they become functions of the device. */
#pragma once
#undef __host__
#define __host__
