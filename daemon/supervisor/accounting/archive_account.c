/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accounts of Slurm's jobs: read once from the file that Slurm's prolog wrote, and kept as long as
 * rows of the job may be.
 */
#include "archive.h"

#include "archive_state.h"
#include "base.h"

typedef struct Accounts {
        const char *folder;
        sqlite3_stmt *touch;
        sqlite3_stmt *insert;
        uint32_t last; /* the job that was kept last */
} Accounts;

static int accounts_prepare(Archive *archive, Accounts *accounts) {
        int code;

        code = sqlite3_prepare_v2(archive->db, "UPDATE accounts SET at = ?2 WHERE slurm_job = ?1",
                                  -1, &accounts->touch, NULL);
        if (code == SQLITE_OK)
                code = sqlite3_prepare_v2(archive->db, "INSERT INTO accounts VALUES (?1, ?2, ?3)",
                                          -1, &accounts->insert, NULL);
        return code;
}

static int accounts_step(sqlite3_stmt *statement, uint32_t slurm_job, uint64_t at_ms) {
        int code;

        sqlite3_bind_int64(statement, 1, slurm_job);
        sqlite3_bind_int64(statement, 2, (int64_t)at_ms);
        code = sqlite3_step(statement);
        sqlite3_reset(statement);
        return code;
}

static int accounts_keep(Archive *archive, Accounts *accounts, const TallyRow *row) {
        char name[SLURM_ACCOUNT_MAX + 1];
        int code;

        if (!row->slurm_job || row->slurm_job == accounts->last)
                return SQLITE_DONE;
        accounts->last = row->slurm_job;
        code = accounts_step(accounts->touch, row->slurm_job, row->at_ms);
        if (code != SQLITE_DONE || sqlite3_changes(archive->db) ||
            !slurm_job_account(accounts->folder, row->slurm_job, name))
                return code;
        sqlite3_bind_text(accounts->insert, 3, name, -1, SQLITE_STATIC);
        return accounts_step(accounts->insert, row->slurm_job, row->at_ms);
}

static int accounts_keep_all(Archive *archive, Accounts *accounts, const TallyBatch *batch) {
        int code = SQLITE_DONE;

        for (size_t i = 0; i < batch->n_singles && code == SQLITE_DONE; ++i)
                code = accounts_keep(archive, accounts, &batch->singles[i]);
        for (size_t i = 0; i < batch->n_shares && code == SQLITE_DONE; ++i)
                code = accounts_keep(archive, accounts, &batch->shares[i].row);
        return code;
}

int archive_keep_accounts(Archive *archive, const TallyBatch *batch, const char *folder) {
        Accounts accounts = {.folder = folder};
        int code;

        code = accounts_prepare(archive, &accounts);
        if (code == SQLITE_OK)
                code = accounts_keep_all(archive, &accounts, batch);
        sqlite3_finalize(accounts.touch);
        sqlite3_finalize(accounts.insert);
        return code;
}

int archive_prune_accounts(Archive *archive, uint64_t before_ms) {
        sqlite3_stmt *statement = NULL;
        int code;

        code = sqlite3_prepare_v2(archive->db, "DELETE FROM accounts WHERE at < ?1", -1, &statement,
                                  NULL);
        if (code == SQLITE_OK) {
                sqlite3_bind_int64(statement, 1, (int64_t)before_ms);
                code = sqlite3_step(statement);
        }
        sqlite3_finalize(statement);
        return code;
}
