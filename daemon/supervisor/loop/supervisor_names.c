/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the system says of the names in the configuration: it is asked in a thread (jobs/lookup.h), and
 * until it answers its last answer holds. Where a lookup failed it is asked again later.
 */

#include <string.h>

#include "jobs.h"
#include "supervisor.h"
#include "util/config-names.h"
#include "util/log.h"

static void supervisor_apply_names(Supervisor *supervisor) {
        int r;

        r = supervisor->names ? config_names_apply(supervisor->names, supervisor->config) : 0;
        if (r < 0)
                log_error("cannot apply the names in the configuration: %s", strerror(-r));
        if (!supervisor->names)
                supervisor->config->admission.is_unknown = true;
}

/* Return: whether there was an answer. */
static bool supervisor_take_names(Supervisor *supervisor) {
        ConfigNames *names = lookups_take_names(supervisor->engine.lookups);
        bool have_failed;

        if (!names)
                return false;
        have_failed = config_names_have_failed(names);
        if (!have_failed || !supervisor->have_names_failed)
                (void)config_names_log(names, LOG_WARNING);
        supervisor->have_names_failed = have_failed;
        if (have_failed)
                supervisor->ask_names_ns =
                        MIN(supervisor->ask_names_ns,
                            engine_now(&supervisor->engine) + SUPERVISOR_NAMES_NS);
        if (have_failed && supervisor->names)
                config_names_inherit(names, supervisor->names);
        config_names_free(supervisor->names);
        supervisor->names = names;
        supervisor_apply_names(supervisor);
        return true;
}

void supervisor_ask_names(Supervisor *supervisor) {
        uint64_t now_ns = engine_now(&supervisor->engine);
        ConfigNames *names;

        supervisor_apply_names(supervisor);
        supervisor->ask_names_ns = UINT64_MAX;
        if (config_names_new(supervisor->config, &names) < 0 ||
            !lookups_ask_names(supervisor->engine.lookups, names, now_ns))
                supervisor->ask_names_ns = now_ns + SUPERVISOR_NAMES_AGAIN_NS;
}

void supervisor_await_names(Supervisor *supervisor) {
        supervisor_ask_names(supervisor);
        lookups_await(supervisor->engine.lookups, LOOKUP_NAMES);
        (void)supervisor_take_names(supervisor);
}

void supervisor_heed_names(Supervisor *supervisor) {
        if (supervisor_take_names(supervisor))
                jobs_configure(&supervisor->engine, supervisor->config);
}
