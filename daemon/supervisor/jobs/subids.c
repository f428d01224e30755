/* SPDX-License-Identifier: Apache-2.0 */
#include "subids.h"

#include <shadow/subid.h>
#include <stdlib.h>

#include "util/macro.h"

int subids_owner(uid_t uid, uid_t *ret_owner) {
        _cleanup_(freep) uid_t *owners = NULL;

        if (subid_get_uid_owners(uid, &owners) <= 0)
                return SUBIDS_E_NONE;
        *ret_owner = owners[0];
        return 0;
}
