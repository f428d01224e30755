/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk without threads, in the place of base/disk.c: a call is made when a run says so.
 */

#include "fake_disk.h"

#include <stdlib.h>

STAILQ_HEAD(DiskCalls, DiskCall);

struct Disk {
        char unused;
};

static struct DiskCalls disk_waiting = STAILQ_HEAD_INITIALIZER(disk_waiting); /* of all disks */

int __wrap_disk_new(uv_loop_t *loop, size_t n_threads, Disk **ret_disk);
void __wrap_disk_call(Disk *disk, DiskLine *line, DiskCall *call);
void __wrap_disk_close(Disk *disk);

int __wrap_disk_new(uv_loop_t *loop, size_t n_threads, Disk **ret_disk) {
        *ret_disk = calloc(1, sizeof(**ret_disk));
        if (!*ret_disk)
                abort();
        return 0;
}

void __wrap_disk_call(Disk *disk, DiskLine *line, DiskCall *call) {
        call->line = line;
        STAILQ_INSERT_TAIL(&disk_waiting, call, link);
}

bool disk_turn(void) {
        DiskCall *call = STAILQ_FIRST(&disk_waiting);

        if (!call)
                return false;
        STAILQ_REMOVE_HEAD(&disk_waiting, link);
        call->run(call->userdata);
        call->done(call->userdata);
        return true;
}

void __wrap_disk_close(Disk *disk) {
        while (disk && disk_turn())
                ;
        free(disk);
}
