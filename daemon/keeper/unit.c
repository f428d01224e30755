/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit
 *
 * The service gets SIGTERM for a stop and for a restart, and its environment was made at its
 * start. The two differ in the type of the job that systemd has for the unit, whatever caused that
 * job: a user, an upgrade script, or a dependency of another unit.
 */

#include "keeper/unit.h"

#include "util/macro.h"

#if HAVE_SYSTEMD
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "util/log.h"

#define UNIT_ADDRESS    "unix:path=/run/systemd/private"
#define UNIT_TIMEOUT_US 2000000u /* of each question; who gets no answer says goodbye */
#define UNIT_NAME       "org.freedesktop.systemd1"

static int unit_open(sd_bus **ret_bus) {
        sd_bus *bus;
        int r;

        r = sd_bus_new(&bus);
        if (r < 0)
                return r;
        r = sd_bus_set_address(bus, UNIT_ADDRESS);
        if (r >= 0)
                r = sd_bus_set_method_call_timeout(bus, UNIT_TIMEOUT_US);
        if (r >= 0)
                r = sd_bus_start(bus);
        if (r < 0) {
                sd_bus_unref(bus);
                return r;
        }

        *ret_bus = bus;
        return 0;
}

/* The object of the unit that this process belongs to. */
static int unit_find(sd_bus *bus, char **ret_path) {
        sd_bus_message *reply = NULL;
        const char *path;
        int r;

        r = sd_bus_call_method(bus, UNIT_NAME, "/org/freedesktop/systemd1", UNIT_NAME ".Manager",
                               "GetUnitByPID", NULL, &reply, "u", (uint32_t)getpid());
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "o", &path);
        if (r >= 0) {
                *ret_path = strdup(path);
                r = *ret_path ? 0 : -ENOMEM;
        }
        sd_bus_message_unref(reply);
        return r;
}

/* Without a descriptor there nothing would be handed over: the unit does not ask for it. */
static int unit_holds(sd_bus *bus, const char *path, bool *ret_holds) {
        uint32_t n = 0;
        int r;

        r = sd_bus_get_property_trivial(bus, UNIT_NAME, path, UNIT_NAME ".Service",
                                        "NFileDescriptorStore", NULL, 'u', &n);
        if (r < 0)
                return r;
        *ret_holds = n > 0;
        return 0;
}

/* The object of its job, "/" if it has none. */
static int unit_job(sd_bus *bus, const char *path, char **ret_job) {
        sd_bus_message *reply = NULL;
        const char *job;
        uint32_t id;
        int r;

        r = sd_bus_get_property(bus, UNIT_NAME, path, UNIT_NAME ".Unit", "Job", NULL, &reply,
                                "(uo)");
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "(uo)", &id, &job);
        if (r >= 0) {
                *ret_job = strdup(id ? job : "/");
                r = *ret_job ? 0 : -ENOMEM;
        }
        sd_bus_message_unref(reply);
        return r;
}

static int unit_job_is_restart(sd_bus *bus, const char *job, bool *ret_is) {
        _cleanup_(freep) char *type = NULL;
        int r;

        if (strcmp(job, "/") == 0) {
                *ret_is = false;
                return 0;
        }
        r = sd_bus_get_property_string(bus, UNIT_NAME, job, UNIT_NAME ".Job", "JobType", NULL,
                                       &type);
        if (r < 0)
                return r;
        *ret_is = strcmp(type, "restart") == 0;
        return 0;
}

static int unit_ask(sd_bus *bus, bool *ret_is) {
        _cleanup_(freep) char *path = NULL, *job = NULL;
        bool holds;
        int r;

        r = unit_find(bus, &path);
        if (r < 0)
                return r;
        r = unit_holds(bus, path, &holds);
        if (r < 0)
                return r;
        if (!holds) {
                *ret_is = false;
                return 0;
        }
        r = unit_job(bus, path, &job);
        if (r < 0)
                return r;
        return unit_job_is_restart(bus, job, ret_is);
}

bool unit_is_restarting(void) {
        bool is_restarting = false;
        sd_bus *bus = NULL;
        int r;

        if (geteuid() != 0 || !getenv("NOTIFY_SOCKET"))
                return false;
        r = unit_open(&bus);
        if (r >= 0)
                r = unit_ask(bus, &is_restarting);
        sd_bus_unref(bus);
        if (r < 0)
                log_warning(
                        "cannot ask systemd whether this is a restart or a stop: %s; assuming a "
                        "stop, so all sessions end",
                        strerror(-r));
        return r >= 0 && is_restarting;
}
#else
bool unit_is_restarting(void) {
        return false;
}
#endif
