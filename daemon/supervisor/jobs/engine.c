/* SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

#include <assert.h>
#include <string.h>

#include "arena.h"
#include "module.h"
#include "slot.h"
#include "user.h"

void engine_init(Engine *engine) {
        TAILQ_INIT(&engine->doomed);
        TAILQ_INIT(&engine->unplaced);
        TAILQ_INIT(&engine->unplaced_modules);
}

void engine_fini(Engine *engine) {
        User *user, *next;

        for (size_t i = 0; i < engine->n_devices; ++i)
                device_fini(&engine->devices[i]);
        free(engine->devices);
        HASH_ITER (hh, engine->users, user, next) {
                HASH_DEL(engine->users, user);
                user_free(user);
        }
        assert(!engine->jobs && !engine->arenas && !engine->modules);
        free(engine->problem);
        free(engine->driver_version);
}

static void engine_configure_user(Engine *engine, User *user) {
        user_configure(user, engine->config);
        for (size_t i = 0; i < user->n_lanes; ++i)
                if (user->lanes[i])
                        fairshare_set_weight(user->lanes[i]->device->share, &user->lanes[i]->share,
                                             user->limits.weight);
}

void engine_configure(Engine *engine, const Config *config) {
        User *user;

        engine->config = config;
        for (size_t i = 0; i < engine->n_devices; ++i)
                device_configure(&engine->devices[i]);
        for (user = engine->users; user; user = user->hh.next) {
                user_look_up_again(user, engine_now(engine));
                engine_configure_user(engine, user);
        }
}

uint64_t engine_now(Engine *engine) {
        if (!engine->now_ns)
                engine->now_ns = uv_hrtime();
        return engine->now_ns;
}

void engine_event(Engine *engine) {
        engine->is_eventful = true;
}

/* ---- tables ---------------------------------------------------------------- */

int engine_get_user(Engine *engine, uid_t uid, gid_t gid, User **ret_user) {
        User *user;
        int r;

        HASH_FIND(hh, engine->users, &uid, sizeof(uid), user);
        if (!user) {
                r = user_new(uid, gid, engine->config, &user);
                if (r < 0)
                        return r;
                HASH_ADD(hh, engine->users, uid, sizeof(user->uid), user);
                if (!user->hh.tbl) {
                        user_free(user);
                        return -ENOMEM;
                }
        } else if (user_look_up_again(user, engine_now(engine))) {
                engine_configure_user(engine, user);
        }
        *ret_user = user;
        return 0;
}

Job *engine_find_job(const Engine *engine, uint64_t id) {
        Job *job;

        HASH_FIND(hh, engine->jobs, &id, sizeof(id), job);
        return job;
}

Arena *engine_find_arena(const Engine *engine, uint64_t id) {
        Arena *arena;

        HASH_FIND(hh, engine->arenas, &id, sizeof(id), arena);
        return arena;
}

Module *engine_find_module(const Engine *engine, uint64_t id) {
        Module *module;

        HASH_FIND(hh, engine->modules, &id, sizeof(id), module);
        return module;
}

const char *engine_state(const Engine *engine) {
        if (engine->n_devices)
                return "ready";
        return engine->problem ? engine->problem : "looking for devices";
}

/* With device=auto the keeper chose, which shows in what was found: the CPU driver
 * puts its devices in a PCI domain that no real one is in. */
bool engine_is_on_cpu(const Engine *engine) {
        switch (engine->config->device) {
                case CONFIG_DRIVER_CPU:
                        return true;
                case CONFIG_DRIVER_GPU:
                        return false;
                case CONFIG_DRIVER_AUTO:
                        break;
        }
        return engine->n_devices && strncmp(engine->devices[0].pci, "ffff:", 5) == 0;
}

const char *engine_driver(const Engine *engine) {
        return engine_is_on_cpu(engine) ? "cpu" : "cuda";
}
