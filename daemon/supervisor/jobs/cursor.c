/* SPDX-License-Identifier: Apache-2.0 */
#include "cursor.h"

#include "user.h"
#include "util/list.h"

void cursor_begin(JobCursor *cursor, User *user) {
        cursor->user = user_hold(user);
        cursor->next = TAILQ_FIRST(&user->jobs);
        LIST_INSERT_HEAD(&user->cursors, cursor, link);
}

Job *cursor_next(JobCursor *cursor) {
        Job *job = cursor->next;

        if (job)
                cursor->next = TAILQ_NEXT(job, user_link);
        return job;
}

void cursor_end(JobCursor *cursor) {
        if (cursor->user)
                LIST_REMOVE(cursor, link);
        user_release(cursor->user);
        cursor->user = NULL;
}

void cursor_pass(const Job *job) {
        JobCursor *cursor;

        LIST_FOREACH (cursor, &job->user->cursors, link)
                if (cursor->next == job)
                        cursor->next = TAILQ_NEXT(job, user_link);
}
