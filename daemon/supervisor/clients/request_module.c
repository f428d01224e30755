/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client requests about modules.
 */

#include "request.h"

#include <string.h>

#include "jobs.h"
#include "registry.h"
#include "proto/text.h"

static bool module_fits(const Gpuq__V1__ModuleLoad *load, const Arena *image) {
        return load->length <= image->size && load->header_bytes <= image->size - load->length;
}

/* A loaded module holds its image, which may be loaded again with other options. */
static Arena *module_image_of_session(const Session *session, uint64_t id) {
        Opening *opening;
        Module *module;

        HASH_FIND(hh, session->openings, &id, sizeof(id), opening);
        if (opening)
                return opening->arena;
        LIST_FOREACH (module, &session->submitter.modules, submitter_link)
                if (module->image && module->image->id == id)
                        return module->image;
        return NULL;
}

static Failure *module_check_image(Session *session, const Gpuq__V1__ModuleLoad *load,
                                   Arena **ret_image) {
        uint64_t id = load->image;
        Arena *image;

        if (load->format == GPUQ__V1__FORMAT__BUILTIN) {
                *ret_image = NULL;
                return id ? failure_new(FAILURE_INVALID, "the built-in module cannot have an image")
                          : NULL;
        }

        image = module_image_of_session(session, id);
        if (!image || image->place != ARENA_IMAGE)
                return failure_new(FAILURE_NOT_FOUND,
                                   "arena %llu is not a module image of this session",
                                   (unsigned long long)id);
        if (!arena_is_sealed_image(image))
                return failure_new(FAILURE_INVALID, "the module's image is not sealed: it needs "
                                                    "F_SEAL_WRITE, F_SEAL_SHRINK and F_SEAL_GROW");
        if (!load->length || !module_fits(load, image))
                return failure_new(FAILURE_INVALID,
                                   "the module's image has %llu bytes and its headers have %llu, "
                                   "but its arena has %llu",
                                   (unsigned long long)load->length,
                                   (unsigned long long)load->header_bytes,
                                   (unsigned long long)image->size);
        *ret_image = image;
        return NULL;
}

/* The session does not have the image's arena any more, but the daemon kept it. */
static Failure *module_check_resumed(Session *session, const Gpuq__V1__ModuleLoad *load,
                                     ModuleSpec *spec) {
        Arena *image = arena_find(session->engine, load->image);

        if (load->format != GPUQ__V1__FORMAT__BUILTIN &&
            (!image || image->place != ARENA_IMAGE || image->user != session->submitter.user ||
             !arena_is_sealed_image(image) || !module_fits(load, image)))
                return failure_new(FAILURE_NOT_FOUND, "arena %llu is no longer a module image",
                                   (unsigned long long)load->image);
        if (!session->clients->resume_ops->claim_module(session->clients->takeover, session,
                                                        load->module, spec))
                return failure_new(FAILURE_NOT_FOUND, "this session has no module %llu",
                                   (unsigned long long)load->module);
        spec->image = load->format == GPUQ__V1__FORMAT__BUILTIN ? NULL : image;
        return NULL;
}

static Failure *module_check_names(const Gpuq__V1__ModuleLoad *load) {
        if (load->n_names > MODULE_NAMES)
                return failure_new(FAILURE_INVALID, "%zu names of kernels; the limit is %u",
                                   load->n_names, MODULE_NAMES);
        for (size_t i = 0; i < load->n_names; ++i)
                if (!*load->names[i] || !text_is_clean(load->names[i], MODULE_NAMES_MAX))
                        return failure_new(FAILURE_INVALID,
                                           "the name of a kernel must have 1 to %u printable bytes",
                                           MODULE_NAMES_MAX);
        return NULL;
}

static Failure *module_check(Session *session, const Gpuq__V1__ModuleLoad *load, ModuleSpec *spec) {
        size_t n_devices = session->engine->n_devices;
        Failure *failure;

        if (load->format < GPUQ__V1__FORMAT__AUTO || load->format > GPUQ__V1__FORMAT__OPENCL)
                return failure_new(FAILURE_INVALID, "unknown module format %d", load->format);
        if (!text_is_clean(load->name, MODULE_NAME_MAX))
                return failure_new(FAILURE_INVALID,
                                   "the module's name must have at most %u printable bytes",
                                   MODULE_NAME_MAX);
        if (load->n_options > MODULE_OPTIONS)
                return failure_new(FAILURE_INVALID, "%zu compiler options; the limit is %u",
                                   load->n_options, MODULE_OPTIONS);
        failure = module_check_names(load);
        if (failure)
                return failure;
        if (n_devices && load->device > n_devices)
                return engine_no_device(session->engine, load->device - 1);
        if (load->module && session->is_resuming)
                return module_check_resumed(session, load, spec);
        return module_check_image(session, load, &spec->image);
}

static const char *module_display_name(const Gpuq__V1__ModuleLoad *load) {
        if (*load->name)
                return load->name;
        return load->format == GPUQ__V1__FORMAT__BUILTIN ? "builtin" : "module";
}

const char *session_on_module_load(Session *session, uint32_t serial,
                                   const Gpuq__V1__Request *request) {
        const Gpuq__V1__ModuleLoad *load = request->module_load;
        Failure *failure;
        ModuleSpec spec;
        Module *module;
        int r;

        spec = (ModuleSpec){
                .format = load->format,
                .length = load->length,
                .texts =
                        {
                                .options = load->options,
                                .n_options = load->n_options,
                                .names = load->names,
                                .n_names = load->n_names,
                                .n_header_bytes = load->header_bytes,
                        },
                .name = module_display_name(load),
                .device = (int)load->device - 1,
                .serial = serial,
        };
        failure = module_check(session, load, &spec);
        if (failure) {
                session_fail_request(session, serial, failure);
                return NULL;
        }

        r = module_new(&session->submitter, &spec, &module);
        if (r) {
                failure = r == MODULE_E_QUOTA
                                  ? module_quota_failure(session->submitter.user, &spec)
                                  : failure_new(FAILURE_MEMORY, "gpuqd has no memory for a module");
                session_fail_request(session, serial, failure);
                return NULL;
        }

        if (spec.image) /* consumed: the module holds it now */
                session_close_arena(session, spec.image->id);
        provision_module(module);
        return NULL;
}

const char *session_on_module_unload(Session *session, uint32_t serial,
                                     const Gpuq__V1__Request *request) {
        Module *module = module_find(session->engine, request->module_unload->module);

        if (module && module->submitter == &session->submitter)
                module_detach(module);
        return NULL;
}
