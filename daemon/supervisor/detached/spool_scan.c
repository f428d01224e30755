/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spool: what is on disk when it is opened.
 */

#include <dirent.h>
#include <string.h>

#include "spool_state.h"

static int scan_unpack(const ProtobufCMessageDescriptor *type, int folder, const char *name,
                       ProtobufCMessage **ret_message, SpoolProblem *problem) {
        _cleanup_(freep) uint8_t *data = NULL;
        size_t n_data;
        int r;

        r = spool_read_sealed(folder, name, &data, &n_data, problem);
        if (r)
                return r;
        *ret_message = protobuf_c_message_unpack(type, NULL, n_data, data);
        return *ret_message ? 0 : -ENOMEM; /* its checksum is right, so it is a message */
}

static bool scan_is_sound(const SpoolEntry *entry) {
        const Gpuq__Spool__Record *record = entry->record;

        if (record->number != entry->number || record->uid != entry->uid || !record->job ||
            record->job->n_kernels != record->n_kernel_modules)
                return false;
        for (size_t i = 0; i < record->n_kernel_modules; ++i)
                if (record->kernel_modules[i] >= record->n_modules)
                        return false;
        for (size_t i = 0; i < record->n_extents; ++i)
                if (record->extents[i]->offset > record->size ||
                    record->extents[i]->length > record->size - record->extents[i]->offset)
                        return false;
        return !entry->end || entry->end->completion;
}

/* Return: 0, SPOOL_E_DAMAGED, or a negative errno. What was read is the entry's in any case. */
static int scan_read(int folder, SpoolEntry *entry, SpoolProblem *problem) {
        int r;

        r = scan_unpack(&gpuq__spool__record__descriptor, folder, "job",
                        (ProtobufCMessage **)&entry->record, problem);
        if (r == -ENOENT) {
                snprintf(problem->text, sizeof(problem->text), "job: is missing");
                return SPOOL_E_DAMAGED;
        }
        if (r)
                return r;
        r = scan_unpack(&gpuq__spool__end__descriptor, folder, "end",
                        (ProtobufCMessage **)&entry->end, problem);
        if (r && r != -ENOENT)
                return r;
        if (scan_is_sound(entry))
                return 0;
        snprintf(problem->text, sizeof(problem->text), "job: does not fit its folder");
        return SPOOL_E_DAMAGED;
}

static void entry_clear(SpoolEntry *entry) {
        if (entry->record)
                gpuq__spool__record__free_unpacked(entry->record, NULL);
        if (entry->end)
                gpuq__spool__end__free_unpacked(entry->end, NULL);
        entry->record = NULL;
        entry->end = NULL;
}

static int scan_job(Spool *spool, const char *name, SpoolEntry entry, SpoolFound found,
                    void *userdata) {
        _cleanup_(closep) int folder = spool_folder_open(spool->fd, name);
        SpoolProblem problem = {};
        int r;

        r = folder < 0 ? spool_folder_problem(folder, &problem)
                       : scan_read(folder, &entry, &problem);
        if (r) {
                entry_clear(&entry);
                if (r < 0)
                        return r;
                entry.damage = problem.text;
                r = spool_set_aside(spool, entry.number, entry.uid);
                if (spool_is_passing(r))
                        return r;
        }
        r = found(&entry, userdata);
        if (r < 0)
                entry_clear(&entry);
        return r;
}

static int scan_damaged(Spool *spool, SpoolFound found, void *userdata, uint32_t *last) {
        DIR *dir = spool_folder_list(spool->fd, SPOOL_DAMAGED);
        struct dirent *item;
        int r = 0;

        if (!dir)
                return -errno;
        while (r == 0 && (item = readdir(dir))) {
                SpoolEntry entry = {.damage = "it was set aside by an earlier gpuqd"};

                if (!spool_is_name(item->d_name, true, &entry.number, &entry.uid))
                        continue;
                *last = MAX(*last, entry.number);
                r = found(&entry, userdata);
        }
        closedir(dir);
        return r;
}

static bool scan_is_remains(const char *name) {
        return strncmp(name, "new-", 4) == 0 || strncmp(name, "old-", 4) == 0;
}

static int scan_jobs(Spool *spool, SpoolFound found, void *userdata, uint32_t *last) {
        DIR *dir = spool_folder_list(spool->fd, ".");
        struct dirent *item;
        int r = 0;

        if (!dir)
                return -errno;
        while (r == 0 && (item = readdir(dir))) {
                SpoolEntry entry = {};

                if (scan_is_remains(item->d_name))
                        (void)spool_folder_remove(spool->fd, item->d_name);
                if (!spool_is_name(item->d_name, false, &entry.number, &entry.uid))
                        continue;
                *last = MAX(*last, entry.number);
                r = scan_job(spool, item->d_name, entry, found, userdata);
        }
        closedir(dir);
        return r;
}

int spool_scan(Spool *spool, SpoolFound found, void *userdata, uint32_t *ret_last) {
        uint32_t last = spool->noted;
        int r;

        r = scan_damaged(spool, found, userdata, &last); /* first: the other adds to it */
        if (r == 0)
                r = scan_jobs(spool, found, userdata, &last);
        if (r == 0)
                *ret_last = last;
        return r;
}
