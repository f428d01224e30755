/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SUBIDS_H
#define GPUQ_SUPERVISOR_SUBIDS_H

/*
 * Subordinate uids
 *
 * The owner of a uid for use in user namespaces: from /etc/subuid, or from the service that
 * nsswitch.conf names for subid. See subuid(5). A lookup reads the file, and may take as long as that
 * service does. libsubid does the work.
 */

#include <sys/types.h>

enum {
        _SUBIDS_E_SUCCESS,
        SUBIDS_E_NONE, /* it is nobody's subordinate uid, or the lookup failed */
};

/** subids_owner() - in any thread. Return: 0, SUBIDS_E_NONE, or -ETIMEDOUT: other lookups have not ended. */
int subids_owner(uid_t uid, uid_t *ret_owner);

#endif
