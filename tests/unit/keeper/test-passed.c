/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passed: descriptors of every kind are told apart, and closed without waiting for their owners.
 */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "keeper/passed.h"

static bool is_memory(int fd) {
        bool is_so = passed_is_memory(fd);

        assert_true(fd >= 0);
        close(fd);
        return is_so;
}

static void memory_and_devices_are_kept_and_nothing_else(void **state) {
        int pair[2], ends[2];

        assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), errno);
        assert_return_code(pipe(ends), errno);
        assert_true(is_memory(memfd_create("a", 0)));
        assert_true(is_memory(memfd_create("b", MFD_ALLOW_SEALING)));
        assert_true(is_memory(open("/dev/null", O_RDWR)));
        assert_true(is_memory(eventfd(0, 0))); /* an anonymous inode, as a driver may make */
        assert_false(is_memory(open("/proc/self/status", O_RDONLY)));
        assert_false(is_memory(open("/", O_RDONLY | O_DIRECTORY)));
        assert_false(is_memory(pair[0]));
        assert_false(is_memory(ends[0]));
        assert_false(passed_is_memory(-1));
        close(pair[1]);
        close(ends[1]);
}

/* A socket whose close() waits LINGER_S for a peer that never reads. */
static int lingering_socket(int *ret_peer) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct linger linger = {.l_onoff = 1, .l_linger = 3600};
        int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
        socklen_t n_address = sizeof(address);
        static char bytes[1 << 16];

        assert_return_code(bind(listener, (struct sockaddr *)&address, sizeof(address)), errno);
        assert_return_code(listen(listener, 1), errno);
        assert_return_code(getsockname(listener, (struct sockaddr *)&address, &n_address), errno);
        assert_return_code(connect(fd, (struct sockaddr *)&address, sizeof(address)), errno);
        *ret_peer = accept(listener, NULL, NULL);
        assert_return_code(*ret_peer, errno);
        close(listener);
        while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
                ;
        assert_return_code(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), errno);
        return fd;
}

/* The test's patience is far below the hour that close() would take. */
static void a_descriptor_that_is_slow_to_close_is_not_waited_for(void **state) {
        int peer, slow = lingering_socket(&peer), memory = memfd_create("memory", 0);
        int fds[] = {memory, -1, slow};
        siginfo_t info;

        passed_discard(fds, 3);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(fds[i], -1);
        assert_int_equal(fcntl(memory, F_GETFD), -1);

        close(peer); /* it ends its wait, and so the child */
        assert_return_code(waitid(P_ALL, 0, &info, WEXITED), errno);
        assert_int_equal(info.si_status, 0);
        assert_int_equal(fcntl(slow, F_GETFD), -1);
}

static void harmless_ones_need_no_process(void **state) {
        int pair[2], fds[3];

        assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), errno);
        fds[0] = pair[0];
        fds[1] = pair[1];
        fds[2] = memfd_create("memory", 0);
        passed_discard(fds, 3);
        assert_int_equal(fcntl(pair[0], F_GETFD), -1);
        assert_int_equal(waitpid(-1, NULL, 0), -1);
        assert_int_equal(errno, ECHILD);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(memory_and_devices_are_kept_and_nothing_else),
                cmocka_unit_test(a_descriptor_that_is_slow_to_close_is_not_waited_for),
                cmocka_unit_test(harmless_ones_need_no_process),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
