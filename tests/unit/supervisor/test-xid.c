/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kmsg.h"
#include "xid.h"
#include "xid_catalog.h"

#define HEAD "6,1234,5678901,-;"

/* ---- one record ------------------------------------------------------------ */

static Xid parsed(const char *line) {
        Xid xid;

        if (!xid_parse(line, &xid))
                fail_msg("not understood: %s", line);
        return xid;
}

static void the_forms_of_all_drivers(void **state) {
        static const struct {
                const char *line;
                Xid xid;
        } forms[] = {
                {HEAD "NVRM: Xid (PCI:0000:0a:00): 31, pid=13332, name=cuda_plot_k32_v, Ch "
                      "00000010, intr 00000000. MMU Fault",
                 {.bus = 0x0a,
                  .number = 31,
                  .pid = 13332,
                  .text = "Ch 00000010, intr 00000000. MMU Fault"}},
                {"3,7,8,-,caller=T4711;NVRM: Xid (PCI:0000:cb:00): 13, pid='<unknown>', "
                 "name=<unknown>, Graphics SM Warp Exception on (GPC 7, TPC 7, SM 0): Illegal "
                 "Instruction Parameter",
                 {.bus = 0xcb,
                  .number = 13,
                  .text = "Graphics SM Warp Exception on (GPC 7, TPC 7, SM 0): Illegal Instruction "
                          "Parameter"}},
                {HEAD "NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row marked for "
                      "remapping",
                 {.bus = 0x10,
                  .device = 0x1c,
                  .number = 63,
                  .pid = 1896,
                  .text = "Row Remapper: New row marked for remapping"}},
                {HEAD "NVRM: Xid (PCI:0019:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406)",
                 {.domain = 0x19,
                  .bus = 1,
                  .number = 149,
                  .text = "NETIR Fatal XC0 i0 Link -1 (0x000fe406)"}},
                {HEAD "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
                 {.bus = 1, .number = 79, .text = "GPU has fallen off the bus."}},
                {HEAD "NVRM: Xid (PCI:0000:18:00 GPU-I:02 GPU-CI:00): 31, pid=7, name=x, Ch 1",
                 {.bus = 0x18, .number = 31, .pid = 7, .text = "Ch 1"}},
                {HEAD "NVRM: Xid (0000:03:00): 14, Channel 00000001",
                 {.bus = 3, .number = 14, .text = "Channel 00000001"}},
                {HEAD "NVRM: Xid (PCI:0000:65:00): 119, pid='N/A', Timeout",
                 {.bus = 0x65, .number = 119, .text = "Timeout"}},
                {HEAD "NVRM: Xid (PCI:0000:65:00): 43, pid=9",
                 {.bus = 0x65, .number = 43, .pid = 9}},
                {HEAD "NVRM: Xid (PCI:0000:65:00): 61", {.bus = 0x65, .number = 61}},
        };

        for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); ++i) {
                Xid xid = parsed(forms[i].line);

                assert_int_equal(xid.domain, forms[i].xid.domain);
                assert_int_equal(xid.bus, forms[i].xid.bus);
                assert_int_equal(xid.device, forms[i].xid.device);
                assert_int_equal(xid.number, forms[i].xid.number);
                assert_int_equal(xid.pid, forms[i].xid.pid);
                assert_string_equal(xid.text, forms[i].xid.text);
        }
}

static void what_is_none(void **state) {
        static const char *const lines[] = {
                "",
                " SUBSYSTEM=pci",
                "NVRM: Xid (PCI:0000:01:00): 79, no header",
                HEAD "NVRM: GPU at PCI:0000:01:00: GPU-760d0170",
                HEAD "NVRM: Xid : 32, pid=2280636",
                HEAD "NVRM: Xid (PCI:0000:66:00): abc, pid=2280636",
                HEAD "NVRM: Xid (PCI:0000:66:00): -79, x",
                HEAD "NVRM: Xid (PCI:0000:66:00): 99999999999999999999, x",
                HEAD "NVRM: Xid (PCI:0000:66:00): 79x",
                HEAD "NVRM: Xid (PCI:0000:166:00): 79, x",
                HEAD "NVRM: Xid (PCI:0000:66:00: 79, x",
                HEAD "NVRM: Xid (PCI:0000:66:00x): 79, x",
                HEAD "NVRM: Xid (PCI:0000:66): 79, x",
                HEAD "NVRM: Xid (PCI: 0000:66:00): 79, x",
                HEAD "NVRM: Xid (PCI:[1234]: segfault at 0",
                HEAD "a program says NVRM: Xid (PCI:0000:66:00): 79, x",
                "6;NVRM: Xid (PCI:0000:66:00): 79, x",
                "x,1,2,-;NVRM: Xid (PCI:0000:66:00): 79, x",
                "\xff\xfe,1,2,-;NVRM: Xid",
                /* Whatever a program writes to /dev/kmsg has another facility than the kernel's. */
                "12,1234,5678901,-;NVRM: Xid (PCI:0000:66:00): 79, x",
                "14,1234,5678901,-;NVRM: Xid (PCI:0000:66:00): 79, x",
        };
        Xid xid;

        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); ++i)
                if (xid_parse(lines[i], &xid))
                        fail_msg("taken: %s", lines[i]);
}

static void a_line_cut_anywhere_is_none_or_less_of_the_same(void **state) {
        static const char line[] =
                HEAD "NVRM: Xid (PCI:0000:18:00): 31, pid=4711, name=gpuqd-worker, Ch 00000008";
        char cut[sizeof(line)];
        Xid xid;

        for (size_t n = 0; n < sizeof(line); ++n) {
                snprintf(cut, n + 1, "%s", line);
                if (xid_parse(cut, &xid)) {
                        assert_int_equal(xid.bus, 0x18);
                        assert_true(xid.number == 31 || xid.number == 3);
                }
        }
}

static void its_text_is_printable_and_short(void **state) {
        char line[KMSG_LINE_MAX];
        size_t n = (size_t)snprintf(line, sizeof(line),
                                    HEAD "NVRM: Xid (PCI:0000:18:00): 31, \x1b[2J\xff");
        Xid xid;

        memset(line + n, 'x', sizeof(line) - n - 1);
        line[sizeof(line) - 1] = '\0';
        xid = parsed(line);
        assert_int_equal(strlen(xid.text), XID_TEXT_MAX - 1);
        assert_memory_equal(xid.text, "?[2J?xxx", 8);
}

static void the_device_by_its_address(void **state) {
        Xid xid = parsed(HEAD "NVRM: Xid (PCI:0001:3b:00): 79, x");

        assert_true(xid_is_at(&xid, "0001:3b:00.0"));
        assert_true(xid_is_at(&xid, "0001:3B:00.0"));
        assert_true(xid_is_at(&xid, "00000001:3b:00.0"));
        assert_false(xid_is_at(&xid, "0000:3b:00.0"));
        assert_false(xid_is_at(&xid, "0001:3c:00.0"));
        assert_false(xid_is_at(&xid, ""));
        assert_false(xid_is_at(&xid, "rubbish"));
}

/* ---- the catalog ----------------------------------------------------------- */

static void what_is_fatal(void **state) {
        static const unsigned fatal[] = {46,  48,  62,  64,  79,  95,  109, 110, 119,
                                         120, 136, 140, 143, 151, 155, 156, 158};
        static const unsigned harmless[] = {8,  13, 31,  32,  43,  45,  63,  69, 74,
                                            92, 94, 137, 144, 149, 171, 172, 0,  999};
        Xid xid = {};

        for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); ++i) {
                xid.number = fatal[i];
                assert_true(xid_is_fatal(&xid));
                assert_non_null(xid_action_name(xid_action(&xid)));
        }
        for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); ++i) {
                xid.number = harmless[i];
                assert_false(xid_is_fatal(&xid));
                assert_non_null(xid_meaning(&xid));
        }
}

static void number_154_says_itself_what_is_to_be_done(void **state) {
        static const struct {
                const char *text;
                XidAction action;
        } words[] = {
                {"GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
                 XID_RESET_GPU},
                {"GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
                 XID_RESTART_BM},
                {"GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)", XID_NO_ACTION},
                {"GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
                 XID_RESET_GPU},
                {"GPU recovery action changed from 0x0 (None) to 0x7 (more)", XID_RESET_GPU},
                {"GPU recovery action changed from 0x2 (Node Reboot Required) to 0x0 (None)",
                 XID_NO_ACTION},
                {"rubbish", XID_NO_ACTION},
        };

        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) {
                Xid xid = {.number = 154};

                snprintf(xid.text, sizeof(xid.text), "%s", words[i].text);
                assert_int_equal(xid_action(&xid), words[i].action);
        }
}

/* ---- lines ----------------------------------------------------------------- */

/* What stands in for the log: written by the test, read by the module. */
typedef struct Log {
        Kmsg *kmsg;
        int fd;
} Log;

/* @type: SOCK_STREAM as a fifo has it, SOCK_SEQPACKET as the device has it, a record each. */
static Log log_new(int type) {
        Log log;
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, fds), 0);
        assert_int_equal(kmsg_new(fds[0], &log.kmsg), 0);
        log.fd = fds[1];
        return log;
}

static void log_free(Log log) {
        kmsg_free(log.kmsg);
        close(log.fd);
}

static void log_write(Log log, const char *text) {
        assert_int_equal(write(log.fd, text, strlen(text)), strlen(text));
}

static void assert_reads(Log log, const char *expected) {
        const char *line;

        assert_int_equal(kmsg_read(log.kmsg, &line), 1);
        assert_string_equal(line, expected);
}

static void assert_reads_nothing(Log log) {
        const char *line;

        assert_int_equal(kmsg_read(log.kmsg, &line), 0);
}

static void a_record_with_what_belongs_to_it(void **state) {
        Log log = log_new(SOCK_SEQPACKET);

        assert_reads_nothing(log);
        log_write(log, "6,1,2,-;one\n SUBSYSTEM=pci\n DEVICE=+pci:0000:18:00.0\n");
        log_write(log, "6,2,3,-;two\n");
        assert_reads(log, "6,1,2,-;one");
        assert_reads(log, " SUBSYSTEM=pci");
        assert_reads(log, " DEVICE=+pci:0000:18:00.0");
        assert_reads(log, "6,2,3,-;two");
        assert_reads_nothing(log);
        log_free(log);
}

static void lines_that_come_cut(void **state) {
        Log log = log_new(SOCK_STREAM);

        log_write(log, "6,1,2,-;o");
        assert_reads(log, ""); /* not whole yet */
        assert_reads_nothing(log);
        log_write(log, "ne\n6,2,3,-;two\n6,3,");
        assert_reads(log, "6,1,2,-;one");
        assert_reads(log, "6,2,3,-;two");
        assert_reads_nothing(log);
        log_write(log, "4,-;three\n");
        assert_reads(log, "6,3,4,-;three");
        assert_int_equal(kmsg_n_lost(log.kmsg), 0);
        log_free(log);
}

static void a_line_without_end_is_left_out(void **state) {
        char piece[1001];
        const char *line;
        Log log = log_new(SOCK_STREAM);

        memset(piece, 'x', sizeof(piece) - 1);
        piece[sizeof(piece) - 1] = '\0';
        for (size_t i = 0; i < 3 * KMSG_LINE_MAX / strlen(piece); ++i) {
                log_write(log, piece);
                while (kmsg_read(log.kmsg, &line) > 0)
                        assert_string_equal(line, "");
        }
        assert_int_equal(kmsg_n_lost(log.kmsg), 1);
        log_write(log, "\n6,1,2,-;one\n");
        assert_reads(log, "");
        assert_reads(log, "6,1,2,-;one");
        log_free(log);
}

/* ---- records that were overwritten ----------------------------------------- */

/* The kernel's answers, in turn; 0: nothing more. */
static const int *answers;

ssize_t __real_read(int fd, void *buffer, size_t n);
ssize_t __wrap_read(int fd, void *buffer, size_t n);

ssize_t __wrap_read(int fd, void *buffer, size_t n) {
        if (!answers)
                return __real_read(fd, buffer, n);
        if (*answers) {
                errno = *answers++;
                return -1;
        }
        answers = NULL;
        errno = EAGAIN;
        return -1;
}

static void records_that_were_overwritten_are_counted_and_the_next_is_read(void **state) {
        static const int overwritten[] = {EPIPE, EINTR, EINVAL, 0};
        Log log = log_new(SOCK_SEQPACKET);

        answers = overwritten;
        assert_reads(log, "");
        assert_reads(log, "");
        assert_reads_nothing(log);
        assert_int_equal(kmsg_n_lost(log.kmsg), 2);
        log_write(log, "6,1,2,-;one\n");
        assert_reads(log, "6,1,2,-;one");
        log_free(log);
}

static void one_that_cannot_be_read_says_so(void **state) {
        static const int broken[] = {EIO, 0};
        Log log = log_new(SOCK_SEQPACKET);
        const char *line;

        answers = broken;
        assert_int_equal(kmsg_read(log.kmsg, &line), -EIO);
        answers = NULL;
        log_free(log);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_forms_of_all_drivers),
                cmocka_unit_test(what_is_none),
                cmocka_unit_test(a_line_cut_anywhere_is_none_or_less_of_the_same),
                cmocka_unit_test(its_text_is_printable_and_short),
                cmocka_unit_test(the_device_by_its_address),
                cmocka_unit_test(what_is_fatal),
                cmocka_unit_test(number_154_says_itself_what_is_to_be_done),
                cmocka_unit_test(a_record_with_what_belongs_to_it),
                cmocka_unit_test(lines_that_come_cut),
                cmocka_unit_test(a_line_without_end_is_left_out),
                cmocka_unit_test(records_that_were_overwritten_are_counted_and_the_next_is_read),
                cmocka_unit_test(one_that_cannot_be_read_says_so),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
