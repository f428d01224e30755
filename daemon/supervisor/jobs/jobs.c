/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs.h"

#include <assert.h>

void jobs_configure(Engine *engine, const Config *config) {
        User *user;

        engine->config = config;
        for (size_t i = 0; i < engine->n_devices; ++i)
                device_configure(&engine->devices[i]);
        users_ask_again(engine);
        for (user = engine->users; user; user = user->hh.next)
                user_configure(user, config);
}

void jobs_fini(Engine *engine) {
        User *user, *next;

        trace_free_all(engine);
        for (size_t i = 0; i < engine->n_devices; ++i)
                device_fini(&engine->devices[i]);
        free(engine->devices);
        for (user = engine->users; user; user = user->hh.next)
                user_leave_person(user);
        HASH_ITER (hh, engine->users, user, next) {
                HASH_DEL(engine->users, user);
                user_free(user);
        }
        assert(!engine->jobs && !engine->arenas.by_id && !engine->modules);
        free(engine->problem);
        free(engine->driver_version);
}
