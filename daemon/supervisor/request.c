/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client asks for: decoded, checked, done or answered with why not. One
 * function a request, each reads as check, act, reply.
 */

#include <stdio.h>
#include <string.h>

#include "util/bump.h"
#include "supervisor/drain.h"
#include "supervisor/ending.h"
#include "supervisor/limit.h"
#include "supervisor/list.h"
#include "supervisor/session.h"
#include "supervisor/slot.h"
#include "supervisor/submit_scan.h"
#include "supervisor/supervisor.h"
#include "util/log.h"

typedef struct RequestEntry {
        const char *(*handle)(Session *session, uint32_t serial, const Gpuq__V1__Request *request);
} RequestEntry;

/* ---- hello ----------------------------------------------------------------- */

static void session_welcome(Session *session, uint32_t serial) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Welcome welcome = GPUQ__V1__WELCOME__INIT;

        welcome.version = SESSION_VERSION_MAX;
        welcome.daemon = (char *)GPUQ_VERSION;
        welcome.session = session->id;
        welcome.uid = session->peer.uid;
        welcome.n_devices = (uint32_t)session->supervisor->n_devices;
        welcome.poll_us = session->supervisor->config->poll_us;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_WELCOME;
        reply.welcome = &welcome;
        session_reply(session, &reply, -1);
}

static const char *session_on_hello(Session *session, uint32_t serial,
                                    const Gpuq__V1__Request *request) {
        const Gpuq__V1__Hello *hello = request->hello;

        if (session->state != SESSION_HELLO)
                return "a second handshake";
        if (!limit_is_text(hello->client, SESSION_CLIENT_MAX))
                return "a client name that is too long or not printable";
        if (hello->version_min > hello->version_max || hello->version_max < SESSION_VERSION_MIN ||
            hello->version_min > SESSION_VERSION_MAX) {
                session_refuse(session,
                               failure_new(FAILURE_VERSION,
                                           "the client speaks protocol versions %u to %u, this "
                                           "daemon %u to %u",
                                           hello->version_min, hello->version_max,
                                           SESSION_VERSION_MIN, SESSION_VERSION_MAX));
                return NULL;
        }

        snprintf(session->client, sizeof(session->client), "%s", hello->client);
        session->state = SESSION_OPEN;
        wire_set_frame_max(session->wire, WIRE_FRAME_MAX);
        session_welcome(session, serial);
        return NULL;
}

/* ---- arenas ---------------------------------------------------------------- */

static Failure *arena_check(const Session *session, const Gpuq__V1__ArenaCreate *create) {
        const Supervisor *supervisor = session->supervisor;

        if (create->place != GPUQ__V1__PLACE__HOST && create->place != GPUQ__V1__PLACE__DEVICE &&
            create->place != GPUQ__V1__PLACE__IMAGE)
                return failure_new(FAILURE_INVALID, "an arena of unknown place %d", create->place);
        if (create->size == 0)
                return failure_new(FAILURE_INVALID, "an arena of 0 bytes");
        if (create->place == GPUQ__V1__PLACE__IMAGE && create->size > ARENA_IMAGE_MAX)
                return failure_new(FAILURE_INVALID, "a module image of %llu bytes, at most %llu",
                                   (unsigned long long)create->size,
                                   (unsigned long long)ARENA_IMAGE_MAX);
        if (session->user->n_arenas >= LIMIT_USER_ARENAS)
                return failure_new(FAILURE_QUOTA, "user %s has %u arenas, at most %u",
                                   session->user->name, session->user->n_arenas, LIMIT_USER_ARENAS);
        if (create->place != GPUQ__V1__PLACE__DEVICE)
                return NULL;
        if (!supervisor->n_devices)
                return failure_new(FAILURE_NO_DEVICE, "%s", supervisor_state(supervisor));
        if (create->device > supervisor->n_devices)
                return failure_new(FAILURE_NOT_FOUND, "device %u: there are %zu",
                                   create->device - 1, supervisor->n_devices);
        return NULL;
}

static void session_make_device_arena(Session *session, Arena *arena, uint32_t device) {
        Supervisor *supervisor = session->supervisor;
        Slot *slot;

        slot = slot_get(supervisor, session->user,
                        device ? &supervisor->devices[device - 1]
                               : device_choose(supervisor, session->user));
        arena->maker = session;
        arena->may_move = !device;
        LIST_INSERT_HEAD(&session->making, arena, maker_link);
        if (slot)
                slot_make_arena(slot, arena);
        else
                session_arena_failed(arena, failure_new(FAILURE_MEMORY, "no memory for a worker"));
}

static const char *session_on_arena_create(Session *session, uint32_t serial,
                                           const Gpuq__V1__Request *request) {
        const Gpuq__V1__ArenaCreate *create = request->arena_create;
        _cleanup_(arena_unrefp) Arena *arena = NULL;
        bool on_device = create->place == GPUQ__V1__PLACE__DEVICE;
        Failure *failure;
        int r;

        failure = arena_check(session, create);
        if (failure) {
                session_fail_request(session, serial, failure);
                return NULL;
        }
        r = arena_new(session->supervisor, session->user, (ArenaPlace)create->place, create->size,
                      &arena);
        if (r) {
                failure = r == ARENA_E_QUOTA
                                  ? limit_failure(session->user,
                                                  on_device ? USER_DEVICE_BYTES : USER_ARENA_BYTES,
                                                  create->size)
                                  : failure_new(FAILURE_MEMORY, "no arena of %llu bytes: %s",
                                                (unsigned long long)create->size, strerror(-r));
                session_fail_request(session, serial, failure);
                return NULL;
        }

        arena->serial = serial;
        if (on_device) {
                session_make_device_arena(session, arena, create->device);
                return NULL;
        }
        if (session_open_arena(session, arena) < 0)
                session_fail_request(session, serial,
                                     failure_new(FAILURE_MEMORY, "no memory for an arena"));
        else
                session_reply_arena(session, serial, arena);
        return NULL;
}

static const char *session_on_arena_open(Session *session, uint32_t serial,
                                         const Gpuq__V1__Request *request) {
        uint64_t id = request->arena_open->arena;
        Arena *arena = supervisor_find_arena(session->supervisor, id);

        if (!arena || arena->fd < 0) {
                session_fail_request(session, serial,
                                     failure_new(FAILURE_NOT_FOUND, "there is no arena %llu",
                                                 (unsigned long long)id));
                return NULL;
        }
        if (arena->user != session->user || arena->place == ARENA_IMAGE) {
                session_fail_request(session, serial,
                                     failure_new(FAILURE_DENIED, "arena %llu is not yours to open",
                                                 (unsigned long long)id));
                return NULL;
        }
        if (session_open_arena(session, arena) < 0) {
                session_fail_request(session, serial,
                                     failure_new(FAILURE_MEMORY, "no memory for an arena"));
                return NULL;
        }

        session_reply_arena(session, serial, arena);
        return NULL;
}

static const char *session_on_arena_close(Session *session, uint32_t serial,
                                          const Gpuq__V1__Request *request) {
        session_close_arena(session, request->arena_close->arena);
        return NULL;
}

/* ---- modules --------------------------------------------------------------- */

static Failure *module_check_image(Session *session, const Gpuq__V1__ModuleLoad *load,
                                   Arena **ret_image) {
        uint64_t id = load->image;
        Opening *opening;

        if (load->format == GPUQ__V1__FORMAT__BUILTIN) {
                *ret_image = NULL;
                return id ? failure_new(FAILURE_INVALID, "the built-in module takes no image")
                          : NULL;
        }

        HASH_FIND(hh, session->openings, &id, sizeof(id), opening);
        if (!opening || opening->arena->place != ARENA_IMAGE)
                return failure_new(FAILURE_NOT_FOUND, "arena %llu is no image of this session",
                                   (unsigned long long)id);
        if (!arena_is_sealed_image(opening->arena))
                return failure_new(FAILURE_INVALID,
                                   "the image is not sealed: it takes F_SEAL_WRITE, F_SEAL_SHRINK "
                                   "and F_SEAL_GROW");
        if (!load->length || load->length > opening->arena->size)
                return failure_new(FAILURE_INVALID, "an image of %llu bytes in an arena of %llu",
                                   (unsigned long long)load->length,
                                   (unsigned long long)opening->arena->size);
        *ret_image = opening->arena;
        return NULL;
}

static Failure *module_check(Session *session, const Gpuq__V1__ModuleLoad *load,
                             Arena **ret_image) {
        size_t n_devices = session->supervisor->n_devices;

        if (load->format < GPUQ__V1__FORMAT__AUTO || load->format > GPUQ__V1__FORMAT__BUILTIN)
                return failure_new(FAILURE_INVALID, "a module of unknown format %d", load->format);
        if (!limit_is_text(load->name, MODULE_NAME_MAX))
                return failure_new(FAILURE_INVALID,
                                   "a module's name has at most %u printable bytes",
                                   MODULE_NAME_MAX);
        if (load->n_options > MODULE_OPTIONS)
                return failure_new(FAILURE_INVALID, "%zu compiler options, at most %u",
                                   load->n_options, MODULE_OPTIONS);
        if (n_devices && load->device > n_devices)
                return failure_new(FAILURE_NOT_FOUND, "device %u: there are %zu", load->device - 1,
                                   n_devices);
        return module_check_image(session, load, ret_image);
}

static const char *module_display_name(const Gpuq__V1__ModuleLoad *load) {
        if (*load->name)
                return load->name;
        return load->format == GPUQ__V1__FORMAT__BUILTIN ? "builtin" : "module";
}

static const char *session_on_module_load(Session *session, uint32_t serial,
                                          const Gpuq__V1__Request *request) {
        const Gpuq__V1__ModuleLoad *load = request->module_load;
        Arena *image = NULL;
        Failure *failure;
        ModuleSpec spec;
        Module *module;
        int r;

        failure = module_check(session, load, &image);
        if (failure) {
                session_fail_request(session, serial, failure);
                return NULL;
        }

        spec = (ModuleSpec){
                .format = load->format,
                .image = image,
                .length = load->length,
                .options = load->options,
                .n_options = load->n_options,
                .name = module_display_name(load),
                .device = (int)load->device - 1,
                .serial = serial,
        };
        r = module_new(session->supervisor, session, &spec, &module);
        if (r) {
                failure = r == MODULE_E_QUOTA
                                  ? limit_failure(session->user, USER_MODULES, 1)
                                  : failure_new(FAILURE_MEMORY, "no memory for a module");
                session_fail_request(session, serial, failure);
                return NULL;
        }

        if (image) /* consumed: the module holds it now */
                session_close_arena(session, image->id);
        module_load(module);
        return NULL;
}

static const char *session_on_module_unload(Session *session, uint32_t serial,
                                            const Gpuq__V1__Request *request) {
        Module *module =
                supervisor_find_module(session->supervisor, request->module_unload->module);

        if (module && module->session == session)
                module_detach(module);
        return NULL;
}

/* ---- jobs ------------------------------------------------------------------ */

static const char *session_on_submit(Session *session, uint32_t serial,
                                     const Gpuq__V1__Request *request) {
        return session_submit(session, request->submit);
}

static bool session_may_touch(const Session *session, const Job *job) {
        return session->peer.is_admin || job->user == session->user;
}

/* An admin may ask about anybody's job; whose it was is not in its number. */
static const HistoryEntry *session_find_history(const Session *session, uint64_t id) {
        const HistoryEntry *entry = history_find(session->user->history, id);
        const User *user;

        if (entry || !session->peer.is_admin)
                return entry;
        for (user = session->supervisor->users; user && !entry; user = user->hh.next)
                entry = history_find(user->history, id);
        return entry;
}

static Failure *session_wait(Session *session, uint32_t serial, uint64_t id) {
        Job *job = supervisor_find_job(session->supervisor, id);
        const HistoryEntry *entry;
        const JobWatch *watch;
        unsigned n = 0;

        if (!job) {
                entry = session_find_history(session, id);
                if (!entry)
                        return failure_new(FAILURE_NOT_FOUND, "there is no job " JOB_ID_FORMAT,
                                           JOB_ID_PARTS(id));
                session_report_history(session, serial, entry);
                return NULL;
        }
        if (!session_may_touch(session, job))
                return failure_new(FAILURE_DENIED, "job " JOB_ID_FORMAT " is somebody else's",
                                   JOB_ID_PARTS(id));
        LIST_FOREACH(watch, &session->watches, session_link)
        n++;
        if (n >= LIMIT_WATCHES)
                return failure_new(FAILURE_QUOTA, "%u waits at once, at most %u", n, LIMIT_WATCHES);
        if (session_watch(session, job, serial) < 0)
                return failure_new(FAILURE_MEMORY, "no memory to wait");
        return NULL;
}

static const char *session_on_prepare(Session *session, uint32_t serial,
                                      const Gpuq__V1__Request *request) {
        if (request->prepare->job)
                session_prepare(session, serial, request->prepare->job);
        else
                session_fail_request(session, serial,
                                     failure_new(FAILURE_INVALID, "there is no job to prepare"));
        return NULL;
}

static const char *session_on_unprepare(Session *session, uint32_t serial,
                                        const Gpuq__V1__Request *request) {
        session_unprepare(session, request->unprepare->prepared);
        return NULL;
}

static const char *session_on_fires(Session *session, uint32_t serial,
                                    const Gpuq__V1__Request *request) {
        return session_fire(session, request->fires);
}

static const char *session_on_wait(Session *session, uint32_t serial,
                                   const Gpuq__V1__Request *request) {
        Failure *failure = session_wait(session, serial, request->wait->id);

        if (failure)
                session_fail_request(session, serial, failure);
        return NULL;
}

static void session_cancel_job(const Session *session, Job *job) {
        ending_doom(
                job, JOB_CANCELLED,
                failure_new(FAILURE_CANCELLED, "cancelled by uid %u", (unsigned)session->peer.uid));
}

static void session_cancel_ids(Session *session, const Gpuq__V1__Cancel *cancel,
                               Gpuq__V1__Cancelled *cancelled) {
        for (size_t i = 0; i < cancel->n_ids; ++i) {
                uint64_t id = cancel->ids[i];
                Job *job = supervisor_find_job(session->supervisor, id);

                if (!job) {
                        cancelled->unknown[cancelled->n_unknown++] = id;
                } else if (!session_may_touch(session, job)) {
                        cancelled->denied[cancelled->n_denied++] = id;
                } else {
                        session_cancel_job(session, job);
                        cancelled->ids[cancelled->n_ids++] = id;
                }
        }
}

static void session_cancel_all(Session *session, Gpuq__V1__Cancelled *cancelled) {
        Job *job;

        TAILQ_FOREACH(job, &session->user->jobs, user_link) {
                session_cancel_job(session, job);
                cancelled->ids[cancelled->n_ids++] = job->id;
        }
}

static const char *session_on_cancel(Session *session, uint32_t serial,
                                     const Gpuq__V1__Request *request) {
        const Gpuq__V1__Cancel *cancel = request->cancel;
        size_t n_all = cancel->all ? session->user->n_waiting + session->user->n_running : 0;
        size_t n_max = cancel->n_ids + n_all;
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Cancelled cancelled = GPUQ__V1__CANCELLED__INIT;
        _cleanup_(freep) uint64_t *ids = NULL;

        ids = calloc(3 * n_max + 1, sizeof(*ids));
        if (!ids) {
                session_fail_request(session, serial,
                                     failure_new(FAILURE_MEMORY, "no memory to cancel"));
                return NULL;
        }

        cancelled.ids = ids;
        cancelled.unknown = ids + n_max;
        cancelled.denied = ids + 2 * n_max;
        session_cancel_ids(session, cancel, &cancelled);
        if (cancel->all)
                session_cancel_all(session, &cancelled);
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_CANCELLED;
        reply.cancelled = &cancelled;
        session_reply(session, &reply, -1);
        return NULL;
}

/* ---- drain ----------------------------------------------------------------- */

/* Return: NULL: the request was answered with why not. */
static Device *session_device_to_drain(Session *session, uint32_t serial, uint32_t index) {
        Supervisor *supervisor = session->supervisor;
        Failure *failure = NULL;

        if (!session->peer.is_admin)
                failure = failure_new(FAILURE_DENIED,
                                      "only root and the admin group drain and resume devices");
        else if (!supervisor->n_devices)
                failure = failure_new(FAILURE_NO_DEVICE, "%s", supervisor_state(supervisor));
        else if (index >= supervisor->n_devices)
                failure = failure_new(FAILURE_NOT_FOUND, "device %u: there are %zu", index,
                                      supervisor->n_devices);
        if (!failure)
                return &supervisor->devices[index];
        session_fail_request(session, serial, failure);
        return NULL;
}

static void session_reply_drained(Session *session, uint32_t serial, const Device *device,
                                  bool changed) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Drained drained = GPUQ__V1__DRAINED__INIT;

        drained.changed = changed;
        drained.running = device->n_running;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_DRAINED;
        reply.drained = &drained;
        session_reply(session, &reply, -1);
}

static const char *session_on_drain(Session *session, uint32_t serial,
                                    const Gpuq__V1__Request *request) {
        const char *reason = request->drain->reason;
        Device *device = session_device_to_drain(session, serial, request->drain->device);

        if (!device)
                return NULL;
        if (!limit_is_text(reason, LIMIT_DRAIN_REASON)) {
                session_fail_request(session, serial,
                                     failure_new(FAILURE_INVALID,
                                                 "a reason has at most %u printable bytes",
                                                 LIMIT_DRAIN_REASON));
                return NULL;
        }
        session_reply_drained(session, serial, device,
                              drain_hold(device, session->user->name, reason));
        return NULL;
}

static const char *session_on_resume(Session *session, uint32_t serial,
                                     const Gpuq__V1__Request *request) {
        Device *device = session_device_to_drain(session, serial, request->resume->device);

        if (device)
                session_reply_drained(session, serial, device, drain_release(device));
        return NULL;
}

/* ---- what there is --------------------------------------------------------- */

static const char *session_on_queue_get(Session *session, uint32_t serial,
                                        const Gpuq__V1__Request *request) {
        session_report_queue(session, serial, request->queue_get);
        return NULL;
}

static const char *session_on_status_get(Session *session, uint32_t serial,
                                         const Gpuq__V1__Request *request) {
        session_report_status(session, serial);
        return NULL;
}

/* ---- what is yet to be said ------------------------------------------------ */

/* Is this a job that another process of the user may have submitted already, on a
 * connection whose turn to be read has not come yet? */
static bool session_is_ahead(const Session *session, uint64_t id) {
        uint32_t number = (uint32_t)(id >> 32);
        Session *other;

        HASH_FIND(hh, session->supervisor->sessions, &number, sizeof(number), other);
        return other && other != session && other->user == session->user &&
               (uint32_t)id > other->last_tag;
}

static bool session_any_is_ahead(const Session *session, const uint64_t *ids, size_t n_ids) {
        for (size_t i = 0; i < n_ids; ++i)
                if (session_is_ahead(session, ids[i]))
                        return true;
        return false;
}

static bool session_names_what_is_ahead(const Session *session, const Gpuq__V1__Request *request) {
        if (request->body_case == GPUQ__V1__REQUEST__BODY_WAIT)
                return session_is_ahead(session, request->wait->id);
        if (request->body_case == GPUQ__V1__REQUEST__BODY_CANCEL)
                return session_any_is_ahead(session, request->cancel->ids, request->cancel->n_ids);
        if (request->body_case != GPUQ__V1__REQUEST__BODY_SUBMIT)
                return false;
        for (size_t i = 0; i < request->submit->n_jobs; ++i)
                if (session_any_is_ahead(session, request->submit->jobs[i]->after,
                                         request->submit->jobs[i]->n_after))
                        return true;
        return false;
}

static const char *session_dispatch(Session *session, const Gpuq__V1__Request *request) {
        static const RequestEntry entries[] = {
                [GPUQ__V1__REQUEST__BODY_HELLO] = {session_on_hello},
                [GPUQ__V1__REQUEST__BODY_ARENA_CREATE] = {session_on_arena_create},
                [GPUQ__V1__REQUEST__BODY_ARENA_OPEN] = {session_on_arena_open},
                [GPUQ__V1__REQUEST__BODY_ARENA_CLOSE] = {session_on_arena_close},
                [GPUQ__V1__REQUEST__BODY_MODULE_LOAD] = {session_on_module_load},
                [GPUQ__V1__REQUEST__BODY_MODULE_UNLOAD] = {session_on_module_unload},
                [GPUQ__V1__REQUEST__BODY_SUBMIT] = {session_on_submit},
                [GPUQ__V1__REQUEST__BODY_WAIT] = {session_on_wait},
                [GPUQ__V1__REQUEST__BODY_CANCEL] = {session_on_cancel},
                [GPUQ__V1__REQUEST__BODY_QUEUE_GET] = {session_on_queue_get},
                [GPUQ__V1__REQUEST__BODY_STATUS_GET] = {session_on_status_get},
                [GPUQ__V1__REQUEST__BODY_PREPARE] = {session_on_prepare},
                [GPUQ__V1__REQUEST__BODY_UNPREPARE] = {session_on_unprepare},
                [GPUQ__V1__REQUEST__BODY_FIRES] = {session_on_fires},
                [GPUQ__V1__REQUEST__BODY_DRAIN] = {session_on_drain},
                [GPUQ__V1__REQUEST__BODY_RESUME] = {session_on_resume},
        };
        size_t body = request->body_case;

        if (body >= ARRAY_SIZE(entries) || !entries[body].handle)
                return "an unknown request";
        if (session->state == SESSION_HELLO && body != GPUQ__V1__REQUEST__BODY_HELLO)
                return "a message before the handshake";
        return entries[body].handle(session, request->serial, request);
}

const char *session_request(Session *session, const uint8_t *data, size_t n_data) {
        Bump *bump = session->supervisor->bump;
        Gpuq__V1__Request *request;
        const char *problem;

        request = submit_scan(bump, data, n_data);
        if (!request)
                request = gpuq__v1__request__unpack(bump_allocator(bump), n_data, data);
        if (!request)
                problem = "a message that is not protobuf";
        else if (!session->is_second_try && session_names_what_is_ahead(session, request) &&
                 session_defer(session, data, n_data) == 0)
                problem = NULL;
        else
                problem = session_dispatch(session, request);
        bump_reset(bump);
        return problem;
}
