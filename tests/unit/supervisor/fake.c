/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keeper/protocol.h"
#include "util/config-load.h"
#include "util/config-seal.h"
#include "util/log.h"

/* ---- keeper ---------------------------------------------------------------- */

static void keeper_say(Fake *fake, KeeperMessage message) {
        assert_int_equal(send(fake->keeper, &message, sizeof(message), 0), sizeof(message));
}

void fake_say(FakeWorker *worker, WorkerMessage message, int fd) {
        int r = protocol_send(worker->channel, &message, fd);

        assert_true(r == 0 || worker->is_lax);
}

static void fake_exit(Fake *fake, FakeWorker *worker, int status) {
        worker->is_ended = true;
        worker->channel = channel_free(worker->channel);
        keeper_say(fake,
                   (KeeperMessage){.kind = KEEPER_EXITED, .id = worker->id, .status = status});
}

static void fake_probe(Fake *fake, FakeWorker *worker) {
        WorkerMessage probed = {{.kind = FROM_WORKER_PROBED, .n_items = fake->n_devices}};
        WorkerDevice devices[8];

        for (size_t i = 0; i < 8; ++i) {
                devices[i] = (WorkerDevice){
                        .name = "fake device", .peers = fake_peers, .near = fake_peers};
                snprintf(devices[i].uuid, sizeof(devices[i].uuid), "GPU-fake-%zu", i);
                snprintf(devices[i].pci, sizeof(devices[i].pci), "0000:%02zx:00.0", 0x10 + i);
        }
        probed.items = devices;
        if (!fake->n_devices) {
                probed.head.code = GPUQ__V1__CODE__E_NO_DEVICE;
                probed.text = "no fake device";
        }
        fake_say(worker, probed, -1);
        fake_exit(fake, worker, 0);
}

static void fake_hold_check(Fake *fake, const FakeWorker *check) {
        assert_null(fake->check);
        fake->check = check->channel;
        fake->check_id = check->id;
}

void fake_release_probe(Fake *fake) {
        FakeWorker probe = {.id = fake->check_id, .channel = fake->check};

        assert_non_null(fake->check);
        fake->check = NULL;
        fake->hold_probe = false;
        fake_probe(fake, &probe);
        fake_turn(fake);
}

static void fake_answer_check(Fake *fake, FakeWorker *check) {
        WorkerMessage probed = {{.kind = FROM_WORKER_PROBED}, .text = fake->check_error};

        if (fake->check_error) {
                probed.head.code = GPUQ__V1__CODE__E_NO_DEVICE;
                probed.head.detail = 1;
        } else if (fake->start_crowded && !fake->check_finds_room) {
                probed.head.code = GPUQ__V1__CODE__E_MEMORY;
                probed.text = "out of fake memory";
        }
        fake_say(check, probed, -1);
        fake_exit(fake, check, 0);
}

static void fake_check(Fake *fake, FakeWorker *check) {
        fake->n_checks++;
        if (!fake->hold_checks || (fake->is_lax && fake->check)) {
                fake_answer_check(fake, check);
                return;
        }
        fake_hold_check(fake, check);
}

void fake_release_check(Fake *fake) {
        FakeWorker check = {.id = fake->check_id, .channel = fake->check};

        assert_non_null(fake->check);
        fake->check = NULL;
        fake->hold_checks = false;
        fake_answer_check(fake, &check);
        fake_turn(fake);
}

void fake_come_up(Fake *fake, FakeWorker *worker) {
        WorkerMessage ready = {{.kind = FROM_WORKER_READY, .number = WORKER_PROTOCOL},
                               .text = fake->start_error};

        if (fake->start_error) {
                ready.head.code = fake->start_crowded ? GPUQ__V1__CODE__E_MEMORY
                                                      : GPUQ__V1__CODE__E_NO_DEVICE;
                ready.head.detail = fake->start_broken;
        }
        fake_say(worker, ready, -1);
        if (fake->start_error)
                fake_exit(fake, worker, 1 << 8);
}

static FakeWorker *keeper_make_room(Fake *fake) {
        if (fake->n_workers < FAKE_WORKERS)
                return &fake->workers[fake->n_workers++];

        assert_true(fake->is_lax);
        for (size_t i = 0; i < FAKE_WORKERS; ++i)
                if (fake->workers[i].is_ended)
                        return &fake->workers[i];
        return NULL;
}

static void keeper_refuse(Fake *fake, uint32_t id, const int *fds) {
        for (size_t i = 0; i < CHANNEL_N_FDS; ++i)
                close(fds[i]);
        keeper_say(fake, (KeeperMessage){
                                 .kind = KEEPER_EXITED,
                                 .id = id,
                                 .status = 127 << 8,
                                 .text = "no room",
                         });
}

static void keeper_spawn(Fake *fake, const KeeperMessage *message, const int *fds) {
        FakeWorker probe = {.id = message->id, .is_lax = fake->is_lax}, *worker = &probe;

        if (!message->probe) {
                worker = keeper_make_room(fake);
                if (!worker) {
                        keeper_refuse(fake, message->id, fds);
                        return;
                }
                *worker = (FakeWorker){
                        .id = message->id,
                        .uid = message->uid,
                        .device = message->device,
                        .is_spare = message->spare,
                        .sms = message->sms,
                        .is_lax = fake->is_lax,
                };
                fake->n_spawned++;
                if (fake->hooks)
                        fake->hooks->spawn(fake, worker, fds);
        }
        assert_int_equal(channel_adopt(fds, &worker->channel), 0);
        keeper_say(fake, (KeeperMessage){.kind = KEEPER_SPAWNED, .id = message->id, .pid = 1000});
        if (message->probe && message->text[0])
                fake_check(fake, worker);
        else if (message->probe && fake->hold_probe)
                fake_hold_check(fake, worker);
        else if (message->probe)
                fake_probe(fake, worker);
        else if (!fake->hold_ready)
                fake_come_up(fake, worker);
}

static FakeWorker *keeper_find(Fake *fake, uint32_t id) {
        for (size_t i = 0; i < fake->n_workers; ++i)
                if (fake->workers[i].id == id)
                        return &fake->workers[i];
        return NULL;
}

static void keeper_hear(Fake *fake, const KeeperMessage *message, int *fds, size_t n_fds) {
        FakeWorker *worker = keeper_find(fake, message->id);

        switch (message->kind) {
                case KEEPER_READY:
                        fake->is_ready = true;
                        break;
                case KEEPER_KEEP:
                        fake->n_kept++;
                        if (fake->hooks && n_fds == 1)
                                fake->hooks->keep(fake, message->text, fds[0]);
                        break;
                case KEEPER_DROP:
                        fake->n_dropped++;
                        if (fake->hooks)
                                fake->hooks->drop(fake, message->text);
                        break;
                case KEEPER_SPAWN:
                        assert_int_equal(n_fds, CHANNEL_N_FDS);
                        keeper_spawn(fake, message, fds);
                        return;
                case KEEPER_ASSIGN:
                        if (!worker || worker->is_ended)
                                break;
                        assert_true(worker->is_spare);
                        worker->is_spare = false;
                        worker->uid = message->uid;
                        if (!fake->hold_ready)
                                fake_come_up(fake, worker);
                        break;
                case KEEPER_KILL:
                        if (!worker || worker->is_ended)
                                break;
                        worker->is_killed = true;
                        fake_exit(fake, worker, 9);
                        break;
        }
        for (size_t i = 0; i < n_fds; ++i)
                close(fds[i]);
}

static bool keeper_hear_one(Fake *fake) {
        union {
                char bytes[CMSG_SPACE(4 * sizeof(int))];
                struct cmsghdr align;
        } control;
        KeeperMessage message;
        struct iovec iov = {.iov_base = &message, .iov_len = sizeof(message)};
        struct msghdr header = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = control.bytes,
                .msg_controllen = sizeof(control.bytes),
        };
        struct cmsghdr *cmsg;
        size_t n_fds = 0;
        int fds[4];

        if (recvmsg(fake->keeper, &header, MSG_DONTWAIT) != sizeof(message))
                return false;
        cmsg = CMSG_FIRSTHDR(&header);
        if (cmsg) {
                n_fds = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(fds, CMSG_DATA(cmsg), n_fds * sizeof(int));
        }
        keeper_hear(fake, &message, fds, n_fds);
        return true;
}

static bool keeper_turn(Fake *fake) {
        return !fake->is_deaf && keeper_hear_one(fake);
}

size_t fake_kept_in_time(Fake *fake) {
        fake->n_kept = 0;
        while (keeper_hear_one(fake))
                ;
        return fake->n_kept;
}

/* ---- workers --------------------------------------------------------------- */

static void fake_answer_module(Fake *fake, FakeWorker *worker, uint64_t id, int code) {
        WorkerMessage added = {{.kind = FROM_WORKER_MODULE_ADDED, .id = id}};
        Gpuq__V1__ModuleReady ready = GPUQ__V1__MODULE_READY__INIT;
        uint8_t packed[64];

        if (code) {
                added.head.code = (uint32_t)code;
                added.text = "line 1: nonsense";
        } else {
                ready.has_variables = fake->has_variables;
                added.head.n_items = (uint32_t)gpuq__v1__module_ready__pack(&ready, packed);
                added.items = packed;
        }
        fake_say(worker, added, -1);
}

void fake_release_modules(Fake *fake, FakeWorker *worker, int code) {
        fake->hold_modules = false;
        for (size_t i = 0; i < fake->n_held; ++i)
                fake_answer_module(fake, worker, fake->held[i], code);
        fake->n_held = 0;
        fake_turn(fake);
}

/* It is where the supervisor wished. */
static void fake_answer_arena(Fake *fake, FakeWorker *worker, const WorkerMessage *message) {
        WorkerMessage made = {{.kind = FROM_WORKER_ARENA_MADE, .id = message->head.id}};
        int fd = fake->arena_fd ? fcntl(fake->arena_fd, F_DUPFD_CLOEXEC, 3)
                                : memfd_create("fake-device-memory", MFD_CLOEXEC);

        if (message->head.n_items == sizeof(made.head.number))
                memcpy(&made.head.number, message->items, sizeof(made.head.number));
        fake_say(worker, made, fd);
        close(fd);
}

static void worker_take_jobs(FakeWorker *worker, const WorkerMessage *list) {
        const uint8_t *data = list->items;
        size_t n_left = list->head.n_items;
        WorkerJobParts parts;

        worker->n_lists++;
        while (n_left) {
                const WorkerJob *job = protocol_job(data, n_left, &parts);

                if (worker->is_lax && !job) /* its memory was spoilt */
                        return;
                if (worker->is_lax)
                        worker->n_jobs %= FAKE_JOBS;
                assert_non_null(job);
                assert_true(worker->n_jobs < FAKE_JOBS);
                worker->after[worker->n_jobs] = job->n_after ? parts.after[0] : 0;
                worker->jobs[worker->n_jobs++] = job->id;
                worker->n_alone += job->alone;
                data += job->n_bytes;
                n_left -= job->n_bytes;
        }
}

static void worker_hear(Fake *fake, FakeWorker *worker, const WorkerMessage *message) {
        uint64_t id = message->head.id;
        int fd = -1;

        switch (message->head.kind) {
                case TO_WORKER_ARENA_ADD:
                        fd = channel_take_fd(worker->channel);
                        assert_true(fd >= 0 || worker->is_lax);
                        if (fd >= 0)
                                close(fd);
                        worker->n_arenas++;
                        break;
                case TO_WORKER_ARENA_MAKE:
                        fake_answer_arena(fake, worker, message);
                        break;
                case TO_WORKER_ARENA_DROP:
                        worker->n_dropped++;
                        break;
                case TO_WORKER_MODULE_ADD:
                        worker->n_modules++;
                        if (fake->hold_modules && fake->n_held < FAKE_JOBS)
                                fake->held[fake->n_held++] = id;
                        else
                                fake_answer_module(fake, worker, id, 0);
                        break;
                case TO_WORKER_JOBS:
                        worker_take_jobs(worker, message);
                        break;
                case TO_WORKER_MODULE_DROP:
                        worker->n_modules_dropped++;
                        break;
                case TO_WORKER_DIRECT_RING:
                case TO_WORKER_DIRECT_BELL:
                        fd = channel_take_fd(worker->channel);
                        assert_true(fd >= 0 || worker->is_lax);
                        if (fd >= 0)
                                close(fd);
                        break;
                case TO_WORKER_LEND:
                        worker->n_lent++;
                        worker->lent_at = message->head.number;
                        break;
                case TO_WORKER_RECALL:
                        worker->n_recalled++;
                        break;
                case TO_WORKER_STOP:
                        worker->is_stopping = true;
                        break;
                default:
                        break;
        }
}

static bool worker_turn(Fake *fake, FakeWorker *worker) {
        WorkerMessage message;
        const uint8_t *data;
        size_t n_data;

        if (worker->is_ended || worker->is_deaf ||
            channel_receive(worker->channel, &data, &n_data) != 0)
                return false;
        if (protocol_read(data, n_data, &message))
                worker_hear(fake, worker, &message);
        else
                assert_true(worker->is_lax); /* its memory was spoilt */
        return true;
}

bool fake_step(Fake *fake) {
        bool again = keeper_turn(fake);

        for (size_t i = 0; i < fake->n_workers; ++i)
                again |= worker_turn(fake, &fake->workers[i]);
        return again;
}

void fake_turn(Fake *fake) {
        bool again = true;

        for (unsigned quiet = 0; quiet < 3;) {
                uv_run(&fake->supervisor->loop, UV_RUN_NOWAIT);
                again = clients_has_waiting(&fake->supervisor->clients);
                again |= !backlog_is_empty(&fake->supervisor->engine);
                again |= fake_step(fake);
                quiet = again ? 0 : quiet + 1;
        }
}

void fake_wait(Fake *fake, bool (*done)(void *userdata), void *userdata) {
        uint64_t until_ns = uv_hrtime() + 60000000000ull;

        fake_turn(fake);
        while (!done(userdata)) {
                assert_true(uv_hrtime() < until_ns);
                uv_run(&fake->supervisor->loop, UV_RUN_ONCE);
                fake_turn(fake);
        }
}

typedef struct FakeWant {
        Fake *fake;
        size_t index;
        size_t n_jobs;
} FakeWant;

static bool fake_has_worker(void *userdata) {
        FakeWant *want = userdata;

        return want->fake->n_workers > want->index &&
               want->fake->workers[want->index].n_jobs >= want->n_jobs;
}

FakeWorker *fake_worker(Fake *fake, size_t index, size_t n_jobs) {
        fake_wait(fake, fake_has_worker, &(FakeWant){fake, index, n_jobs});
        return &fake->workers[index];
}

void fake_end(FakeWorker *worker, uint64_t id, int code) {
        WorkerEnd end = {.id = id, .ran_us = 5};

        fake_say(worker,
                 (WorkerMessage){
                         {.kind = FROM_WORKER_ENDS, .code = (uint32_t)code, .n_items = 1},
                         .text = code ? "refused" : NULL,
                         .items = &end,
                 },
                 -1);
}

void fake_last_word(FakeWorker *worker, const char *fault, bool device_failed, const uint64_t *jobs,
                    const WorkerPhase *phases, size_t n_jobs) {
        WorkerMessage stopped = {
                {
                        .kind = FROM_WORKER_STOPPED,
                        .code = fault ? GPUQ__V1__CODE__E_FAULT : GPUQ__V1__CODE__OK,
                        .detail = device_failed,
                        .n_items = (uint32_t)n_jobs,
                },
                .text = fault,
        };
        WorkerInFlight list[FAKE_JOBS];

        for (size_t i = 0; i < n_jobs; ++i)
                list[i] = (WorkerInFlight){.id = jobs[i], .phase = phases[i]};
        stopped.items = list;
        fake_say(worker, stopped, -1);
}

static void fake_leave(Fake *fake, FakeWorker *worker) {
        fake_turn(fake);
        if (!worker->is_ended)
                fake_exit(fake, worker, 0);
        fake_turn(fake);
}

void fake_stopped(Fake *fake, FakeWorker *worker, const char *fault, const uint64_t *jobs,
                  const WorkerPhase *phases, size_t n_jobs) {
        fake_last_word(worker, fault, false, jobs, phases, n_jobs);
        fake_leave(fake, worker);
}

void fake_broke(Fake *fake, FakeWorker *worker, const char *why, const uint64_t *jobs,
                const WorkerPhase *phases, size_t n_jobs) {
        fake_last_word(worker, why, true, jobs, phases, n_jobs);
        fake_leave(fake, worker);
}

void fake_crash(Fake *fake, FakeWorker *worker, int signal) {
        fake_exit(fake, worker, signal);
        fake_turn(fake);
}

void fake_die(Fake *fake, FakeWorker *worker) {
        fake_crash(fake, worker, 9);
}

void fake_late(FakeWorker *worker, uint64_t id) {
        fake_say(worker, (WorkerMessage){{.kind = FROM_WORKER_LATE, .id = id}}, -1);
}

/* ---- whole ----------------------------------------------------------------- */

/* No spare and no express workers unless a test asks for them: most count workers. */
void fake_start(Fake *fake, char **settings) {
        char *all[FAKE_SETTINGS_MAX + 3] = {"spare_workers=0", "express=no"};
        SupervisorOptions options = {};
        Config *config = NULL;
        char *error = NULL;
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        for (size_t i = 0; settings && settings[i]; ++i) {
                assert_true(i < FAKE_SETTINGS_MAX);
                all[i + 2] = settings[i];
        }
        if (config_load("/dev/null", all, &config, &error) != 0)
                fail_msg("%s", error);
        if (strcmp(config->state_dir ? config->state_dir : "", "/var/lib/gpuqd") == 0)
                config->state_dir[1] = '-'; /* not what is on this machine */
        assert_int_equal(config_seal(config, &options.config_fd), 0);
        config_free(config);
        options.keeper_fd = pair[0];
        fake->keeper = pair[1];
        assert_int_equal(supervisor_new(&options, &fake->supervisor), 0);
        cores_close(&fake->supervisor->cores); /* how busy this machine is decides no test */
        close(options.config_fd);
}

void fake_begin(Fake *fake) {
        keeper_say(fake, (KeeperMessage){.kind = KEEPER_HELD_END});
        fake_turn(fake);
        assert_true(fake->is_ready);
}

int fake_log_level = LOG_ERR;
uint64_t fake_peers;

Fake *fake_new(unsigned n_devices, char **settings) {
        Fake *fake = calloc(1, sizeof(*fake));

        assert_non_null(fake);
        log_open("test", fake_log_level);
        fake->n_devices = n_devices;
        fake_start(fake, settings);
        fake_begin(fake);
        return fake;
}

void fake_hand_over(Fake *fake, const char *key, int fd) {
        union {
                char bytes[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } control = {};
        KeeperMessage message = {.kind = KEEPER_HELD};
        struct iovec iov = {.iov_base = &message, .iov_len = sizeof(message)};
        struct msghdr header = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = control.bytes,
                .msg_controllen = sizeof(control.bytes),
        };
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&header);

        snprintf(message.text, sizeof(message.text), "%s", key);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
        memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
        assert_int_equal(sendmsg(fake->keeper, &header, 0), sizeof(message));
}

void fake_stop(Fake *fake) {
        supervisor_free(fake->supervisor);
        fake->supervisor = NULL;
        close(fake->keeper);
        fake->is_ready = false;
        for (size_t i = 0; i < fake->n_workers; ++i) {
                FakeWorker *worker = &fake->workers[i];

                worker->channel = channel_free(worker->channel);
                worker->is_ended = true;
                worker->id = 0; /* the next supervisor may give its number again */
        }
}

void fake_restart(Fake *fake, const char *key, const char *text) {
        int fd = memfd_create("held", MFD_CLOEXEC);

        fake_turn(fake);
        fake_stop(fake);
        fake_start(fake, NULL);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        fake_hand_over(fake, key, fd);
        close(fd);
        fake_begin(fake);
}

void fake_free(Fake *fake) {
        fake_turn(fake);
        supervisor_free(fake->supervisor);
        for (size_t i = 0; i < fake->n_workers; ++i)
                channel_free(fake->workers[i].channel);
        channel_free(fake->check);
        close(fake->keeper);
        free(fake);
}

/* ---- clients --------------------------------------------------------------- */

FakeClient *fake_client_raw(Fake *fake, uint32_t uid, bool is_admin) {
        FakeClient *client = calloc(1, sizeof(*client));
        Peer peer = {.uid = uid, .gid = uid, .pid = 1, .is_admin = is_admin};
        int pair[2];

        assert_non_null(client);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
                         0);
        client->fake = fake;
        client->fd = -1;
        assert_int_equal(wire_new(pair[1], true, &client->wire), 0);
        wire_set_frame_max(client->wire, WIRE_FRAME_MAX);
        assert_int_equal(session_new(&fake->supervisor->clients, pair[0], &peer, NULL), 0);
        return client;
}

static void fake_drop_reply(FakeClient *client) {
        if (client->reply)
                gpuq__v1__reply__free_unpacked(client->reply, NULL);
        if (client->fd >= 0)
                close(client->fd);
        client->reply = NULL;
        client->fd = -1;
}

void fake_client_close(FakeClient *client) {
        Fake *fake = client->fake;

        fake_drop_reply(client);
        wire_free(client->wire);
        free(client);
        fake_turn(fake);
}

static FakeClient *fake_client_greeted(Fake *fake, uint32_t uid, bool waits_for_device) {
        FakeClient *client = fake_client_raw(fake, uid, false);
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Hello hello = GPUQ__V1__HELLO__INIT;
        Gpuq__V1__Reply *reply;

        hello.version_min = hello.version_max = 1;
        hello.client = "test";
        hello.waits_for_device = waits_for_device;
        request.body_case = GPUQ__V1__REQUEST__BODY_HELLO;
        request.hello = &hello;
        fake_send(client, &request);
        reply = fake_receive(client);
        assert_non_null(reply);
        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_WELCOME);
        client->session = reply->welcome->session;
        return client;
}

FakeClient *fake_client(Fake *fake, uint32_t uid) {
        return fake_client_greeted(fake, uid, true);
}

FakeClient *fake_client_impatient(Fake *fake, uint32_t uid) {
        return fake_client_greeted(fake, uid, false);
}

void fake_send(FakeClient *client, Gpuq__V1__Request *request) {
        request->serial = 7;
        assert_int_equal(wire_queue(client->wire, &request->base, -1), 0);
        while (wire_flush(client->wire) == WIRE_E_AGAIN)
                fake_turn(client->fake);
        if (!client->is_unseen)
                fake_turn(client->fake);
}

uint64_t fake_submit_unseen(FakeClient *client, FakeJob job) {
        uint64_t id;

        client->is_unseen = true;
        id = fake_submit(client, job);
        client->is_unseen = false;
        return id;
}

static bool fake_try_receive(void *userdata) {
        FakeClient *client = userdata;
        WireFrame frame;
        int r;

        while (wire_next(client->wire, &frame) != 0) {
                r = wire_receive(client->wire);
                client->is_closed = r == WIRE_E_CLOSED || r < 0;
                if (client->is_closed)
                        return true;
                if (r != 0)
                        return false;
        }
        client->reply = gpuq__v1__reply__unpack(NULL, frame.n_data, frame.data);
        client->fd = frame.fd;
        assert_non_null(client->reply);
        return true;
}

Gpuq__V1__Reply *fake_receive(FakeClient *client) {
        fake_drop_reply(client);
        fake_wait(client->fake, fake_try_receive, client);
        return client->reply;
}

void fake_expect_error(FakeClient *client, int code, const char *words) {
        Gpuq__V1__Reply *reply = fake_receive(client);

        assert_non_null(reply);
        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_ERROR);
        if (!strstr(reply->error->text, words))
                fail_msg("'%s' is not in '%s'", words, reply->error->text);
        assert_int_equal(reply->error->code, code);
}

uint64_t fake_arena(FakeClient *client, Gpuq__V1__Place place, uint64_t size) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ArenaCreate create = GPUQ__V1__ARENA_CREATE__INIT;
        Gpuq__V1__Reply *reply;

        create.place = place;
        create.size = size;
        request.body_case = GPUQ__V1__REQUEST__BODY_ARENA_CREATE;
        request.arena_create = &create;
        fake_send(client, &request);
        reply = fake_receive(client);
        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_ARENA);
        return reply->arena->arena;
}

static void fake_ring_step(FakeClient *client, Gpuq__V1__Request__BodyCase ask, void *message,
                           Gpuq__V1__Reply__BodyCase expected) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;

        request.body_case = ask;
        request.ring_open = message;
        fake_send(client, &request);
        assert_int_equal(fake_receive(client)->body_case, expected);
}

void fake_ring(FakeClient *client) {
        Gpuq__V1__RingOpen open = GPUQ__V1__RING_OPEN__INIT;
        Gpuq__V1__RingBegin begin = GPUQ__V1__RING_BEGIN__INIT;

        fake_ring_step(client, GPUQ__V1__REQUEST__BODY_RING_OPEN, &open,
                       GPUQ__V1__REPLY__BODY_RING_READY);
        assert_int_equal(
                wire_adopt_ring(client->wire, client->fd, client->reply->ring_ready->capacity), 0);
        fake_ring_step(client, GPUQ__V1__REQUEST__BODY_RING_BEGIN, &begin,
                       GPUQ__V1__REPLY__BODY_RING_BEGUN);
        wire_ring_output(client->wire);
        wire_ring_input(client->wire);
}

void fake_module(FakeClient *client) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;
        Gpuq__V1__Reply *reply;

        load.format = GPUQ__V1__FORMAT__BUILTIN;
        request.body_case = GPUQ__V1__REQUEST__BODY_MODULE_LOAD;
        request.module_load = &load;
        fake_send(client, &request);
        reply = fake_receive(client);
        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_MODULE);
        client->module = reply->module->module;
}

static uint64_t fake_submit_message(FakeClient *client, FakeJob job, size_t n) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Submit submit = GPUQ__V1__SUBMIT__INIT;
        Gpuq__V1__Kernel kernel = GPUQ__V1__KERNEL__INIT, *kernels = &kernel;
        Gpuq__V1__Buffer buffer = GPUQ__V1__BUFFER__INIT, *buffers = &buffer;
        Gpuq__V1__Job *jobs = calloc(n, sizeof(*jobs)), **list = calloc(n, sizeof(*list));
        size_t n_after = job.after ? MAX(job.n_after, (size_t)1) : 0;
        uint64_t *after = calloc(n_after + 1, sizeof(*after));
        uint32_t first = client->tag + 1;

        for (size_t i = 0; i < n_after; ++i)
                after[i] = job.after + i;
        kernel.module = client->module;
        kernel.name = "add";
        buffer.arena = job.arena;
        buffer.offset = job.offset;
        buffer.length = job.length;
        buffer.direction = job.direction;
        for (size_t i = 0; i < n; ++i) {
                list[i] = &jobs[i];
                gpuq__v1__job__init(&jobs[i]);
                jobs[i].word_arena = job.word_arena;
                jobs[i].word_offset = job.word_offset;
                jobs[i].tag = ++client->tag;
                jobs[i].kernels = &kernels;
                jobs[i].n_kernels = client->module != 0 && !job.is_copy;
                jobs[i].operations.data = (uint8_t *)"?"; /* nobody here reads them */
                jobs[i].operations.len = job.is_copy;
                jobs[i].buffers = &buffers;
                jobs[i].n_buffers = job.arena != 0;
                jobs[i].after = after;
                jobs[i].n_after = n_after;
                jobs[i].priority = job.priority;
                jobs[i].timeout_ms = job.timeout_ms;
                jobs[i].device = job.device;
                jobs[i].repeatable = job.repeatable;
                jobs[i].label = job.label ? (char *)job.label : (char *)"";
        }
        submit.jobs = list;
        submit.n_jobs = n;
        request.body_case = GPUQ__V1__REQUEST__BODY_SUBMIT;
        request.submit = &submit;
        fake_send(client, &request);
        free(after);
        free(list);
        free(jobs);
        return (uint64_t)client->session << 32 | first;
}

uint64_t fake_submit_many(FakeClient *client, FakeJob job, size_t n) {
        uint64_t first = fake_submit_message(client, job, MIN(n, WIRE_JOBS_MAX));

        for (size_t sent = WIRE_JOBS_MAX; sent < n; sent += WIRE_JOBS_MAX)
                fake_submit_message(client, job, MIN(n - sent, WIRE_JOBS_MAX));
        return first;
}

uint64_t fake_submit(FakeClient *client, FakeJob job) {
        return fake_submit_many(client, job, 1);
}

Gpuq__V1__Completion *fake_completion(FakeClient *client, uint64_t id) {
        Gpuq__V1__Reply *reply;

        for (;;) {
                reply = client->reply;
                if (reply && reply->body_case == GPUQ__V1__REPLY__BODY_COMPLETIONS)
                        for (size_t i = 0; i < reply->completions->n_completions; ++i)
                                if (reply->completions->completions[i]->id == id)
                                        return reply->completions->completions[i];
                assert_non_null(fake_receive(client));
        }
}

void fake_expect_end(FakeClient *client, uint64_t id, Gpuq__V1__State state, int code,
                     const char *words) {
        Gpuq__V1__Completion *completion = fake_completion(client, id);

        if (code) {
                assert_non_null(completion->error);
                if (!strstr(completion->error->text, words))
                        fail_msg("'%s' is not in '%s'", words, completion->error->text);
                assert_int_equal(completion->error->code, code);
        } else if (completion->error) {
                fail_msg("failed: %s", completion->error->text);
        }
        assert_int_equal(completion->state, state);
}

const char *fake_reason(FakeClient *client, uint64_t id) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__QueueGet get = GPUQ__V1__QUEUE_GET__INIT;
        Gpuq__V1__Reply *reply;

        request.body_case = GPUQ__V1__REQUEST__BODY_QUEUE_GET;
        request.queue_get = &get;
        fake_send(client, &request);
        reply = fake_receive(client);
        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_QUEUE);
        for (size_t i = 0; i < reply->queue->n_entries; ++i)
                if (reply->queue->entries[i]->id == id)
                        return reply->queue->entries[i]->reason;
        return NULL;
}

const Gpuq__V1__DeviceStatus *fake_device_status(FakeClient *client, size_t device) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__StatusGet get = GPUQ__V1__STATUS_GET__INIT;
        Gpuq__V1__Reply *reply;

        request.body_case = GPUQ__V1__REQUEST__BODY_STATUS_GET;
        request.status_get = &get;
        fake_send(client, &request);
        reply = fake_receive(client);
        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_STATUS);
        return reply->status->devices[device];
}
