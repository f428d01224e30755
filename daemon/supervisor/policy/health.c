/* SPDX-License-Identifier: Apache-2.0 */
#include "health.h"

#include <stdio.h>

#include "util/macro.h"

static void health_say(char text[static HEALTH_REASON_MAX], const char *why) {
        snprintf(text, HEALTH_REASON_MAX, "%s", why);
}

void health_doubt(Health *health, uint64_t now_ns) {
        if (health->state != HEALTH_WELL)
                return;
        health->state = HEALTH_DOUBTED;
        health->check_ns = now_ns;
        if (health->checked_ns)
                health->check_ns = MAX(now_ns, health->checked_ns + HEALTH_CHECK_MIN_NS);
}

/* The device broke again soon: the checks continue at the interval reached before. */
static bool health_is_relapse(const Health *health, uint64_t now_ns) {
        return health->well_ns && now_ns - health->well_ns < HEALTH_WINDOW_NS;
}

static void health_break(Health *health, const char *why, uint64_t now_ns) {
        bool goes_on = health->state == HEALTH_BROKEN || health_is_relapse(health, now_ns);

        health->delay_ns =
                goes_on ? MIN(2 * health->delay_ns, HEALTH_CHECK_MAX_NS) : HEALTH_CHECK_MIN_NS;
        health->check_ns = now_ns + health->delay_ns;
        health->state = HEALTH_BROKEN;
        health->n_faults = 0;
        snprintf(health->reason, sizeof(health->reason), "drained automatically: %s", why);
}

bool health_fault(Health *health, const char *why, uint64_t now_ns) {
        if (health->state == HEALTH_BROKEN)
                return false;
        if (!health->n_faults || now_ns - health->fault_ns > HEALTH_WINDOW_NS) {
                health->n_faults = 0;
                health->fault_ns = now_ns;
        }
        if (++health->n_faults < HEALTH_FAULTS_MAX)
                return false;
        health_break(health, why, now_ns);
        return true;
}

bool health_wants_check(const Health *health, uint64_t now_ns) {
        return health->state != HEALTH_WELL && !health->is_condemned && !health->is_checking &&
               now_ns >= health->check_ns;
}

void health_begin_check(Health *health, uint64_t now_ns) {
        health->is_checking = true;
        health->checked_ns = now_ns;
}

static bool health_found_well(Health *health, uint64_t now_ns) {
        bool was_broken = health->state == HEALTH_BROKEN;

        if (was_broken)
                health->well_ns = now_ns;
        health->state = HEALTH_WELL;
        return was_broken;
}

bool health_end_check(Health *health, HealthFinding finding, const char *why, uint64_t now_ns) {
        bool was_broken = health->state == HEALTH_BROKEN;

        health->is_checking = false;
        if (health->is_condemned)
                return false;
        switch (finding) {
                case HEALTH_FOUND_BROKEN:
                        /* Also if an administrator resumed the device during the check: it is
                         * broken. */
                        health_break(health, why, now_ns);
                        return !was_broken;
                case HEALTH_FOUND_WELL:
                        return health_found_well(health, now_ns);
                case HEALTH_FOUND_FULL:
                        if (!was_broken) {
                                health->state = HEALTH_WELL;
                                return false;
                        }
                        break;
                case HEALTH_FOUND_NOTHING:
                        break;
        }
        health->check_ns = now_ns + MAX(health->delay_ns, HEALTH_CHECK_MIN_NS);
        return false;
}

bool health_condemn(Health *health, const char *why, uint64_t now_ns) {
        bool was_broken = health->state == HEALTH_BROKEN;

        /* The first reason says most: later errors follow from it. */
        if (health->is_condemned)
                return false;
        health_break(health, why, now_ns);
        health->is_condemned = true;
        return !was_broken;
}

void health_hold(Health *health, const char *reason) {
        health->is_held = true;
        health_say(health->hold_reason, reason);
}

bool health_release(Health *health) {
        bool was_drained = !health_takes_jobs(health);

        health->is_held = health->is_condemned = false;
        health->state = HEALTH_WELL;
        health->n_faults = 0;
        health->well_ns = 0;
        return was_drained;
}

bool health_takes_jobs(const Health *health) {
        return !health->is_held && health->state != HEALTH_BROKEN;
}

const char *health_reason(const Health *health) {
        if (health->is_held)
                return health->hold_reason;
        return health->state == HEALTH_BROKEN ? health->reason : NULL;
}
