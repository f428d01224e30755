/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "limit.h"
#include "prepared.h"
#include "registry.h"

static void send_bytes(FakeClient *client, const void *data, size_t n_data) {
        assert_int_equal(send(wire_fd(client->wire), data, n_data, MSG_NOSIGNAL), n_data);
        fake_turn(client->fake);
}

#define N_UNREAD_JOBS 36864u /* whose ends are more than a connection may leave unread */

static void send_hello(FakeClient *client, uint32_t min, uint32_t max) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Hello hello = GPUQ__V1__HELLO__INIT;

        hello.version_min = min;
        hello.version_max = max;
        request.body_case = GPUQ__V1__REQUEST__BODY_HELLO;
        request.hello = &hello;
        fake_send(client, &request);
}

static void send_status_get(FakeClient *client) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__StatusGet get = GPUQ__V1__STATUS_GET__INIT;

        request.body_case = GPUQ__V1__REQUEST__BODY_STATUS_GET;
        request.status_get = &get;
        fake_send(client, &request);
}

static void send_create(FakeClient *client, Gpuq__V1__Place place, uint64_t size) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ArenaCreate create = GPUQ__V1__ARENA_CREATE__INIT;

        create.place = place;
        create.size = size;
        request.body_case = GPUQ__V1__REQUEST__BODY_ARENA_CREATE;
        request.arena_create = &create;
        fake_send(client, &request);
}

static void send_open(FakeClient *client, uint64_t arena) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ArenaOpen open = GPUQ__V1__ARENA_OPEN__INIT;

        open.arena = arena;
        request.body_case = GPUQ__V1__REQUEST__BODY_ARENA_OPEN;
        request.arena_open = &open;
        fake_send(client, &request);
}

static void send_load_with(FakeClient *client, uint64_t image, uint64_t length,
                           uint64_t header_bytes, char *name) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;

        load.image = image;
        load.length = length;
        load.header_bytes = header_bytes;
        load.names = &name;
        load.n_names = name != NULL;
        load.name = "mine.cu";
        request.body_case = GPUQ__V1__REQUEST__BODY_MODULE_LOAD;
        request.module_load = &load;
        fake_send(client, &request);
}

static void send_load(FakeClient *client, uint64_t image, uint64_t length) {
        send_load_with(client, image, length, 0, NULL);
}

static void a_message_before_the_handshake_ends_the_connection(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client_raw(fake, FAKE_UID, false);

        send_status_get(client);
        fake_expect_error(client, GPUQ__V1__CODE__E_PROTOCOL, "a message before the handshake");
        assert_null(fake_receive(client));
        fake_client_close(client);
        fake_free(fake);
}

static void a_version_that_is_not_common_names_both_ranges(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client_raw(fake, FAKE_UID, false);

        send_hello(client, 8, 9);
        fake_expect_error(client, GPUQ__V1__CODE__E_VERSION, "8 to 9, but gpuqd speaks 1 to 1");
        assert_null(fake_receive(client));
        fake_client_close(client);
        fake_free(fake);
}

static void a_second_handshake_ends_the_connection(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);

        send_hello(client, 1, 1);
        fake_expect_error(client, GPUQ__V1__CODE__E_PROTOCOL, "a second handshake");
        fake_client_close(client);
        fake_free(fake);
}

static void bytes_that_are_no_frame_end_the_connection(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client_raw(fake, FAKE_UID, false);

        send_bytes(client, "GET / HTTP/1.0\r\n\r\n", 18);
        fake_expect_error(client, GPUQ__V1__CODE__E_PROTOCOL, "too long");
        assert_null(fake_receive(client));
        fake_client_close(client);
        fake_free(fake);
}

static void a_frame_that_is_not_protobuf_ends_the_connection(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID);

        send_bytes(client, "\4\0\0\0\0\0\0\0\xff\xff\xff\xff", 12);
        fake_expect_error(client, GPUQ__V1__CODE__E_PROTOCOL, "not protobuf");
        send_status_get(other);
        assert_int_equal(fake_receive(other)->body_case, GPUQ__V1__REPLY__BODY_STATUS);
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

/* 4 MiB of empty jobs would unpack to more than 300 MiB. */
static void a_frame_that_swells_is_refused(void **state) {
        size_t n_jobs = 700000, n_data = 2 * n_jobs;
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint8_t *data = malloc(n_data + 16), *cursor = data;

        /* request.submit, of n_data bytes, then that many empty jobs */
        *cursor++ = 8 << 3 | 2;
        for (size_t rest = n_data; rest; rest >>= 7)
                *cursor++ = (uint8_t)((rest & 127) | (rest > 127 ? 128 : 0));
        for (size_t i = 0; i < n_jobs; ++i) {
                *cursor++ = 1 << 3 | 2;
                *cursor++ = 0;
        }
        n_data = (size_t)(cursor - data);
        send_bytes(client,
                   (uint8_t[8]){(uint8_t)n_data, (uint8_t)(n_data >> 8), (uint8_t)(n_data >> 16)},
                   8);
        for (size_t sent = 0; sent < n_data;) {
                ssize_t n = send(wire_fd(client->wire), data + sent, n_data - sent, MSG_NOSIGNAL);

                sent += n > 0 ? (size_t)n : 0;
                fake_turn(fake);
        }
        fake_expect_error(client, GPUQ__V1__CODE__E_PROTOCOL, "of too many parts");
        free(data);
        fake_client_close(client);
        fake_free(fake);
}

/* A newer client's field, or megabytes that no limit counts. */
static void of_what_is_kept_unknown_fields_are_dropped(void **state) {
        uint8_t bytes[1000] = {};
        ProtobufCMessageUnknownField unknown = {
                .tag = 1000,
                .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                .len = sizeof(bytes),
                .data = bytes,
        };
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Prepare prepare = GPUQ__V1__PREPARE__INIT;
        Gpuq__V1__Kernel kernel = GPUQ__V1__KERNEL__INIT, *kernels = &kernel;
        Gpuq__V1__Job job = GPUQ__V1__JOB__INIT;
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        const Prepared *prepared;

        fake_module(client);
        bytes[0] = 0xe6; /* a length of 998 */
        bytes[1] = 0x07;
        kernel.module = client->module;
        kernel.name = "add";
        job.kernels = &kernels;
        job.n_kernels = 1;
        job.base.unknown_fields = kernel.base.unknown_fields = &unknown;
        job.base.n_unknown_fields = kernel.base.n_unknown_fields = 1;
        prepare.job = &job;
        request.body_case = GPUQ__V1__REQUEST__BODY_PREPARE;
        request.prepare = &prepare;
        fake_send(client, &request);
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_PREPARED);

        prepared = session_find(&fake->supervisor->clients, client->session)->prepared;
        assert_int_equal(prepared->job->base.n_unknown_fields, 0);
        assert_int_equal(prepared->job->kernels[0]->base.n_unknown_fields, 0);
        fake_client_close(client);
        fake_free(fake);
}

static void last_words_are_sent_however_long_the_turn_takes(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        Session *session;

        HASH_FIND(hh, fake->supervisor->clients.sessions, &client->session, sizeof(client->session),
                  session);
        session_refuse(session, failure_new(FAILURE_SHUTDOWN, "gpuqd is shutting down"));
        session_tick(session, uv_hrtime() + 2 * SESSION_LINGER_MS * 1000000ull);
        fake_expect_error(client, GPUQ__V1__CODE__E_SHUTDOWN, "gpuqd is shutting down");
        assert_null(fake_receive(client));
        session_tick(session, uv_hrtime() + 2 * SESSION_LINGER_MS * 1000000ull);
        assert_null(fake->supervisor->clients.sessions);
        fake_client_close(client);
        fake_free(fake);
}

static void sessions_over_the_limit_are_told_which(void **state) {
        Fake *fake = fake_new(1, (char *[]){"sessions=1", NULL});
        FakeClient *client = fake_client(fake, FAKE_UID);
        FakeClient *second = fake_client_raw(fake, FAKE_UID, false);
        FakeClient *other = fake_client(fake, FAKE_UID + 1);

        fake_expect_error(second, GPUQ__V1__CODE__E_QUOTA, "see sessions in gpuqd.conf");
        assert_null(fake_receive(second));
        fake_client_close(second);
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

static void a_host_arena_comes_sealed_against_resizing(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        struct stat st;

        send_create(client, GPUQ__V1__PLACE__HOST, 12345);
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_ARENA);
        assert_true(client->fd >= 0);
        assert_int_equal(fstat(client->fd, &st), 0);
        assert_int_equal(st.st_size, 12345);
        assert_int_equal(fcntl(client->fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
        fake_client_close(client);
        assert_int_equal(fake->n_kept, fake->n_dropped + 1); /* the ledger stays */
        fake_free(fake);
}

static void an_arena_of_nothing_or_over_the_limit_is_refused(void **state) {
        Fake *fake = fake_new(1, (char *[]){"arena_bytes=1M", NULL});
        FakeClient *client = fake_client(fake, FAKE_UID);

        send_create(client, GPUQ__V1__PLACE__HOST, 0);
        fake_expect_error(client, GPUQ__V1__CODE__E_INVALID, "at least one byte");
        fake_arena(client, GPUQ__V1__PLACE__HOST, 1000000);
        send_create(client, GPUQ__V1__PLACE__HOST, 100000);
        fake_expect_error(
                client, GPUQ__V1__CODE__E_QUOTA,
                "arena_bytes of user 4242: 97.7 KiB requested, 977 KiB of 1.00 MiB in use; see "
                "arena_bytes in gpuqd.conf");
        send_create(client, GPUQ__V1__PLACE__IMAGE, (256u << 20) + 1);
        fake_expect_error(client, GPUQ__V1__CODE__E_INVALID, "module image");
        fake_client_close(client);
        fake_free(fake);
}

static void an_arena_lives_while_anybody_has_it_open(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID);
        FakeClient *late = fake_client(fake, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);

        send_open(other, arena);
        assert_int_equal(fake_receive(other)->body_case, GPUQ__V1__REPLY__BODY_ARENA);
        fake_client_close(client);
        send_open(late, arena);
        assert_int_equal(fake_receive(late)->body_case, GPUQ__V1__REPLY__BODY_ARENA);
        fake_client_close(other);
        fake_client_close(late);
        assert_null(arena_find(&fake->supervisor->engine, arena));
        fake_free(fake);
}

static void another_users_arena_cannot_be_opened(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID + 1);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);

        send_open(other, arena);
        fake_expect_error(other, GPUQ__V1__CODE__E_DENIED, "permission denied");
        send_open(other, arena + 1);
        fake_expect_error(other, GPUQ__V1__CODE__E_NOT_FOUND, "no arena");
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

static void a_device_arena_is_made_by_the_users_worker(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__DEVICE, 1 << 20);

        assert_int_equal(fake->workers[0].uid, FAKE_UID);
        assert_int_equal(client->fd, -1);
        assert_int_equal(fake->supervisor->engine.devices[0].arena_bytes, 1 << 20);
        fake_client_close(client);
        assert_null(arena_find(&fake->supervisor->engine, arena));
        assert_int_equal(fake->workers[0].n_dropped, 1);
        assert_int_equal(fake->supervisor->engine.devices[0].arena_bytes, 0);
        fake_free(fake);
}

static void with_a_fence_a_person_has_one_range_of_addresses(void **state) {
        Fake *fake = fake_new(1, (char *[]){"isolation=shared", "fence=yes", NULL});
        FakeClient *client = fake_client(fake, FAKE_UID);
        Regions *regions = &fake->supervisor->engine.arenas.regions;
        uint64_t last = 0;

        for (uint32_t uid = 1; uid <= FIXED_REGIONS; ++uid)
                last = regions_take(regions, 4096, uid);
        send_create(client, GPUQ__V1__PLACE__DEVICE, 1 << 20);
        fake_expect_error(client, GPUQ__V1__CODE__E_MEMORY, "at most 68 users have device memory");
        regions_give(regions, last, 4096);
        fake_arena(client, GPUQ__V1__PLACE__DEVICE, 1 << 20);
        send_create(client, GPUQ__V1__PLACE__DEVICE, FIXED_REGION_BYTES);
        fake_expect_error(client, GPUQ__V1__CODE__E_MEMORY, "has at most 1024 GiB of addresses");
        fake_client_close(client);
        for (unsigned i = 0; i + 1 < FIXED_REGIONS; ++i)
                regions_give(regions, FIXED_RANGE_BEGIN + i * FIXED_REGION_BYTES, 4096);
        fake_free(fake);
}

static void a_device_arena_may_be_a_character_device(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);

        fake->arena_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        fake_arena(client, GPUQ__V1__PLACE__DEVICE, 1 << 20);
        assert_false(fake->workers[0].is_killed);
        close(fake->arena_fd);
        fake_client_close(client);
        fake_free(fake);
}

/* Whatever the client is told then, nothing counts that is not there. */
static void a_worker_that_passes_something_else_for_device_memory_is_killed(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        fake->arena_fd = pair[0];
        send_create(client, GPUQ__V1__PLACE__DEVICE, 1 << 20);
        assert_true(fake->workers[0].is_killed);
        fake->arena_fd = 0;
        close(pair[0]);
        close(pair[1]);
        assert_non_null(fake_receive(client));
        assert_int_equal(fake->supervisor->engine.devices[0].arena_bytes,
                         client->reply->body_case == GPUQ__V1__REPLY__BODY_ARENA ? 1 << 20 : 0);
        fake_client_close(client);
        fake_free(fake);
}

static bool has_devices(void *userdata) {
        return ((Fake *)userdata)->supervisor->engine.n_devices > 0;
}

static void load_builtin(FakeClient *client) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;

        load.format = GPUQ__V1__FORMAT__BUILTIN;
        request.body_case = GPUQ__V1__REQUEST__BODY_MODULE_LOAD;
        request.module_load = &load;
        fake_send(client, &request);
}

static void without_a_device_work_fails_at_once(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *client = fake_client_impatient(fake, FAKE_UID);

        load_builtin(client);
        fake_expect_error(client, GPUQ__V1__CODE__E_NO_DEVICE, "no usable device: no fake device");
        send_create(client, GPUQ__V1__PLACE__DEVICE, 4096);
        fake_expect_error(client, GPUQ__V1__CODE__E_NO_DEVICE, "no usable device: no fake device");
        fake_expect_end(client, fake_submit(client, (FakeJob){}), GPUQ__V1__STATE__FAILED,
                        GPUQ__V1__CODE__E_NO_DEVICE, "no usable device: no fake device");
        fake_client_close(client);
        fake_free(fake);
}

static void a_module_waits_for_devices_to_appear(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);

        load_builtin(client);
        fake->n_devices = 1;
        fake_wait(fake, has_devices, fake);
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_MODULE);
        fake_client_close(client);
        fake_free(fake);
}

static void device_memory_waits_for_devices_to_appear(void **state) {
        Fake *fake = fake_new(0, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID + 1);

        send_create(client, GPUQ__V1__PLACE__DEVICE, 4096);
        send_create(other, GPUQ__V1__PLACE__DEVICE, 4096);
        fake_client_close(other); /* what it asked for goes with it */
        assert_int_equal(HASH_CNT(hh, fake->supervisor->engine.arenas.by_id), 1);
        fake->n_devices = 1;
        fake_wait(fake, has_devices, fake);
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_ARENA);
        assert_true(TAILQ_EMPTY(&fake->supervisor->engine.unplaced.arenas));
        fake_client_close(client);
        fake_free(fake);
}

/* Nobody knows yet that there is no device, so nobody is told so. */
static void device_memory_waits_for_the_first_look(void **state) {
        for (unsigned n_devices = 0; n_devices < 2; ++n_devices) {
                Fake *fake = fake_new(1, NULL);
                FakeClient *client;

                fake_stop(fake);
                fake->hold_probe = true;
                fake_start(fake, NULL);
                fake_begin(fake);
                client = fake_client_impatient(fake, FAKE_UID);
                send_create(client, GPUQ__V1__PLACE__DEVICE, 4096);
                assert_false(TAILQ_EMPTY(&fake->supervisor->engine.unplaced.arenas));
                fake->n_devices = n_devices;
                fake_release_probe(fake);
                if (n_devices)
                        assert_int_equal(fake_receive(client)->body_case,
                                         GPUQ__V1__REPLY__BODY_ARENA);
                else
                        fake_expect_error(client, GPUQ__V1__CODE__E_NO_DEVICE, "no fake device");
                assert_true(TAILQ_EMPTY(&fake->supervisor->engine.unplaced.arenas));
                fake_client_close(client);
                fake_free(fake);
        }
}

static void an_image_must_be_sealed_before_it_is_a_module(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t image = fake_arena(client, GPUQ__V1__PLACE__IMAGE, 100);
        int fd = dup(client->fd);

        send_load(client, image, 100);
        fake_expect_error(client, GPUQ__V1__CODE__E_INVALID, "F_SEAL_WRITE");
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
        close(fd);
        send_load(client, image, 101);
        fake_expect_error(client, GPUQ__V1__CODE__E_INVALID,
                          "101 bytes and its headers have 0, but its arena has 100");
        send_load_with(client, image, 60, 41, NULL);
        fake_expect_error(client, GPUQ__V1__CODE__E_INVALID,
                          "60 bytes and its headers have 41, but its arena has 100");
        send_load_with(client, image, 60, UINT64_MAX, NULL);
        fake_expect_error(client, GPUQ__V1__CODE__E_INVALID, "its arena has 100");
        send_load_with(client, image, 60, 40, "a\nb");
        fake_expect_error(client, GPUQ__V1__CODE__E_INVALID, "1 to 1024 printable bytes");
        send_load_with(client, image, 60, 40, "");
        fake_expect_error(client, GPUQ__V1__CODE__E_INVALID, "1 to 1024 printable bytes");
        fake->hold_modules = true;
        send_load(client, image, 100);
        fake_turn(fake);
        assert_int_equal(fake->n_held, 1);
        fake_release_modules(fake, &fake->workers[0], GPUQ__V1__CODE__E_COMPILE);
        fake_expect_error(client, GPUQ__V1__CODE__E_COMPILE, "line 1: nonsense");
        assert_null(arena_find(&fake->supervisor->engine, image));
        fake_client_close(client);
        fake_free(fake);
}

static void send_cancel_all(FakeClient *client) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;

        cancel.all = true;
        request.body_case = GPUQ__V1__REQUEST__BODY_CANCEL;
        request.cancel = &cancel;
        fake_send(client, &request);
}

static void a_client_that_does_not_read_is_dropped(void **state) {
        char *settings[] = {"jobs=400000", "queued_bytes=unlimited", NULL};
        Fake *fake = fake_new(0, settings);
        FakeClient *client = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID);

        fake_submit_many(client, (FakeJob){}, 400000);
        send_cancel_all(other);
        assert_int_equal(fake_receive(other)->body_case, GPUQ__V1__REPLY__BODY_CANCELLED);
        assert_int_equal(HASH_COUNT(fake->supervisor->clients.sessions), 1);
        send_status_get(other);
        assert_int_equal(fake_receive(other)->body_case, GPUQ__V1__REPLY__BODY_STATUS);
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

static bool has_completion(const Gpuq__V1__Reply *reply, uint64_t id) {
        if (reply->body_case != GPUQ__V1__REPLY__BODY_COMPLETIONS)
                return false;
        for (size_t i = 0; i < reply->completions->n_completions; ++i)
                if (reply->completions->completions[i]->id == id)
                        return true;
        return false;
}

static void requests_wait_until_earlier_answers_are_read(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        Session *session = fake->supervisor->clients.sessions;
        uint64_t first = fake_submit_many(client, (FakeJob){.arena = 999}, N_UNREAD_JOBS);
        bool has_status = false, has_last = false;

        send_status_get(client);
        assert_true(wire_pending(session->wire) > SESSION_UNREAD_MAX);
        while (!has_status || !has_last) {
                const Gpuq__V1__Reply *reply = fake_receive(client);

                has_status |= reply->body_case == GPUQ__V1__REPLY__BODY_STATUS;
                has_last |= has_completion(reply, first + N_UNREAD_JOBS - 1);
        }
        fake_client_close(client);
        fake_free(fake);
}

/* Jobs for a device that may yet appear wait for it. */
static void a_device_number_that_no_device_can_have_is_refused_before_there_are_any(void **state) {
        static const uint32_t wrong[] = {LIMIT_JOB_DEVICE + 1, INT32_MAX, 1u << 31, (1u << 31) + 1,
                                         UINT32_MAX};
        Fake *fake = fake_new(0, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);

        for (size_t i = 0; i < ARRAY_SIZE(wrong); ++i)
                fake_expect_end(client, fake_submit(client, (FakeJob){.device = wrong[i]}),
                                GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_NOT_FOUND,
                                "the highest device number is 4095");
        fake_submit(client, (FakeJob){.device = LIMIT_JOB_DEVICE});
        assert_int_equal(fake->supervisor->engine.users->used[USER_JOBS], 1);
        fake_client_close(client);
        fake_free(fake);
}

/* The same job again and again, in one message; with the next tags if it is numbered. */
static void send_jobs(FakeClient *client, const Gpuq__V1__Job *job, size_t n, bool is_numbered) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Submit submit = GPUQ__V1__SUBMIT__INIT;
        Gpuq__V1__Job *jobs = calloc(n, sizeof(*jobs)), **list = calloc(n, sizeof(*list));

        for (size_t i = 0; i < n; ++i) {
                list[i] = &jobs[i];
                jobs[i] = *job;
                if (is_numbered)
                        jobs[i].tag = ++client->tag;
        }
        submit.jobs = list;
        submit.n_jobs = n;
        request.body_case = GPUQ__V1__REQUEST__BODY_SUBMIT;
        request.submit = &submit;
        fake_send(client, &request);
        free(list);
        free(jobs);
}

/* None of them is looked at. */
static void too_many_jobs_in_one_message_end_the_connection(void **state) {
        Gpuq__V1__Job job = GPUQ__V1__JOB__INIT;
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);

        send_jobs(client, &job, WIRE_JOBS_MAX + 1, false);
        fake_expect_error(client, GPUQ__V1__CODE__E_PROTOCOL, "too many jobs in one message");
        assert_null(fake_receive(client));
        fake_client_close(client);
        fake_free(fake);
}

static void several_jobs_of_too_many_bytes_end_the_connection(void **state) {
        static uint8_t operations[WIRE_JOBS_BYTES / 2];
        Gpuq__V1__Job job = GPUQ__V1__JOB__INIT;
        Gpuq__V1__Buffer buffer = GPUQ__V1__BUFFER__INIT, *buffers = &buffer;
        Fake *fake = fake_new(1, NULL);
        FakeClient *alone = fake_client(fake, FAKE_UID), *client = fake_client(fake, FAKE_UID);

        buffer.arena = 999; /* a failure of its own */
        job.buffers = &buffers;
        job.n_buffers = 1;
        job.operations.data = operations;
        job.operations.len = sizeof(operations);
        send_jobs(client, &job, 2, true);
        fake_expect_error(client, GPUQ__V1__CODE__E_PROTOCOL, "too many jobs in one message");
        send_jobs(alone, &job, 1, true);
        fake_completion(alone, (uint64_t)alone->session << 32 | 1);
        fake_client_close(alone);
        fake_client_close(client);
        fake_free(fake);
}

static const Session *served_session(const FakeClient *client) {
        Session *session;

        HASH_FIND(hh, client->fake->supervisor->clients.sessions, &client->session,
                  sizeof(client->session), session);
        return session;
}

#define N_WIDE_JOBS 60u /* so many of them take several turns */

/* Jobs of 200 buffers that are not there, unseen. */
static void send_wide_jobs(FakeClient *client, size_t n) {
        Gpuq__V1__Job job = GPUQ__V1__JOB__INIT;
        Gpuq__V1__Buffer buffer = GPUQ__V1__BUFFER__INIT, *buffers[200];

        buffer.arena = 999;
        for (size_t i = 0; i < ARRAY_SIZE(buffers); ++i)
                buffers[i] = &buffer;
        job.buffers = buffers;
        job.n_buffers = ARRAY_SIZE(buffers);
        client->is_unseen = true;
        send_jobs(client, &job, n, true);
}

/* So many buffers that they take several turns, though two other sessions of the user always have
 * something to say: meanwhile others are served. What is said behind it is served behind it. */
static void a_message_is_served_in_parts(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *other = fake_client(fake, FAKE_UID + 1), *client = fake_client(fake, FAKE_UID);
        FakeClient *busy[] = {fake_client(fake, FAKE_UID), fake_client(fake, FAKE_UID)};
        const Session *session = served_session(client);
        size_t n_served = 0;

        send_wide_jobs(client, N_WIDE_JOBS);
        send_wide_jobs(client, 1);
        while (!session->unfinished.n_served)
                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
        fake_submit_unseen(other, (FakeJob){.arena = 999});
        while (!served_session(other)->last_tag)
                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
        assert_in_range(session->unfinished.n_served, 1, N_WIDE_JOBS - 1);
        while (session->unfinished.n_served) {
                for (size_t i = 0; i < ARRAY_SIZE(busy); ++i)
                        fake_submit_unseen(busy[i], (FakeJob){.arena = 999});
                assert_true(session->unfinished.n_served >= n_served);
                assert_int_equal(session->last_tag, session->unfinished.n_served);
                n_served = session->unfinished.n_served;
                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
        }
        while (session->last_tag < N_WIDE_JOBS + 1)
                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
        for (uint32_t tag = 1; tag <= N_WIDE_JOBS + 1; ++tag)
                fake_completion(client, (uint64_t)client->session << 32 | tag);
        fake_client_close(other);
        fake_client_close(busy[0]);
        fake_client_close(busy[1]);
        fake_client_close(client);
        fake_free(fake);
}

/* Told by the other process before gpuqd has served all of its message. */
static void a_job_may_follow_one_of_a_message_that_is_not_served_yet(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID), *follower = fake_client(fake, FAKE_UID);
        const Session *session = served_session(client);
        uint64_t last = (uint64_t)client->session << 32 | N_WIDE_JOBS;

        send_wide_jobs(client, N_WIDE_JOBS);
        while (!session->unfinished.n_served)
                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
        fake_expect_end(follower, fake_submit_unseen(follower, (FakeJob){.after = last}),
                        GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_DEPENDENCY, "no arena 999");
        fake_client_close(follower);
        fake_client_close(client);
        fake_free(fake);
}

static void a_session_may_end_within_a_message(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        const Session *session = served_session(client);

        send_wide_jobs(client, N_WIDE_JOBS);
        while (!session->unfinished.n_served)
                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
        fake_client_close(client);
        fake_turn(fake);
        assert_int_equal(HASH_COUNT(fake->supervisor->clients.sessions), 0);
        assert_false(serving_has_waiting(&fake->supervisor->clients.serving));
        fake_free(fake);
}

/* Of jobs that were never prepared, which fail at once. Return: one behind what was packed. */
static uint8_t *pack_fires(FakeClient *client, size_t n, uint8_t *p) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Fires message = GPUQ__V1__FIRES__INIT;
        Gpuq__V1__Fire *fires = calloc(n, sizeof(*fires)), **list = calloc(n, sizeof(*list));
        uint32_t n_bytes;

        for (size_t i = 0; i < n; ++i) {
                list[i] = &fires[i];
                gpuq__v1__fire__init(&fires[i]);
                fires[i].prepared = 1;
                fires[i].tag = ++client->tag;
        }
        message.fires = list;
        message.n_fires = n;
        request.body_case = GPUQ__V1__REQUEST__BODY_FIRES;
        request.fires = &message;
        n_bytes = (uint32_t)gpuq__v1__request__pack(&request, p + WIRE_HEADER_BYTES);
        memset(p, 0, WIRE_HEADER_BYTES);
        memcpy(p, &n_bytes, sizeof(n_bytes));
        free(list);
        free(fires);
        return p + WIRE_HEADER_BYTES + n_bytes;
}

/* A flood of them pays for each. */
static void fires_of_nothing_cost_steps(void **state) {
        static uint8_t data[256 << 10];
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t before = fake->supervisor->clients.serving.n_steps;

        send_bytes(client, data, (size_t)(pack_fires(client, WIRE_JOBS_MAX, data) - data));
        fake_completion(client, (uint64_t)client->session << 32 | client->tag);
        assert_true(fake->supervisor->clients.serving.n_steps - before >= WIRE_JOBS_MAX);
        fake_client_close(client);
        fake_free(fake);
}

static void too_many_fires_in_one_message_end_the_connection(void **state) {
        static uint8_t data[256 << 10];
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);

        send_bytes(client, data, (size_t)(pack_fires(client, WIRE_JOBS_MAX + 1, data) - data));
        fake_expect_error(client, GPUQ__V1__CODE__E_PROTOCOL, "too many jobs in one message");
        assert_null(fake_receive(client));
        fake_client_close(client);
        fake_free(fake);
}

/* Of @kernel, and @length bytes. Return: the job that is fired from it, unfinished. */
static Job *prepare_and_fire(FakeClient *client, uint64_t arena, uint64_t length,
                             const char *kernel) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Prepare prepare = GPUQ__V1__PREPARE__INIT;
        Gpuq__V1__Job job = GPUQ__V1__JOB__INIT;
        Gpuq__V1__Buffer buffer = GPUQ__V1__BUFFER__INIT, *buffers = &buffer;
        Gpuq__V1__Kernel one = GPUQ__V1__KERNEL__INIT, *kernels = &one;
        Gpuq__V1__Fires fires = GPUQ__V1__FIRES__INIT;
        Gpuq__V1__Fire fire = GPUQ__V1__FIRE__INIT, *list = &fire;

        buffer.arena = arena;
        one.module = client->module;
        one.name = (char *)kernel;
        job.label = "a label";
        job.buffers = &buffers;
        job.kernels = &kernels;
        job.n_buffers = job.n_kernels = 1;
        prepare.job = &job;
        request.body_case = GPUQ__V1__REQUEST__BODY_PREPARE;
        request.prepare = &prepare;
        fake_send(client, &request);

        fire.prepared = fake_receive(client)->prepared->prepared;
        fire.tag = ++client->tag;
        fire.slices = (uint64_t[]){0, arena, 0, length};
        fire.n_slices = 4;
        fires.fires = &list;
        fires.n_fires = 1;
        request.body_case = GPUQ__V1__REQUEST__BODY_FIRES;
        request.fires = &fires;
        fake_send(client, &request);
        fake_turn(client->fake);
        return job_find(&client->fake->supervisor->engine,
                        (uint64_t)client->session << 32 | fire.tag);
}

/* Though its texts were looked at when it was prepared, and the length is that of the slice. */
static void a_fired_job_is_as_one_that_was_sent_whole(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        const Job *sent, *fired;
        uint64_t arena, id;

        fake_module(client);
        arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);
        id = fake_submit(client, (FakeJob){.arena = arena, .length = 1024, .label = "a label"});
        fake_turn(fake);
        sent = job_find(&fake->supervisor->engine, id);
        fired = prepare_and_fire(client, arena, 1024, "add");
        assert_string_equal(fired->label, sent->label);
        assert_string_equal(fired->work.kernels[0].name, sent->work.kernels[0].name);
        assert_ptr_equal(fired->work.kernels[0].module, sent->work.kernels[0].module);
        assert_int_equal(fired->cost.class, sent->cost.class);
        assert_int_not_equal(prepare_and_fire(client, arena, 1024, "scale")->cost.class,
                             sent->cost.class);
        assert_int_not_equal(prepare_and_fire(client, arena, 64, "add")->cost.class,
                             sent->cost.class);
        fake_client_close(client);
        fake_free(fake);
}

/* Many frames are read at once, behind one so long that there is room for them: the first
 * is looked at, and the others once its ends were told. */
static void requests_wait_until_the_ends_before_them_were_told(void **state) {
        enum { LONG = 131072, N_FRAMES = 3 * SESSION_ENDED_MAX / WIRE_JOBS_MAX };
        /* Request { unprepare: {} }, and all the rest is a field 1000, which nobody knows. */
        static const uint8_t head[] = {0x72, 0, 0xc2, 0x3e, 0xf9, 0xff, 7};
        static uint8_t data[LONG + (256 << 10)];
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        Session *session = fake->supervisor->clients.sessions;
        uint8_t *p = data;

        memcpy(p, &(uint32_t){LONG}, sizeof(uint32_t));
        p += WIRE_HEADER_BYTES;
        memcpy(p, head, sizeof(head));
        p += LONG;
        send_bytes(client, data, (size_t)(p - data) - 1);
        for (unsigned i = 0; i < N_FRAMES; ++i)
                p = pack_fires(client, WIRE_JOBS_MAX, p);
        assert_int_equal(send(wire_fd(client->wire), data + WIRE_HEADER_BYTES + LONG - 1,
                              (size_t)(p - data) - WIRE_HEADER_BYTES - LONG + 1, MSG_NOSIGNAL),
                         (size_t)(p - data) - WIRE_HEADER_BYTES - LONG + 1);
        for (uint32_t before = 0; session->last_tag != client->tag || session->ends.n;) {
                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
                assert_in_range(session->ends.n, 0, SESSION_ENDED_MAX + WIRE_JOBS_MAX);
                assert_true(session->last_tag - before <= SESSION_ENDED_MAX + WIRE_JOBS_MAX);
                before = session->last_tag;
        }

        fake_completion(client, (uint64_t)session->submitter.id << 32 | client->tag);
        fake_client_close(client);
        fake_free(fake);
}

/* A frame of 4 MiB, all but its last byte, as far as it is taken. */
static void send_most_of_a_frame(FakeClient *client) {
        const size_t n_data = WIRE_HEADER_BYTES + WIRE_FRAME_MAX - 1;
        uint8_t *data = calloc(1, n_data);
        ssize_t n = 0;

        data[2] = WIRE_FRAME_MAX >> 16;
        for (size_t sent = 0; sent < n_data && (n >= 0 || errno == EAGAIN);) {
                n = send(wire_fd(client->wire), data + sent, n_data - sent, MSG_NOSIGNAL);
                sent += n > 0 ? (size_t)n : 0;
                fake_turn(client->fake);
        }
        free(data);
}

static void half_frames_count_for_their_user(void **state) {
        enum { N_FIT = USER_BUFFERS_MAX / WIRE_FRAME_MAX - 1 };
        Fake *fake = fake_new(1, NULL);
        FakeClient *clients[N_FIT + 1], *idle = fake_client(fake, FAKE_UID);
        FakeClient *other = fake_client(fake, FAKE_UID + 1);
        User *user = fake->supervisor->engine.users;

        for (size_t i = 0; i <= N_FIT; ++i) {
                clients[i] = fake_client(fake, FAKE_UID);
                send_most_of_a_frame(clients[i]);
        }
        assert_in_range(user->used[USER_BUFFER_BYTES], (uint64_t)N_FIT * WIRE_FRAME_MAX,
                        USER_BUFFERS_MAX - WIRE_FRAME_MAX / 2);
        fake_expect_error(clients[N_FIT], GPUQ__V1__CODE__E_QUOTA,
                          "unfinished and unread messages");
        assert_null(fake_receive(clients[N_FIT]));

        /* The others go on, with whole frames too. */
        send_status_get(idle);
        assert_int_equal(fake_receive(idle)->body_case, GPUQ__V1__REPLY__BODY_STATUS);
        send_most_of_a_frame(other);
        send_bytes(other, "", 1);
        fake_expect_error(other, GPUQ__V1__CODE__E_PROTOCOL, "not protobuf");
        for (size_t i = 0; i <= N_FIT; ++i)
                fake_client_close(clients[i]);
        assert_int_equal(user->used[USER_BUFFER_BYTES], 0);
        fake_client_close(idle);
        fake_client_close(other);
        fake_free(fake);
}

static void replies_that_wait_count_for_their_user(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t first = fake_submit_many(client, (FakeJob){.arena = 999}, N_UNREAD_JOBS);
        User *user = fake->supervisor->engine.users;

        assert_true(user->used[USER_BUFFER_BYTES] > SESSION_UNREAD_MAX);
        fake_completion(client, first + N_UNREAD_JOBS - 1);
        fake_turn(fake);
        assert_int_equal(user->used[USER_BUFFER_BYTES], 0);
        fake_client_close(client);
        fake_free(fake);
}

static void send_module_with_option(FakeClient *client, char *option) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;

        load.format = GPUQ__V1__FORMAT__BUILTIN;
        load.options = &option;
        load.n_options = 1;
        request.body_case = GPUQ__V1__REQUEST__BODY_MODULE_LOAD;
        request.module_load = &load;
        fake_send(client, &request);
}

/* Arenas opened by many sessions, and modules' options, took as much memory as one liked. */
static void records_without_a_limit_of_their_own_are_bounded(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID), *second = fake_client(fake, FAKE_UID);
        FakeClient *other = fake_client(fake, FAKE_UID + 1);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);
        User *user = fake->supervisor->engine.users;
        uint64_t before = user->used[USER_RECORD_BYTES];
        char option[4096] = "-D";
        UserCharge rest = {};

        assert_true(before > 0);
        send_open(second, arena);
        fake_receive(second);
        assert_int_equal(user->used[USER_RECORD_BYTES], 2 * before);

        assert_int_equal(user_charge(user, &rest, USER_RECORD_BYTES,
                                     USER_RECORDS_MAX - 2 * before - before / 2),
                         0);
        send_create(client, GPUQ__V1__PLACE__HOST, 4096);
        fake_expect_error(client, GPUQ__V1__CODE__E_QUOTA, "this limit is fixed");
        memset(option + 2, 'A', sizeof(option) - 3);
        send_module_with_option(client, option);
        fake_expect_error(client, GPUQ__V1__CODE__E_QUOTA, "this limit is fixed");
        fake_arena(other, GPUQ__V1__PLACE__HOST, 4096);

        user_uncharge(&rest);
        fake_client_close(client);
        fake_client_close(second);
        fake_client_close(other);
        fake_turn(fake);
        assert_int_equal(user->used[USER_RECORD_BYTES], 0);
        fake_free(fake);
}

static void end_with_text(FakeWorker *worker, uint64_t id, const char *text) {
        WorkerEnd end = {.id = id, .ran_us = 5};

        fake_say(
                worker,
                (WorkerMessage){
                        {.kind = FROM_WORKER_ENDS, .code = GPUQ__V1__CODE__E_INVALID, .n_items = 1},
                        .text = text,
                        .items = &end,
                },
                -1);
}

/* A job's texts were kept until its client read them, whatever they took. */
static void texts_beyond_the_limit_are_cut(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        User *user = fake->supervisor->engine.users;
        UserCharge rest = {};
        char text[1001] = "";
        uint64_t ids[2];
        FakeWorker *worker;

        fake_module(client);
        for (unsigned i = 0; i < 2; ++i)
                ids[i] = fake_submit(client, (FakeJob){0});
        worker = fake_worker(fake, 0, 2);
        memset(text, 'x', sizeof(text) - 1);

        end_with_text(worker, ids[0], text);
        assert_int_equal(strlen(fake_completion(client, ids[0])->error->text), 1000);
        assert_int_equal(user_charge(user, &rest, USER_RECORD_BYTES,
                                     USER_RECORDS_MAX - user->used[USER_RECORD_BYTES] - 999),
                         0);
        end_with_text(worker, ids[1], text);
        assert_int_equal(strlen(fake_completion(client, ids[1])->error->text), LEDGER_TEXT_MAX);

        user_uncharge(&rest);
        fake_client_close(client);
        fake_free(fake);
}

static void user_who_left_is_freed_with_slots_and_records(void **state) {
        Fake *fake = fake_new(2, NULL);
        Engine *engine = &fake->supervisor->engine;
        FakeClient *client = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID + 1);
        uint64_t id, arena, now_ns = uv_hrtime() + RETIRE_NS;
        FakeWorker *worker;

        fake_module(client);
        arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);
        id = fake_submit(client, (FakeJob){.arena = arena, .length = 64});
        worker = fake_worker(fake, 0, 1);
        fake_end(worker, id, 0);
        fake_expect_end(client, id, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_client_close(client);
        fake_turn(fake);

        now_ns += 1000 * engine->config->usage_half_life_s * 1000000000ull;
        retire_users(engine, now_ns);
        retire_users(engine, now_ns + RETIRE_NS);
        assert_int_equal(HASH_COUNT(engine->users), 2); /* its worker lives */

        fake_die(fake, worker);
        now_ns += 2 * RETIRE_NS;
        retire_users(engine, now_ns);
        retire_users(engine, now_ns + RETIRE_NS);
        assert_int_equal(HASH_COUNT(engine->users), 1);
        assert_null(engine->slots);
        fake_client_close(other);
        fake_free(fake);
}

/* Found by fuzz-channel. */
static void what_a_client_asked_for_and_left_starts_no_worker(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ArenaCreate create = GPUQ__V1__ARENA_CREATE__INIT;

        fake->start_error = "no context";
        create.size = 4096;
        create.place = GPUQ__V1__PLACE__DEVICE;
        request.body_case = GPUQ__V1__REQUEST__BODY_ARENA_CREATE;
        request.arena_create = &create;
        fake_send(client, &request);
        assert_non_null(fake->supervisor->engine.arenas.by_id); /* until another worker is tried */

        fake_client_close(client);
        assert_null(fake->supervisor->engine.arenas.by_id);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_message_before_the_handshake_ends_the_connection),
                cmocka_unit_test(a_version_that_is_not_common_names_both_ranges),
                cmocka_unit_test(a_second_handshake_ends_the_connection),
                cmocka_unit_test(bytes_that_are_no_frame_end_the_connection),
                cmocka_unit_test(a_frame_that_is_not_protobuf_ends_the_connection),
                cmocka_unit_test(a_frame_that_swells_is_refused),
                cmocka_unit_test(of_what_is_kept_unknown_fields_are_dropped),
                cmocka_unit_test(last_words_are_sent_however_long_the_turn_takes),
                cmocka_unit_test(sessions_over_the_limit_are_told_which),
                cmocka_unit_test(records_without_a_limit_of_their_own_are_bounded),
                cmocka_unit_test(texts_beyond_the_limit_are_cut),
                cmocka_unit_test(user_who_left_is_freed_with_slots_and_records),
                cmocka_unit_test(a_host_arena_comes_sealed_against_resizing),
                cmocka_unit_test(an_arena_of_nothing_or_over_the_limit_is_refused),
                cmocka_unit_test(an_arena_lives_while_anybody_has_it_open),
                cmocka_unit_test(another_users_arena_cannot_be_opened),
                cmocka_unit_test(a_device_arena_is_made_by_the_users_worker),
                cmocka_unit_test(with_a_fence_a_person_has_one_range_of_addresses),
                cmocka_unit_test(a_device_arena_may_be_a_character_device),
                cmocka_unit_test(a_worker_that_passes_something_else_for_device_memory_is_killed),
                cmocka_unit_test(device_memory_waits_for_devices_to_appear),
                cmocka_unit_test(device_memory_waits_for_the_first_look),
                cmocka_unit_test(without_a_device_work_fails_at_once),
                cmocka_unit_test(a_module_waits_for_devices_to_appear),
                cmocka_unit_test(an_image_must_be_sealed_before_it_is_a_module),
                cmocka_unit_test(a_client_that_does_not_read_is_dropped),
                cmocka_unit_test(requests_wait_until_earlier_answers_are_read),
                cmocka_unit_test(
                        a_device_number_that_no_device_can_have_is_refused_before_there_are_any),
                cmocka_unit_test(too_many_jobs_in_one_message_end_the_connection),
                cmocka_unit_test(several_jobs_of_too_many_bytes_end_the_connection),
                cmocka_unit_test(a_message_is_served_in_parts),
                cmocka_unit_test(a_job_may_follow_one_of_a_message_that_is_not_served_yet),
                cmocka_unit_test(a_session_may_end_within_a_message),
                cmocka_unit_test(fires_of_nothing_cost_steps),
                cmocka_unit_test(a_fired_job_is_as_one_that_was_sent_whole),
                cmocka_unit_test(too_many_fires_in_one_message_end_the_connection),
                cmocka_unit_test(requests_wait_until_the_ends_before_them_were_told),
                cmocka_unit_test(half_frames_count_for_their_user),
                cmocka_unit_test(replies_that_wait_count_for_their_user),
                cmocka_unit_test(what_a_client_asked_for_and_left_starts_no_worker),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
