/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_TEXTURE_H
#define GPUQ_WORKER_TEXTURE_H

/*
 * Texture
 *
 * The driver's texture objects. One names an address, so another buffer, or the same in other scratch, is another
 * object. They are kept after the jobs that used them, because jobs come again and creating one costs some
 * microseconds. A batch in flight holds those of its kernels: destroying one earlier would change what they read.
 */

#include <sys/queue.h>

#include "util/texture.h"
#include "worker/context.h"

#define TEXTURES_MAX 64u /* of idle ones */

typedef struct Texture {
        TAILQ_ENTRY(Texture) link; /* textures->list */
        TextureShape shape;
        CUdeviceptr address;
        CUtexObject object;
        uint64_t generation; /* textures->generation when it was created */
        unsigned n_busy;     /* runs that have not ended */
} Texture;

typedef struct Textures {
        Context *context;
        TAILQ_HEAD(TexturesList, Texture) list; /* the most recently used first */
        unsigned n_idle;
        uint64_t generation; /* of addresses, as that of graphs */
} Textures;

/** textures_init() */
void textures_init(Textures *textures, Context *context);
/** textures_forget_addresses() - memory was mapped or will be unmapped: an address may mean other memory. */
void textures_forget_addresses(Textures *textures);
/** textures_clear() - destroy those that are idle. */
void textures_clear(Textures *textures);
/**
 * textures_take() - a texture object over memory at an address, for one run
 *
 * Return: 0; FAILURE_E_SET if the device takes none there; FAILURE_E_FAULT; or -ENOMEM.
 */
int textures_take(Textures *textures, const TextureShape *shape, CUdeviceptr address,
                  Texture **ret_texture, Failure *failure);
/** textures_release() - the run has ended. */
void textures_release(Textures *textures, Texture *texture);

/** texture_check_limits() - whether the device takes such textures. @text: as of texture_check(). */
bool texture_check_limits(const TextureShape *shape, const ContextLimits *limits, char *text,
                          size_t n_text);

#endif
