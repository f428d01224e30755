/* SPDX-License-Identifier: Apache-2.0 */
#include "admission.h"

#include <string.h>
#include <sys/socket.h>

#include "util/macro.h"

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
        if (wanted == (gid_t)-1)
                return false;
        if (wanted == peer->gid)
                return true;
        for (unsigned i = 0; i < n_groups; ++i)
                if (wanted == groups[i])
                        return true;
        return false;
}

static bool peer_is_allowed(const ConfigAdmission *admission, const Peer *peer, const gid_t *groups,
                            unsigned n_groups) {
        for (size_t i = 0; i < admission->n_allowed; ++i)
                if (peer_is_in(admission->allowed[i], peer, groups, n_groups))
                        return true;
        return false;
}

Failure *admission_check(const ConfigAdmission *admission, int fd, Peer *peer) {
        _cleanup_(freep) gid_t *groups = NULL;
        int r;

        if (!admission->allow_groups && !admission->admin_group)
                return NULL;
        r = peer_groups(fd, &groups, &peer->n_groups);
        if (r < 0)
                return peer_groups_failure(r);

        peer->is_admin = peer_is_in(admission->admins, peer, groups, peer->n_groups);
        if (!admission->allow_groups || peer->is_admin ||
            peer_is_allowed(admission, peer, groups, peer->n_groups))
                return NULL;
        if (admission->is_unknown)
                return failure_new(FAILURE_INTERNAL,
                                   "only members of these groups may use gpuqd, and it could not "
                                   "look up one of them, or its admin_group, yet; try again in a "
                                   "few seconds: %s",
                                   admission->allow_groups);
        return failure_new(FAILURE_DENIED,
                           "only members of these groups may use gpuqd: %s; ask an administrator "
                           "to add you to one",
                           admission->allow_groups);
}
