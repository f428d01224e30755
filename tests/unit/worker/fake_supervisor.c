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
                const Gpuq__Worker__FromWorker *message =
                        supervisor_await(&supervisor, GPUQ__WORKER__FROM_WORKER__BODY_READY);

                if (message->ready->error)
                        fail_msg("not ready: %s", message->ready->error->text);
        }
        return supervisor;
}

void supervisor_forget(Supervisor *supervisor) {
        if (supervisor->message)
                gpuq__worker__from_worker__free_unpacked(supervisor->message, NULL);
        supervisor->message = NULL;
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

void supervisor_send(Supervisor *supervisor, Gpuq__Worker__ToWorker__BodyCase what, void *body,
                     int fd) {
        Gpuq__Worker__ToWorker message = GPUQ__WORKER__TO_WORKER__INIT;
        int r;

        message.body_case = what;
        message.jobs = body; /* a union of pointers */
        while ((r = channel_send(supervisor->channel, &message.base, fd)) == CHANNEL_E_AGAIN)
                poll(NULL, 0, 1); /* the worker is reading */
        assert_int_equal(r, 0);
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

const Gpuq__Worker__FromWorker *supervisor_await(Supervisor *supervisor,
                                                 Gpuq__Worker__FromWorker__BodyCase what) {
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
                supervisor->message = gpuq__worker__from_worker__unpack(NULL, n_data, data);
                assert_non_null(supervisor->message);
                if (supervisor->message->body_case == GPUQ__WORKER__FROM_WORKER__BODY_ARENA_MADE &&
                    !supervisor->message->arena_made->error)
                        supervisor->fd = channel_take_fd(supervisor->channel);
                if (supervisor->message->body_case == what)
                        return supervisor->message;
                if (supervisor->message->body_case == GPUQ__WORKER__FROM_WORKER__BODY_STOPPED)
                        fail_msg("stopped: %s", supervisor->message->stopped->error
                                                        ? supervisor->message->stopped->error->text
                                                        : "as asked");
                if (supervisor->message->body_case != GPUQ__WORKER__FROM_WORKER__BODY_STATS)
                        fail_msg("message %d instead of %d", supervisor->message->body_case, what);
        }
}

/* ---- memory and modules ---------------------------------------------------------------------------- */

HostArena host_arena(Supervisor *supervisor, uint64_t id, size_t size) {
        Gpuq__Worker__ArenaAdd add = GPUQ__WORKER__ARENA_ADD__INIT;
        HostArena arena = {.id = id, .size = size};

        arena.fd = memfd_create("test-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        assert_true(arena.fd >= 0);
        assert_int_equal(ftruncate(arena.fd, (off_t)size), 0);
        assert_int_equal(fcntl(arena.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
        arena.data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, arena.fd, 0);
        assert_ptr_not_equal(arena.data, MAP_FAILED);

        add.id = id;
        add.place = GPUQ__V1__PLACE__HOST;
        add.size = size;
        supervisor_send(supervisor, GPUQ__WORKER__TO_WORKER__BODY_ARENA_ADD, &add, arena.fd);
        return arena;
}

void host_arena_free(HostArena *arena) {
        munmap(arena->data, arena->size);
        close(arena->fd);
}

/* A sealed memfd of the source. */
static int source_image(const char *source, Gpuq__Worker__ModuleAdd *add) {
        int fd = memfd_create("test-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        assert_true(fd >= 0);
        add->format = GPUQ__V1__FORMAT__SOURCE;
        add->length = strlen(source);
        assert_int_equal(write(fd, source, add->length), (ssize_t)add->length);
        return fd;
}

void module_send_source(Supervisor *supervisor, uint64_t id, const char *source) {
        Gpuq__Worker__ModuleAdd add = GPUQ__WORKER__MODULE_ADD__INIT;
        int fd = source_image(source, &add);

        assert_int_equal(
                fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL),
                0);
        add.id = id;
        add.session = 1;
        add.name = (char *)"test.cu";
        supervisor_send(supervisor, GPUQ__WORKER__TO_WORKER__BODY_MODULE_ADD, &add, fd);
        close(fd);
}

const Gpuq__Worker__ModuleAdded *module_add_source(Supervisor *supervisor, uint64_t id,
                                                   const char *source) {
        module_send_source(supervisor, id, source);
        return supervisor_await(supervisor, GPUQ__WORKER__FROM_WORKER__BODY_MODULE_ADDED)
                ->module_added;
}
