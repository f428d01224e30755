/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ledger: the memory itself, and the records of sessions, arenas and modules. Those of jobs
 * are in ledger_job.c.
 */

#include "ledger.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "ledger_layout.h"

_Static_assert(sizeof(LedgerHead) <= LEDGER_HEAD_BYTES, "the head has a page");
_Static_assert(sizeof(LedgerJobSlot) == 272, "no holes in a job's record");
_Static_assert(offsetof(LedgerHead, check) % 8 == 0, "checked in words");

static const uint32_t ledger_record_bytes[_LEDGER_KIND_N] = {
        [LEDGER_SESSION] = sizeof(LedgerSession),
        [LEDGER_ARENA] = sizeof(LedgerArena),
        [LEDGER_MODULE] = sizeof(LedgerModule),
};

static const uint32_t ledger_n_slots[LEDGER_KINDS] = {
        [LEDGER_SESSION] = LEDGER_SESSIONS,
        [LEDGER_ARENA] = LEDGER_ARENAS,
        [LEDGER_MODULE] = LEDGER_MODULES,
        [LEDGER_JOB] = LEDGER_JOBS,
};

static uint32_t ledger_slot_bytes(unsigned kind) {
        if (kind == LEDGER_JOB)
                return sizeof(LedgerJobSlot);
        return (uint32_t)sizeof(LedgerSlot) + (ledger_record_bytes[kind] + 7) / 8 * 8;
}

static size_t ledger_n_bytes(void) {
        size_t n_bytes = LEDGER_HEAD_BYTES;

        for (unsigned kind = 0; kind < LEDGER_KINDS; ++kind)
                n_bytes += (size_t)ledger_slot_bytes(kind) * ledger_n_slots[kind];
        return n_bytes;
}

/* ---- writing --------------------------------------------------------------- */

uint64_t ledger_check(unsigned kind, uint32_t slot, const void *data, size_t n_bytes) {
        uint64_t check = LEDGER_CHECK_SEED ^ LEDGER_WRITING(kind, slot), word;

        for (size_t i = 0; i < n_bytes; i += sizeof(word)) {
                memcpy(&word, (const char *)data + i, sizeof(word));
                check = (check ^ word) * 0xff51afd7ed558ccdull;
                check ^= check >> 32;
        }
        return check ? check : 1;
}

void ledger_begin(Ledger *ledger, unsigned kind, uint32_t slot) {
        ledger->head->writing = LEDGER_WRITING(kind, slot);
        ledger_barrier();
}

void ledger_end(Ledger *ledger) {
        ledger_barrier();
        ledger->head->writing = 0;
        ledger_barrier();
}

void ledger_set_count(Ledger *ledger, LedgerCount *count, uint64_t value) {
        ledger->head->writing = LEDGER_WRITING_COUNT;
        ledger_barrier();
        count->value = value;
        ledger_barrier();
        count->inverse = ~value;
        ledger_end(ledger);
}

/* ---- numbers --------------------------------------------------------------- */

uint64_t ledger_last_id(const Ledger *ledger, LedgerKind kind) {
        return ledger->head->last_id[kind].value;
}

void ledger_note_id(Ledger *ledger, LedgerKind kind, uint64_t id) {
        ledger_set_count(ledger, &ledger->head->last_id[kind], id);
}

/* ---- records --------------------------------------------------------------- */

static LedgerSlot *ledger_slot(const Ledger *ledger, unsigned kind, uint32_t slot) {
        const LedgerTable *table = &ledger->tables[kind];

        return (LedgerSlot *)(void *)(table->slots + (size_t)slot * table->n_bytes);
}

uint32_t ledger_take_slot(Ledger *ledger, unsigned kind) {
        LedgerTable *table = &ledger->tables[kind];

        if (table->n_free)
                return table->free[--table->n_free];
        if (table->n_touched == table->n_slots)
                return LEDGER_NONE;
        ledger_set_count(ledger, &ledger->head->n_touched[kind], table->n_touched + 1);
        return table->n_touched++;
}

void ledger_put_slot(Ledger *ledger, unsigned kind, uint32_t slot) {
        LedgerTable *table = &ledger->tables[kind];

        ledger_begin(ledger, kind, slot);
        ledger_slot(ledger, kind, slot)->check =
                0; /* a job's slot begins with its checksum as well */
        ledger_end(ledger);
        table->free[table->n_free++] = slot;
}

uint32_t ledger_add(Ledger *ledger, LedgerKind kind, const void *record) {
        uint32_t slot = ledger_take_slot(ledger, kind);
        size_t n_bytes = ledger->tables[kind].n_bytes - sizeof(LedgerSlot);
        LedgerSlot *at;

        if (slot == LEDGER_NONE)
                return slot;

        at = ledger_slot(ledger, kind, slot);
        ledger_begin(ledger, kind, slot);
        memset(at->record, 0, n_bytes);
        memcpy(at->record, record, ledger_record_bytes[kind]);
        ledger_barrier();
        at->check = ledger_check(kind, slot, at->record, n_bytes);
        ledger_end(ledger);
        return slot;
}

uint32_t ledger_change(Ledger *ledger, LedgerKind kind, uint32_t slot, const void *record) {
        uint32_t changed;

        if (slot == LEDGER_NONE)
                return slot;
        changed = ledger_add(ledger, kind, record);
        if (changed == LEDGER_NONE)
                return slot;
        ledger_put_slot(ledger, kind, slot);
        return changed;
}

void ledger_drop(Ledger *ledger, LedgerKind kind, uint32_t slot) {
        if (slot != LEDGER_NONE)
                ledger_put_slot(ledger, kind, slot);
}

const void *ledger_next(const Ledger *ledger, LedgerKind kind, uint32_t *slot) {
        const LedgerTable *table = &ledger->tables[kind];
        uint32_t i = *slot == LEDGER_NONE ? 0 : *slot + 1;

        for (; i < table->n_touched; ++i) {
                const LedgerSlot *at = ledger_slot(ledger, kind, i);

                if (!at->check)
                        continue;
                *slot = i;
                return at->record;
        }
        return NULL;
}

/* ---- open ------------------------------------------------------------------ */

static void ledger_head_fill(LedgerHead *head) {
        memset(head, 0, sizeof(*head));
        memcpy(head->magic, LEDGER_MAGIC, sizeof(head->magic));
        head->version = LEDGER_VERSION;
        for (unsigned kind = 0; kind < LEDGER_KINDS; ++kind) {
                head->n_bytes[kind] = ledger_slot_bytes(kind);
                head->n_slots[kind] = ledger_n_slots[kind];
                head->n_touched[kind].inverse = ~0ull;
        }
        for (unsigned kind = 0; kind < _LEDGER_KIND_N; ++kind)
                head->last_id[kind].inverse = ~0ull;
        head->check = ledger_check(LEDGER_KINDS, 0, head, offsetof(LedgerHead, check));
}

static int ledger_head_check(const LedgerHead *head) {
        LedgerHead wanted;

        if (memcmp(head->magic, LEDGER_MAGIC, sizeof(head->magic)) != 0 ||
            head->check != ledger_check(LEDGER_KINDS, 0, head, offsetof(LedgerHead, check)))
                return LEDGER_E_DAMAGED;
        ledger_head_fill(&wanted);
        return memcmp(head, &wanted, offsetof(LedgerHead, check)) == 0 ? 0 : LEDGER_E_VERSION;
}

/* Return: 0, or LEDGER_E_DAMAGED. */
static int ledger_count_repair(const Ledger *ledger, LedgerCount *count) {
        if (count->inverse == ~count->value)
                return 0;
        if (ledger->head->writing != LEDGER_WRITING_COUNT)
                return LEDGER_E_DAMAGED;
        count->value = MAX(count->value, ~count->inverse);
        count->inverse = ~count->value;
        return 0;
}

static int ledger_counts_repair(Ledger *ledger) {
        LedgerHead *head = ledger->head;
        int r = 0;

        for (unsigned kind = 0; r == 0 && kind < _LEDGER_KIND_N; ++kind)
                r = ledger_count_repair(ledger, &head->last_id[kind]);
        for (unsigned kind = 0; r == 0 && kind < LEDGER_KINDS; ++kind) {
                r = ledger_count_repair(ledger, &head->n_touched[kind]);
                if (head->n_touched[kind].value > ledger_n_slots[kind])
                        return LEDGER_E_DAMAGED;
                ledger->tables[kind].n_touched = (uint32_t)head->n_touched[kind].value;
        }
        return r;
}

/* The record being written counts as free: no client was told of it. */
static int ledger_table_open(Ledger *ledger, unsigned kind) {
        LedgerTable *table = &ledger->tables[kind];
        size_t n_bytes = table->n_bytes - sizeof(LedgerSlot);

        for (uint32_t slot = table->n_touched; slot-- > 0;) {
                LedgerSlot *at = ledger_slot(ledger, kind, slot);

                if (at->check && at->check != ledger_check(kind, slot, at->record, n_bytes)) {
                        if (ledger->head->writing != LEDGER_WRITING(kind, slot))
                                return LEDGER_E_DAMAGED;
                        at->check = 0;
                }
                if (!at->check)
                        table->free[table->n_free++] = slot;
        }
        return 0;
}

static int ledger_check_all(Ledger *ledger) {
        int r;

        r = ledger_head_check(ledger->head);
        if (r)
                return r;
        r = ledger_counts_repair(ledger);
        for (unsigned kind = 0; r == 0 && kind < _LEDGER_KIND_N; ++kind)
                r = ledger_table_open(ledger, kind);
        if (r == 0)
                r = ledger_jobs_open(ledger);
        if (r == 0)
                ledger->head->writing = 0;
        return r;
}

/* ---- life ------------------------------------------------------------------ */

static int ledger_alloc_tables(Ledger *ledger) {
        uint8_t *slots = (uint8_t *)ledger->head + LEDGER_HEAD_BYTES;

        for (unsigned kind = 0; kind < LEDGER_KINDS; ++kind) {
                LedgerTable *table = &ledger->tables[kind];

                table->slots = slots;
                table->n_bytes = ledger_slot_bytes(kind);
                table->n_slots = ledger_n_slots[kind];
                table->free = malloc(table->n_slots * sizeof(*table->free));
                if (!table->free)
                        return -ENOMEM;
                slots += (size_t)table->n_bytes * table->n_slots;
        }
        /* The file's zeros take no memory until they are touched. */
        ledger->nodes = calloc(LEDGER_JOBS, sizeof(*ledger->nodes));
        return ledger->nodes ? 0 : -ENOMEM;
}

/* Consumes @fd, of ledger_n_bytes(), in any case. */
static int ledger_map(int fd, Ledger **ret_ledger) {
        _cleanup_(ledger_freep) Ledger *ledger = NULL;
        _cleanup_(closep) int owned = fd;
        void *memory;
        int r;

        ledger = calloc(1, sizeof(*ledger));
        if (!ledger)
                return -ENOMEM;
        ledger->fd = -1;
        ledger_users_init(ledger);
        TAILQ_INIT(&ledger->seen);

        memory = mmap(NULL, ledger_n_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, owned, 0);
        if (memory == MAP_FAILED)
                return -errno;
        ledger->head = memory;
        ledger->fd = TAKE_FD(owned);
        r = ledger_alloc_tables(ledger);
        if (r < 0)
                return r;

        *ret_ledger = TAKE_PTR(ledger);
        return 0;
}

int ledger_new(Ledger **ret_ledger) {
        _cleanup_(closep) int fd = -1;
        int r;

        fd = memfd_create("gpuq-ledger", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        if (ftruncate(fd, (off_t)ledger_n_bytes()) < 0 ||
            fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
                return -errno;

        r = ledger_map(TAKE_FD(fd), ret_ledger);
        if (r == 0)
                ledger_head_fill((*ret_ledger)->head);
        return r;
}

int ledger_open(int fd, Ledger **ret_ledger) {
        _cleanup_(ledger_freep) Ledger *ledger = NULL;
        _cleanup_(closep) int owned = fd;
        LedgerHead head;
        struct stat st;
        int r;

        if (pread(owned, &head, sizeof(head), 0) != sizeof(head))
                return LEDGER_E_DAMAGED;
        r = ledger_head_check(&head);
        if (r)
                return r;
        if (fstat(owned, &st) < 0)
                return -errno;
        if ((size_t)st.st_size != ledger_n_bytes())
                return LEDGER_E_DAMAGED;

        r = ledger_map(TAKE_FD(owned), &ledger);
        if (r < 0)
                return r;
        r = ledger_check_all(ledger);
        if (r)
                return r;
        *ret_ledger = TAKE_PTR(ledger);
        return 0;
}

Ledger *ledger_free(Ledger *ledger) {
        if (!ledger)
                return NULL;

        if (ledger->head)
                munmap(ledger->head, ledger_n_bytes());
        closep(&ledger->fd);
        for (unsigned kind = 0; kind < LEDGER_KINDS; ++kind)
                free(ledger->tables[kind].free);
        ledger_users_free(ledger);
        free(ledger->nodes);
        free(ledger->by_id);
        free(ledger->by_order);
        free(ledger);
        return NULL;
}

int ledger_leave(Ledger *ledger) {
        void *memory = mmap(ledger->head, ledger_n_bytes(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_FIXED, ledger->fd, 0);

        return memory == MAP_FAILED ? -errno : 0;
}

int ledger_fd(const Ledger *ledger) {
        return ledger->fd;
}
