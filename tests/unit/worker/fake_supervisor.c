/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_supervisor.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SUPERVISOR_PATIENCE_MS 180000

/* ---- the folder --------------------------------------------------------------------------- */

static char folder[PATH_MAX];

static void copy_program(const char *from, const char *to) {
        int in = open(from, O_RDONLY | O_CLOEXEC);
        int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
        char buffer[65536];
        ssize_t n;

        assert_true(in >= 0 && out >= 0);
        while ((n = read(in, buffer, sizeof(buffer))) > 0)
                assert_int_equal(write(out, buffer, (size_t)n), n);
        close(in);
        close(out);
}

/* The worker looks beside its own executable, so that one is a copy; the rest are links. */
const char *supervisor_folder(void) {
        const char *worker = getenv("GPUQ_TEST_WORKER"), *files = getenv("GPUQ_TEST_LIBEXEC");
        char list[8192], path[PATH_MAX + 256], *save = NULL;

        if (folder[0])
                return folder;
        if (!worker || !files)
                return NULL;

        snprintf(folder, sizeof(folder), "/tmp/gpuq-worker-test-XXXXXX");
        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/gpuqd-worker", folder);
        copy_program(worker, path);

        snprintf(list, sizeof(list), "%s", files);
        for (char *file = strtok_r(list, ":", &save); file; file = strtok_r(NULL, ":", &save)) {
                snprintf(path, sizeof(path), "%s/%s", folder, strrchr(file, '/') + 1);
                assert_int_equal(symlink(file, path), 0);
        }
        return folder;
}

void supervisor_folder_remove(void) {
        char command[PATH_MAX + 16];

        if (!folder[0])
                return;
        snprintf(command, sizeof(command), "rm -rf '%s'", folder);
        assert_int_equal(system(command), 0);
        folder[0] = '\0';
}

/* ---- the worker ------------------------------------------------------------------------------ */

bool supervisor_on_gpu(void) {
        const char *device = getenv("GPUQ_TEST_DEVICE");

        return device && strcmp(device, "gpu") == 0;
}

const char *supervisor_options[SUPERVISOR_OPTIONS_MAX + 1];

static void supervisor_exec(const int fds[static CHANNEL_N_FDS], bool probe) {
        char program[PATH_MAX + 16], cache[PATH_MAX + 16];
        const char *args[16] = {NULL};
        int moved[CHANNEL_N_FDS];
        size_t n = 0;

        for (unsigned i = 0; i < CHANNEL_N_FDS; ++i)
                moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 16);
        for (unsigned i = 0; i < CHANNEL_N_FDS; ++i)
                dup2(moved[i], 3 + (int)i);

        snprintf(program, sizeof(program), "%s/gpuqd-worker", folder);
        snprintf(cache, sizeof(cache), "%s/cache", folder);
        args[n++] = program;
        args[n++] = probe ? "--probe" : "--device=0";
        args[n++] = supervisor_on_gpu() ? "--driver=gpu" : "--driver=cpu";
        args[n++] = "--cpu-devices=2";
        args[n++] = "--cpu-threads=2";
        args[n++] = "--connections=8"; /* a context is there in a third of the time */
        args[n++] = "--compile-timeout=150";
        args[n++] = "--cache";
        args[n++] = cache;
        for (size_t i = 0; supervisor_options[i]; ++i)
                args[n++] = supervisor_options[i];
        execv(program, (char **)args);
        _exit(127);
}

Supervisor supervisor_start(bool probe) {
        Supervisor supervisor = {.fd = -1};
        int fds[CHANNEL_N_FDS];

        assert_non_null(supervisor_folder());
        assert_int_equal(channel_new(&supervisor.channel, fds), 0);
        supervisor.pid = fork();
        assert_true(supervisor.pid >= 0);
        if (supervisor.pid == 0)
                supervisor_exec(fds, probe);
        for (unsigned i = 0; i < CHANNEL_N_FDS; ++i)
                close(fds[i]);

        if (!probe) {
                const WorkerMessage *ready = supervisor_await(&supervisor, FROM_WORKER_READY);

                assert_int_equal(ready->head.number, WORKER_PROTOCOL);
                if (ready->head.code)
                        fail_msg("not ready: %s", ready->text);
        }
        return supervisor;
}

void supervisor_forget(Supervisor *supervisor) {
        if (supervisor->module)
                gpuq__v1__module_ready__free_unpacked(supervisor->module, NULL);
        supervisor->module = NULL;
        if (supervisor->fd >= 0)
                close(supervisor->fd);
        supervisor->fd = -1;
}

int supervisor_wait(Supervisor *supervisor) {
        int status;

        assert_int_equal(waitpid(supervisor->pid, &status, 0), supervisor->pid);
        supervisor_forget(supervisor);
        supervisor->channel = channel_free(supervisor->channel);
        return status;
}

int supervisor_end(Supervisor *supervisor) {
        supervisor_forget(supervisor);
        supervisor->channel = channel_free(supervisor->channel);
        return supervisor_wait(supervisor);
}

void supervisor_send(Supervisor *supervisor, const WorkerMessage *message, int fd) {
        int r;

        while ((r = protocol_send(supervisor->channel, message, fd)) == CHANNEL_E_AGAIN)
                poll(NULL, 0, 1); /* the worker is reading */
        assert_int_equal(r, 0);
}

void supervisor_tell(Supervisor *supervisor, WorkerMessageKind kind, uint64_t id) {
        supervisor_send(supervisor, &(WorkerMessage){{.kind = kind, .id = id}}, -1);
}

/* Blocks until the worker rings. */
static void supervisor_rest(Supervisor *supervisor) {
        struct pollfd fds[2] = {
                {.fd = channel_bell_fd(supervisor->channel), .events = POLLIN},
                {.fd = channel_socket_fd(supervisor->channel), .events = POLLRDHUP},
        };

        if (!channel_sleep(supervisor->channel))
                return;
        if (poll(fds, 2, SUPERVISOR_PATIENCE_MS) == 0)
                fail_msg("the worker says nothing");
        channel_wake(supervisor->channel);
        if (fds[1].revents & ~POLLIN && !(fds[0].revents & POLLIN) &&
            !channel_sleep(supervisor->channel))
                return;
        if (fds[1].revents & ~POLLIN && !(fds[0].revents & POLLIN))
                fail_msg("the worker is gone");
}

const WorkerMessage *supervisor_await(Supervisor *supervisor, WorkerMessageKind kind) {
        WorkerMessage *message = &supervisor->message;

        for (;;) {
                const uint8_t *data;
                size_t n_data;
                int r = channel_receive(supervisor->channel, &data, &n_data);

                if (r == CHANNEL_E_AGAIN) {
                        supervisor_rest(supervisor);
                        continue;
                }
                assert_int_equal(r, 0);

                supervisor_forget(supervisor);
                assert_true(protocol_read(data, n_data, message));
                if (message->head.kind == FROM_WORKER_ARENA_MADE && !message->head.code)
                        supervisor->fd = channel_take_fd(supervisor->channel);
                if (message->head.kind == kind)
                        return message;
                if (message->head.kind == FROM_WORKER_STOPPED)
                        fail_msg("stopped: %s", message->head.code ? message->text : "as asked");
                if (message->head.kind != FROM_WORKER_STATS)
                        fail_msg("message %u instead of %u", message->head.kind, kind);
        }
}

const Gpuq__V1__ModuleReady *supervisor_module(Supervisor *supervisor) {
        const WorkerMessage *added = &supervisor->message;

        assert_int_equal(added->head.kind, FROM_WORKER_MODULE_ADDED);
        if (added->head.code)
                fail_msg("module: %s", added->text);
        if (!supervisor->module)
                supervisor->module =
                        gpuq__v1__module_ready__unpack(NULL, added->head.n_items, added->items);
        assert_non_null(supervisor->module);
        return supervisor->module;
}

/* ---- memory and modules ---------------------------------------------------------------------------- */

static void arena_send(Supervisor *supervisor, WorkerHead head, uint64_t address, int fd) {
        head.n_items = sizeof(address);
        supervisor_send(supervisor, &(WorkerMessage){head, .items = &address}, fd);
}

void device_arena_make_at(Supervisor *supervisor, uint64_t id, uint64_t size, uint64_t address) {
        arena_send(supervisor, (WorkerHead){.kind = TO_WORKER_ARENA_MAKE, .id = id, .number = size},
                   address, -1);
}

void device_arena_make(Supervisor *supervisor, uint64_t id, uint64_t size) {
        device_arena_make_at(supervisor, id, size, 0);
}

void arena_add_at(Supervisor *supervisor, uint64_t id, Gpuq__V1__Place place, uint64_t size,
                  uint64_t address, int fd) {
        arena_send(supervisor,
                   (WorkerHead){.kind = TO_WORKER_ARENA_ADD,
                                .id = id,
                                .number = size,
                                .detail = (uint32_t)place},
                   address, fd);
}

void arena_add(Supervisor *supervisor, uint64_t id, Gpuq__V1__Place place, uint64_t size, int fd) {
        arena_add_at(supervisor, id, place, size, 0, fd);
}

HostArena host_arena(Supervisor *supervisor, uint64_t id, size_t size) {
        HostArena arena = {.id = id, .size = size};

        arena.fd = memfd_create("test-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        assert_true(arena.fd >= 0);
        assert_int_equal(ftruncate(arena.fd, (off_t)size), 0);
        assert_int_equal(fcntl(arena.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
        arena.data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, arena.fd, 0);
        assert_ptr_not_equal(arena.data, MAP_FAILED);

        arena_add(supervisor, id, GPUQ__V1__PLACE__HOST, size, arena.fd);
        return arena;
}

void host_arena_free(HostArena *arena) {
        munmap(arena->data, arena->size);
        close(arena->fd);
}

void module_send_builtin(Supervisor *supervisor, uint64_t id) {
        WorkerMessage add = {{.kind = TO_WORKER_MODULE_ADD, .id = id}};

        add.head.detail = GPUQ__V1__FORMAT__BUILTIN;
        supervisor_send(supervisor, &add, -1);
}

/* @words: as TO_WORKER_MODULE_ADD has them; aligned to 8 */
static void module_send(Supervisor *supervisor, uint64_t id, const char *source, const char *words,
                        size_t n_words) {
        WorkerMessage add = {{.kind = TO_WORKER_MODULE_ADD, .id = id, .number = strlen(source)},
                             .text = "test.cu"};
        int fd = memfd_create("test-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, source, strlen(source)), (ssize_t)strlen(source));
        assert_int_equal(
                fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL),
                0);
        add.head.detail = GPUQ__V1__FORMAT__SOURCE;
        add.head.n_items = (uint32_t)n_words;
        add.items = words;
        supervisor_send(supervisor, &add, fd);
        close(fd);
}

void module_send_source(Supervisor *supervisor, uint64_t id, const char *source) {
        module_send(supervisor, id, source, NULL, 0);
}

const WorkerMessage *module_add_checked(Supervisor *supervisor, uint64_t id, const char *source) {
        static const _Alignas(8) char words[] = {
                WORKER_WORD_OPTION, '-', '-', 'c', 'h', 'e', 'c', 'k', '\0'};

        module_send(supervisor, id, source, words, sizeof(words));
        return supervisor_await(supervisor, FROM_WORKER_MODULE_ADDED);
}

const WorkerMessage *module_add_source(Supervisor *supervisor, uint64_t id, const char *source) {
        module_send_source(supervisor, id, source);
        return supervisor_await(supervisor, FROM_WORKER_MODULE_ADDED);
}
