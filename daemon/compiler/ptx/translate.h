/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PTX_TRANSLATE_H
#define GPUQ_PTX_TRANSLATE_H

/*
 * Translate
 *
 * Makes C of a PTX module, for the host's compiler with driver/gpuq_ptx.h included before. Each
 * entry becomes a function that runs one thread; registers become variables of their bits. What
 * the CPU driver cannot run is refused.
 */

#include "compiler/ptx/module.h"

/**
 * ptx_translate() - the whole module
 * @is_visible: whether the driver shows a global variable by its name
 * @ret_source: the caller's string
 * @ret_error: with PTX_E_INVALID, a message with the line; the caller's string
 *
 * Return: 0, PTX_E_INVALID, or -ENOMEM.
 */
int ptx_translate(const PtxModule *module, bool (*is_visible)(const PtxVariable *variable),
                  char **ret_source, char **ret_error);

#endif
