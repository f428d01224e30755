/* SPDX-License-Identifier: Apache-2.0 */
#include "admission.h"

#include <string.h>
#include <sys/socket.h>

#include "util/log.h"
#include "util/names.h"

#define GROUP_NONE ((gid_t)-1)

/* ---- the configured groups ------------------------------------------------- */

/* After a lookup that failed the other groups are not tried: each lookup might take as long. */
static gid_t admission_look_up(Admission *admission, const char *name) {
        gid_t gid;
        int r;

        if (admission->has_failed)
                return GROUP_NONE;
        r = names_find_group(name, &gid);
        if (r < 0) {
                log_warning("cannot look up group %s: %s", name, strerror(-r));
                admission->has_failed = true;
        }
        return r ? GROUP_NONE : gid;
}

static int admission_allow(Admission *admission, gid_t gid) {
        gid_t *grown;

        grown = reallocarray(admission->allowed, admission->n_allowed + 1, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        admission->allowed = grown;
        admission->allowed[admission->n_allowed++] = gid;
        return 0;
}

void admission_configure(Admission *admission, const Config *config, uint64_t now_ns) {
        _cleanup_(freep) char *names = config->allow_groups ? strdup(config->allow_groups) : NULL;
        char *name, *rest = NULL;
        gid_t gid;

        admission->n_allowed = 0;
        admission->is_incomplete = config->allow_groups && !names;
        admission->has_failed = false;
        admission->look_up_ns = now_ns + ADMISSION_LOOK_UP_NS;
        admission->admins = config->admin_group ? admission_look_up(admission, config->admin_group)
                                                : GROUP_NONE;
        for (name = names ? strtok_r(names, " \t", &rest) : NULL; name;
             name = strtok_r(NULL, " \t", &rest)) {
                gid = admission_look_up(admission, name);
                if (gid != GROUP_NONE && admission_allow(admission, gid) < 0)
                        admission->is_incomplete = true;
        }
}

void admission_finish(Admission *admission) {
        free(admission->allowed);
}

/* ---- a peer's -------------------------------------------------------------- */

/* Return: 0, -E2BIG: more than ADMISSION_GROUPS_MAX, or another negative errno. */
static int peer_groups(int fd, gid_t **ret_groups, unsigned *ret_n_groups) {
        _cleanup_(freep) gid_t *groups = NULL;
        socklen_t n_bytes = 64 * sizeof(gid_t);
        void *grown;

        for (;;) {
                grown = realloc(groups, n_bytes);
                if (!grown)
                        return -ENOMEM;
                groups = grown;
                if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &n_bytes) == 0)
                        break;
                if (errno != ERANGE)
                        return -errno;
                if (n_bytes > ADMISSION_GROUPS_MAX * sizeof(gid_t))
                        return -E2BIG;
        }
        *ret_groups = TAKE_PTR(groups);
        *ret_n_groups = (unsigned)(n_bytes / sizeof(gid_t));
        return 0;
}

static Failure *peer_groups_failure(int error) {
        if (error == -E2BIG)
                return failure_new(FAILURE_DENIED,
                                   "this process is in more than %u groups; connect from one that "
                                   "is in fewer",
                                   ADMISSION_GROUPS_MAX);
        return failure_new(FAILURE_INTERNAL, "cannot look up your groups: %s", strerror(-error));
}

static bool peer_is_in(gid_t wanted, const Peer *peer, const gid_t *groups, unsigned n_groups) {
        if (wanted == GROUP_NONE)
                return false;
        if (wanted == peer->gid)
                return true;
        for (unsigned i = 0; i < n_groups; ++i)
                if (wanted == groups[i])
                        return true;
        return false;
}

static bool peer_is_allowed(const Admission *admission, const Peer *peer, const gid_t *groups,
                            unsigned n_groups) {
        for (size_t i = 0; i < admission->n_allowed; ++i)
                if (peer_is_in(admission->allowed[i], peer, groups, n_groups))
                        return true;
        return false;
}

Failure *admission_check(Admission *admission, const Config *config, int fd, Peer *peer,
                         uint64_t now_ns) {
        _cleanup_(freep) gid_t *groups = NULL;
        int r;

        if (!config->allow_groups && !config->admin_group)
                return NULL;
        r = peer_groups(fd, &groups, &peer->n_groups);
        if (r < 0)
                return peer_groups_failure(r);
        if ((admission->is_incomplete || admission->has_failed) && now_ns >= admission->look_up_ns)
                admission_configure(admission, config, now_ns);

        peer->is_admin = peer_is_in(admission->admins, peer, groups, peer->n_groups);
        if (!config->allow_groups || peer->is_admin ||
            peer_is_allowed(admission, peer, groups, peer->n_groups))
                return NULL;
        if (admission->has_failed)
                return failure_new(FAILURE_INTERNAL,
                                   "only members of allow_groups may use gpuqd, and one of these "
                                   "groups cannot be looked up; try again in %u s: %s",
                                   (unsigned)(ADMISSION_LOOK_UP_NS / 1000000000u),
                                   config->allow_groups);
        return failure_new(FAILURE_DENIED,
                           "only members of these groups may use gpuqd: %s; ask an administrator "
                           "to add you to one",
                           config->allow_groups);
}
