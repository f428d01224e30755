/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports: how often they are made, who shares one, and lists of many jobs page by page.
 */
#include "fake.h"

#include <string.h>

#include "clients.h"
#include "listing.h"
#include "snapshot.h"

#define MANY    3000u
#define NOT_YET (UINT64_MAX / 2)

static Clients *clients_of(const Fake *fake) {
        return &fake->supervisor->clients;
}

/* As if a report had just been made, for as long as the test wants. */
static void hold_snapshots(Fake *fake) {
        clients_of(fake)->snapshot.taken_ns = NOT_YET;
}

static void ask_status(FakeClient *client) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__StatusGet get = GPUQ__V1__STATUS_GET__INIT;

        request.body_case = GPUQ__V1__REQUEST__BODY_STATUS_GET;
        request.status_get = &get;
        fake_send(client, &request);
}

static void ask_queue(FakeClient *client, uint64_t next) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__QueueGet get = GPUQ__V1__QUEUE_GET__INIT;

        get.next = next;
        request.body_case = GPUQ__V1__REQUEST__BODY_QUEUE_GET;
        request.queue_get = &get;
        fake_send(client, &request);
}

static bool has_answer(FakeClient *client) {
        return wire_receive(client->wire) == 0;
}

static const Gpuq__V1__Status *status_of(FakeClient *client) {
        const Gpuq__V1__Reply *reply = fake_receive(client);

        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_STATUS);
        assert_int_equal(reply->serial, 7);
        return reply->status;
}

static const Gpuq__V1__Queue *queue_of(FakeClient *client) {
        const Gpuq__V1__Reply *reply;

        do
                reply = fake_receive(client);
        while (reply->body_case == GPUQ__V1__REPLY__BODY_COMPLETIONS);
        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_QUEUE);
        return reply->queue;
}

static void those_who_ask_early_share_the_next_status(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *clients[8];
        uint64_t n_taken;

        for (size_t i = 0; i < ARRAY_SIZE(clients); ++i)
                clients[i] = fake_client(fake, FAKE_UID + (uint32_t)i % 2);
        ask_status(clients[0]);
        assert_int_equal(status_of(clients[0])->n_users, 2);
        n_taken = clients_of(fake)->snapshot.n_taken;

        hold_snapshots(fake);
        for (size_t i = 0; i < ARRAY_SIZE(clients); ++i) {
                ask_status(clients[i]);
                assert_false(has_answer(clients[i]));
        }
        fake_submit(clients[0], (FakeJob){}); /* later than the requests: it may show */
        assert_int_equal(clients_of(fake)->snapshot.n_taken, n_taken);

        snapshot_take(clients_of(fake), uv_hrtime());
        for (size_t i = 0; i < ARRAY_SIZE(clients); ++i)
                assert_int_equal(status_of(clients[i])->queued, 1);
        assert_int_equal(clients_of(fake)->snapshot.n_taken, n_taken + 1);
        for (size_t i = 0; i < ARRAY_SIZE(clients); ++i)
                fake_client_close(clients[i]);
        fake_free(fake);
}

/* A status that several users share has the limits of none of them but the one who asks. */
static void each_gets_its_own_limits_with_a_shared_status(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *clients[2];

        for (size_t i = 0; i < ARRAY_SIZE(clients); ++i)
                clients[i] = fake_client(fake, FAKE_UID + (uint32_t)i);
        fake_submit(clients[1], (FakeJob){});
        for (size_t i = 0; i < ARRAY_SIZE(clients); ++i)
                ask_status(clients[i]);
        for (size_t i = 0; i < ARRAY_SIZE(clients); ++i) {
                const Gpuq__V1__Status *status = status_of(clients[i]);
                const Gpuq__V1__UserLimit *jobs = NULL;

                assert_int_equal(status->n_users, 2);
                assert_int_equal(status->uid, FAKE_UID + i);
                for (size_t k = 0; k < status->n_limits; ++k) {
                        assert_int_equal(status->limits[k]->uid, FAKE_UID + i);
                        if (strcmp(status->limits[k]->key, "jobs") == 0)
                                jobs = status->limits[k];
                }
                assert_non_null(jobs);
                assert_int_equal(jobs->used, i);
                assert_int_equal(jobs->left, jobs->limit - i);
        }
        for (size_t i = 0; i < ARRAY_SIZE(clients); ++i)
                fake_client_close(clients[i]);
        fake_free(fake);
}

/* The timer takes it, without anything else happening. */
static void an_early_request_is_answered_by_itself(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);

        for (unsigned i = 0; i < 3; ++i) {
                ask_status(client);
                (void)status_of(client);
        }
        assert_int_equal(clients_of(fake)->snapshot.n_taken, 3);
        fake_client_close(client);
        fake_free(fake);
}

static void a_report_shows_what_was_submitted_before_it(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t id;

        ask_queue(client, 0);
        assert_int_equal(queue_of(client)->n_entries, 0);
        id = fake_submit(client, (FakeJob){});
        ask_queue(client, 0);
        assert_int_equal(queue_of(client)->n_entries, 1);
        assert_int_equal(client->reply->queue->entries[0]->id, id);
        fake_client_close(client);
        fake_free(fake);
}

static void who_asks_too_often_is_not_read_meanwhile(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        Session *session = clients_of(fake)->sessions;

        hold_snapshots(fake);
        for (unsigned i = 0; i < 3 * SESSION_REPORTS_MAX; ++i)
                ask_status(client);
        assert_int_equal(session->reports.n_asks, SESSION_REPORTS_MAX);
        clients_of(fake)->snapshot.taken_ns = 0;
        snapshot_take(clients_of(fake), 1);
        for (unsigned i = 0; i < 3 * SESSION_REPORTS_MAX; ++i) {
                if (i >= SESSION_REPORTS_MAX && session->reports.n_asks)
                        snapshot_take(clients_of(fake), 1);
                (void)status_of(client);
        }
        assert_int_equal(session->reports.n_asks, 0);
        fake_client_close(client);
        fake_free(fake);
}

static void who_leaves_is_not_answered(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);

        hold_snapshots(fake);
        ask_status(client);
        ask_queue(client, 0);
        fake_client_close(client);
        assert_true(TAILQ_EMPTY(&clients_of(fake)->snapshot.waiting));
        snapshot_take(clients_of(fake), uv_hrtime());
        fake_free(fake);
}

/* ---- pages ----------------------------------------------------------------- */

static uint64_t steps_of(const Fake *fake) {
        return clients_of(fake)->serving.n_steps;
}

/* Between the pages jobs end: those listed, the next one, and others. */
static void a_list_goes_on_where_it_was(void **state) {
        Fake *fake = fake_new(0, (char *[]){"queued_bytes=unlimited", NULL});
        FakeClient *client = fake_client(fake, FAKE_UID);
        Engine *engine = &fake->supervisor->engine;
        uint64_t first = fake_submit_many(client, (FakeJob){}, MANY), next = 0, last = first - 1;
        const Gpuq__V1__Queue *page;
        size_t n = 0, n_pages = 0;

        do {
                ask_queue(client, next);
                page = queue_of(client);
                assert_true(page->n_entries <= LISTING_PAGE);
                for (size_t i = 0; i < page->n_entries; ++i) {
                        assert_true(page->entries[i]->id > last);
                        last = page->entries[i]->id;
                }
                next = page->next;
                n += page->n_entries;
                n_pages++;
                if (n_pages == 1)
                        for (uint64_t id = last - 1; id <= last + 2; ++id)
                                ending_cancel(job_find(engine, id),
                                              failure_new(FAILURE_CANCELLED, "cancelled"));
        } while (next && n_pages < 10);
        assert_int_equal(n, MANY - 2);
        assert_int_equal(n_pages, 3);
        assert_int_equal(last, first + MANY - 1);
        fake_client_close(client);
        fake_free(fake);
}

static void the_last_page_of_a_list_has_no_next_one(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID + 1);
        const Gpuq__V1__Queue *page;

        fake_submit_many(client, (FakeJob){}, LISTING_PAGE);
        fake_submit_many(other, (FakeJob){}, 2);
        ask_queue(client, 0);
        page = queue_of(client);
        assert_int_equal(page->n_entries, LISTING_PAGE);
        assert_int_equal(page->next, 0);
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

static void a_page_costs_the_same_however_many_jobs_wait(void **state) {
        Fake *fake = fake_new(1, (char *[]){"inflight_jobs=1", "queued_bytes=unlimited", NULL});
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t before, next = 0, most = 0;
        const Gpuq__V1__Queue *page;

        fake_module(client);
        fake_submit_many(client, (FakeJob){}, 20 * LISTING_PAGE);
        do {
                fake_turn(fake);
                before = steps_of(fake);
                ask_queue(client, next);
                page = queue_of(client);
                next = page->next;
                most = MAX(most, steps_of(fake) - before);
        } while (next);
        assert_true(most <= LISTING_PAGE + REASON_COUNT_MAX + 100);
        assert_string_equal(page->entries[page->n_entries - 1]->reason,
                            "queued (over 4096 jobs ahead)");
        fake_client_close(client);
        fake_turn(fake);
        fake_free(fake);
}

static void ask_module(FakeClient *client, char *name) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;

        load.format = GPUQ__V1__FORMAT__BUILTIN;
        load.name = name;
        request.body_case = GPUQ__V1__REQUEST__BODY_MODULE_LOAD;
        request.module_load = &load;
        fake_send(client, &request);
}

static void modules_that_wait_are_listed_after_the_jobs(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        size_t n_jobs = 0, n_modules = 0, n_pages = 0;
        const Gpuq__V1__Queue *page;
        uint64_t next = 0;

        fake_submit_many(client, (FakeJob){}, LISTING_PAGE - 10);
        for (unsigned i = 0; i < LISTING_PAGE + 5; ++i)
                ask_module(client, "mine");
        do {
                ask_queue(client, next);
                page = queue_of(client);
                assert_true(page->n_entries + page->n_modules <= LISTING_PAGE);
                assert_true(page->n_entries == 0 || n_modules == 0);
                for (size_t i = 0; i < page->n_modules; ++i) {
                        assert_string_equal(page->modules[i]->name, "mine");
                        assert_int_equal(page->modules[i]->uid, FAKE_UID);
                        assert_string_equal(page->modules[i]->reason, "no device: no fake device");
                }
                n_jobs += page->n_entries;
                n_modules += page->n_modules;
                n_pages++;
                next = page->next;
        } while (next && n_pages < 10);
        assert_int_equal(n_jobs, LISTING_PAGE - 10);
        assert_int_equal(n_modules, LISTING_PAGE + 5);
        assert_int_equal(n_pages, 2);
        fake_client_close(client);
        fake_free(fake);
}

static void a_module_says_what_it_waits_for(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        const Gpuq__V1__Queue *page;

        fake->hold_modules = true;
        for (unsigned i = 0; i < LOADS_PERSON_MAX + 1; ++i)
                ask_module(client, "mine");
        fake_worker(fake, 0, 0);
        fake_turn(fake);
        ask_queue(client, 0);
        page = queue_of(client);
        assert_int_equal(page->n_modules, LOADS_PERSON_MAX + 1);
        assert_int_equal(page->modules[0]->device, 1);
        assert_string_equal(page->modules[0]->reason, "it is being compiled");
        assert_string_equal(page->modules[LOADS_PERSON_MAX]->reason,
                            "other modules are loaded first");
        fake_release_modules(fake, fake_worker(fake, 0, 0), 0);
        fake_client_close(client);
        fake_free(fake);
}

static void the_oldest_of_too_many_lists_is_dropped(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t next = 0;

        fake_submit_many(client, (FakeJob){}, 2 * LISTING_PAGE + 1);
        for (unsigned i = 0; i <= LISTING_MAX; ++i) {
                ask_queue(client, 0);
                next = i ? next : queue_of(client)->next;
                if (i)
                        (void)queue_of(client);
        }
        ask_queue(client, next);
        fake_expect_error(client, GPUQ__V1__CODE__E_NOT_FOUND, "begin again");
        ask_queue(client, next + 1);
        assert_int_equal(queue_of(client)->n_entries, LISTING_PAGE);
        fake_client_close(client);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(those_who_ask_early_share_the_next_status),
                cmocka_unit_test(each_gets_its_own_limits_with_a_shared_status),
                cmocka_unit_test(an_early_request_is_answered_by_itself),
                cmocka_unit_test(a_report_shows_what_was_submitted_before_it),
                cmocka_unit_test(who_asks_too_often_is_not_read_meanwhile),
                cmocka_unit_test(who_leaves_is_not_answered),
                cmocka_unit_test(a_list_goes_on_where_it_was),
                cmocka_unit_test(the_last_page_of_a_list_has_no_next_one),
                cmocka_unit_test(a_page_costs_the_same_however_many_jobs_wait),
                cmocka_unit_test(modules_that_wait_are_listed_after_the_jobs),
                cmocka_unit_test(a_module_says_what_it_waits_for),
                cmocka_unit_test(the_oldest_of_too_many_lists_is_dropped),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
