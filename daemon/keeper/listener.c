/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listener
 *
 * If two gpuqd start at once at one path, each could take the other's new socket for a stale one.
 * So probing and binding are done under a lock on the folder, which leaves no lock file behind.
 */

#include "keeper/listener.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "keeper/notify.h"
#include "util/macro.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

struct Listener {
        int fd;
        char *path; /* NULL: not ours */
        dev_t device;
        ino_t inode;
};

DEFINE_CLEANUP(Listener, listener_free)

static int listener_fail(int error, char **ret_error, const char *format, ...) _printf_(3, 4);

static int listener_fail(int error, char **ret_error, const char *format, ...) {
        va_list args;

        va_start(args, format);
        if (vasprintf(ret_error, format, args) < 0)
                *ret_error = NULL;
        va_end(args);
        return error;
}

static struct sockaddr_un listener_address(const char *path) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
        return address;
}

static int listener_socket(void) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        return fd < 0 ? -errno : fd;
}

/* Opens and locks the path's folder. Return: a descriptor or a negative errno with text. */
static int listener_lock_folder(const char *path, char **ret_error) {
        _cleanup_(freep) char *folder = NULL;
        _cleanup_(closep) int fd = -1;
        size_t n_folder = (size_t)(strrchr(path, '/') - path);

        folder = strndup(path, n_folder ? n_folder : 1);
        if (!folder)
                return -ENOMEM;

        fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return listener_fail(-errno, ret_error,
                                     "cannot create the socket %s: folder %s: %s; create the "
                                     "folder, or choose another path with --socket",
                                     path, folder, strerror(errno));
        if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) < 0)
                return listener_fail(-errno, ret_error,
                                     "cannot create the socket %s: folder %s is not writable: %s; "
                                     "choose another path with --socket",
                                     path, folder, strerror(errno));
        if (flock(fd, LOCK_EX) < 0)
                return listener_fail(-errno, ret_error, "cannot lock folder %s: %s", folder,
                                     strerror(errno));
        return TAKE_FD(fd);
}

/* Removes a socket that nobody listens at any more. */
static int listener_remove_stale(const char *path, char **ret_error) {
        struct sockaddr_un address = listener_address(path);
        _cleanup_(closep) int fd = -1;
        struct stat st;

        if (lstat(path, &st) < 0)
                return errno == ENOENT
                               ? 0
                               : listener_fail(-errno, ret_error, "%s: %s", path, strerror(errno));
        if (!S_ISSOCK(st.st_mode))
                return listener_fail(-EEXIST, ret_error,
                                     "%s exists and is not a socket; remove it, or choose another "
                                     "path with --socket",
                                     path);

        fd = listener_socket();
        if (fd < 0)
                return fd;
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN)
                return listener_fail(-EADDRINUSE, ret_error,
                                     "socket path %s is in use by another gpuqd; stop that one, or "
                                     "choose another path with --socket",
                                     path);
        if (errno != ECONNREFUSED && errno != EPROTOTYPE)
                return listener_fail(-errno, ret_error, "%s: %s", path, strerror(errno));
        if (errno == EPROTOTYPE)
                return listener_fail(-EADDRINUSE, ret_error,
                                     "socket path %s is in use by another program", path);
        if (unlink(path) < 0 && errno != ENOENT)
                return listener_fail(-errno, ret_error, "cannot remove the stale socket %s: %s",
                                     path, strerror(errno));
        return 0;
}

/*
 * No client has a descriptor to send. One that is sent is let go by whoever
 * receives the bytes beside it, and a TCP socket with SO_LINGER makes that wait
 * for as long as its sender likes. A connection has this from its listener, from
 * its first byte on; an older kernel does not know it.
 */
static void listener_refuse_descriptors(int fd) {
        const int no = 0;

        (void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no));
}

static int listener_bind(Listener *listener, const char *path, bool is_private, char **ret_error) {
        struct sockaddr_un address = listener_address(path);
        _cleanup_(freep) char *own = NULL;
        struct stat st;
        mode_t mask;
        int r;

        listener->fd = listener_socket();
        if (listener->fd < 0)
                return listener->fd;
        own = strdup(path);
        if (!own)
                return -ENOMEM;
        listener_refuse_descriptors(listener->fd);

        /* The mask, not chmod() afterwards: the path never has another mode. */
        mask = umask(is_private ? 0177 : 0111);
        r = bind(listener->fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
        umask(mask);
        if (r < 0)
                return listener_fail(r, ret_error, "cannot create the socket %s: %s", path,
                                     strerror(-r));

        if (lstat(path, &st) < 0) {
                r = -errno;
                (void)unlink(path); /* ours still: the folder is locked */
                return listener_fail(r, ret_error, "cannot inspect the socket %s: %s", path,
                                     strerror(-r));
        }
        listener->path = TAKE_PTR(own);
        listener->device = st.st_dev;
        listener->inode = st.st_ino;
        if (listen(listener->fd, SOMAXCONN) < 0)
                return listener_fail(-errno, ret_error, "cannot listen on %s: %s", path,
                                     strerror(errno));
        return 0;
}

static int listener_open(Listener *listener, const char *path, bool is_private, char **ret_error) {
        _cleanup_(closep) int folder = -1;
        int r;

        r = listener_lock_folder(path, ret_error);
        if (r < 0)
                return r;
        folder = r;
        r = listener_remove_stale(path, ret_error);
        if (r < 0)
                return r;
        return listener_bind(listener, path, is_private, ret_error);
}

int listener_new(const char *path, bool is_private, Listener **ret_listener, char **ret_error) {
        _cleanup_(listener_freep) Listener *listener = NULL;
        int r;

        listener = calloc(1, sizeof(*listener));
        if (!listener)
                return -ENOMEM;
        listener->fd = -1;

        r = notify_take_socket(&listener->fd);
        if (r == 0)
                listener_refuse_descriptors(listener->fd);
        else if (r == NOTIFY_E_NONE)
                r = listener_open(listener, path, is_private, ret_error);
        else if (r < 0)
                return listener_fail(r, ret_error,
                                     "systemd must pass exactly one listening Unix stream socket; "
                                     "see gpuqd.socket");
        if (r < 0)
                return r;

        *ret_listener = TAKE_PTR(listener);
        return 0;
}

Listener *listener_free(Listener *listener) {
        struct stat st;

        if (!listener)
                return NULL;

        if (listener->path && lstat(listener->path, &st) == 0 && st.st_dev == listener->device &&
            st.st_ino == listener->inode)
                (void)unlink(listener->path);
        free(listener->path);
        closep(&listener->fd);
        free(listener);
        return NULL;
}

int listener_fd(const Listener *listener) {
        return listener->fd;
}

const char *listener_path(const Listener *listener) {
        return listener->path ? listener->path : "systemd's socket";
}
