/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk without threads, in the place of detached/disk.c: a call is made when a run says so.
 */

#include "fake_disk.h"

#include <stdlib.h>

STAILQ_HEAD(DiskCalls, DiskCall);

struct Disk {
        struct DiskCalls waiting;
};

static Disk *disk_last; /* there is one at most */

int __wrap_disk_new(uv_loop_t *loop, Disk **ret_disk);
void __wrap_disk_call(Disk *disk, DiskLine *line, DiskCall *call);
void __wrap_disk_close(Disk *disk);

int __wrap_disk_new(uv_loop_t *loop, Disk **ret_disk) {
        Disk *disk = calloc(1, sizeof(*disk));

        if (!disk)
                abort();
        STAILQ_INIT(&disk->waiting);
        *ret_disk = disk_last = disk;
        return 0;
}

void __wrap_disk_call(Disk *disk, DiskLine *line, DiskCall *call) {
        call->line = line;
        STAILQ_INSERT_TAIL(&disk->waiting, call, link);
}

bool disk_turn(void) {
        DiskCall *call = disk_last ? STAILQ_FIRST(&disk_last->waiting) : NULL;

        if (!call)
                return false;
        STAILQ_REMOVE_HEAD(&disk_last->waiting, link);
        call->run(call->userdata);
        call->done(call->userdata);
        return true;
}

void __wrap_disk_close(Disk *disk) {
        while (disk && disk_turn())
                ;
        disk_last = NULL;
        free(disk);
}
