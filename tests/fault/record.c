/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record
 *
 * The count is written after its entry, so a reader never sees one half written.
 */
#include "record.h"

#include <err.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

Record *record_open(const char *path) {
        size_t n_bytes = sizeof(Record) + (size_t)RECORD_MAX * sizeof(RecordEntry);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        Record *record;

        if (fd < 0)
                err(2, "%s", path);
        if (ftruncate(fd, (off_t)n_bytes) < 0)
                err(2, "%s", path);
        record = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (record == MAP_FAILED)
                err(2, "%s", path);

        close(fd);
        return record;
}

void record_add(Record *record, const RecordEntry *entry) {
        uint64_t n = atomic_load(&record->n_entries);

        if (n == RECORD_MAX)
                errx(2, "the record is full");
        record->entries[n] = *entry;
        atomic_store(&record->n_entries, n + 1);
        if (entry->code == 0)
                atomic_fetch_add(&record->n_good, 1);
}

uint64_t record_now_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
