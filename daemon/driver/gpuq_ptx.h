/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PTX_H
#define GPUQ_PTX_H

/*
 * PTX for the host's compiler
 *
 * Included before the C code that the translator (compiler/ptx/translate.h) makes of a PTX module.
 * One function for each instruction and type. They take and give the bits of registers, so a float
 * is a uint32_t here. Plain C without headers of C++, as these take longer to read than a module.
 */

#define _GNU_SOURCE /* exp10(), sincos() */

#include <fenv.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/image.h"

#include "cpu/ptx/thread.h"
#include "cpu/ptx/integer.h"
#include "cpu/ptx/float.h"
#include "cpu/ptx/convert.h"
#include "cpu/ptx/compare.h"
#include "cpu/ptx/memory.h"
#include "cpu/ptx/warp.h"
#include "cpu/ptx/matrix.h"
#include "cpu/ptx/mbarrier.h"
#include "cpu/ptx/video.h"
#include "cpu/ptx/narrow.h"
#include "cpu/ptx/output.h"
#ifdef PTX_TEXTURES
#include "cpu/ptx/texture.h"
#endif
#include "cpu/ptx/library.h"

#endif
