/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each function ends the thread if some thread has found an access outside. It reads that with
 * ld.volatile, as a thread that polls memory would not see it otherwise.
 */
#include "compiler/check_function.h"

#include <stddef.h>

#include "compiler/check.h"
#include "compiler/check_access.h"

#define GRID_WORDS_BYTES 64 /* of the memory in which cooperative_groups counts blocks */

#define STRING(x) #x
#define AT(n)     "[gpuq_check+" STRING(n) "]"

_Static_assert(offsetof(CheckRecord, site) == 4 && offsetof(CheckRecord, launch) == 8 &&
                       offsetof(CheckRecord, why) == 12 && offsetof(CheckRecord, address) == 16 &&
                       offsetof(CheckRecord, n_bytes) == 24 && offsetof(CheckRecord, block) == 28 &&
                       offsetof(CheckRecord, thread) == 40 && offsetof(CheckRecord, low) == 52 &&
                       offsetof(CheckRecord, high) == 56 && sizeof(CheckRecord) == 64 &&
                       sizeof(CheckHead) == 16 && sizeof(CheckRange) == 24 &&
                       (int)CHECK_READ_ONLY == 1 && (int)CHECK_SHARED == 2 &&
                       (int)CHECK_UNWRITTEN == 3 && CHECK_NO_WRITES == 0 && CHECK_NO_SHADOW == 1 &&
                       CHECK_READS == 1 && CHECK_WRITES == 2,
               "as the text below has it");

static const char heads[] =
        ".func gpuq_check_end(.reg .b64 %gpuq_a, .reg .b32 %gpuq_n, .reg .b32 %gpuq_s, "
        ".reg .b32 %gpuq_why, .reg .b32 %gpuq_low, .reg .b32 %gpuq_high);\n"
        ".func gpuq_check_global(.reg .b64 %gpuq_a, .reg .b32 %gpuq_n, .reg .b32 %gpuq_w, "
        ".reg .b32 %gpuq_s);\n"
        ".func gpuq_check_written(.reg .b64 %gpuq_a, .reg .b32 %gpuq_n, .reg .b32 %gpuq_w, "
        ".reg .b32 %gpuq_s, .reg .b64 %gpuq_word);\n"
        ".func gpuq_check_shared(.reg .b32 %gpuq_a, .reg .b32 %gpuq_n, .reg .b32 %gpuq_s, "
        ".reg .b32 %gpuq_low, .reg .b32 %gpuq_high);\n"
        ".func gpuq_check_generic(.reg .b64 %gpuq_a, .reg .b32 %gpuq_n, .reg .b32 %gpuq_w, "
        ".reg .b32 %gpuq_s, .reg .b32 %gpuq_low, .reg .b32 %gpuq_high);\n";

static const char end[] =
        ".func gpuq_check_end(.reg .b64 %gpuq_a, .reg .b32 %gpuq_n, .reg .b32 %gpuq_s, "
        ".reg .b32 %gpuq_why, .reg .b32 %gpuq_low, .reg .b32 %gpuq_high)\n{\n"
        "\t.reg .pred %gpuq_p;\n"
        "\t.reg .b32 %gpuq_r;\n"
        "\tatom.global.cas.b32 %gpuq_r, [gpuq_check], 0, 1;\n"
        "\tsetp.ne.u32 %gpuq_p, %gpuq_r, 0;\n"
        "\t@%gpuq_p exit;\n"
        "\tld.global.u32 %gpuq_r, " AT(
                68) ";\n"
                    "\tst.global.u32 " AT(
                            8) ", %gpuq_r;\n"
                               "\tst.global.u32 " AT(
                                       4) ", %gpuq_s;\n"
                                          "\tst.global.u32 " AT(
                                                  12) ", %gpuq_why;\n"
                                                      "\tst.global.u64 " AT(
                                                              16) ", %gpuq_a;\n"
                                                                  "\tst.global.u32 " AT(
                                                                          24) ", %gpuq_n;\n"
                                                                              "\tmov.u32 %gpuq_r, "
                                                                              "%ctaid.x;\n"
                                                                              "\tst.global.u32 " AT(
                                                                                      28) ", "
                                                                                          "%gpuq_r;"
                                                                                          "\n"
                                                                                          "\tmov."
                                                                                          "u32 "
                                                                                          "%gpuq_r,"
                                                                                          " %ctaid."
                                                                                          "y;\n"
                                                                                          "\tst."
                                                                                          "global."
                                                                                          "u32 " AT(
                                                                                                  32) ", %gpuq_r;\n"
                                                                                                      "\tmov.u32 %gpuq_r, %ctaid.z;\n"
                                                                                                      "\tst.global.u32 " AT(
                                                                                                              36) ", %gpuq_r;\n"
                                                                                                                  "\tmov.u32 %gpuq_r, %tid.x;\n"
                                                                                                                  "\tst.global.u32 " AT(
                                                                                                                          40) ", %gpuq_r;\n"
                                                                                                                              "\tmov.u32 %gpuq_r, %tid.y;\n"
                                                                                                                              "\tst.global.u32 " AT(
                                                                                                                                      44) ", %gpuq_r;\n"
                                                                                                                                          "\tmov.u32 %gpuq_r, %tid.z;\n"
                                                                                                                                          "\tst.global.u32 " AT(
                                                                                                                                                  48) ", %gpuq_r;\n"
                                                                                                                                                      "\tst.global.u32 " AT(
                                                                                                                                                              52) ", %gpuq_low;\n"
                                                                                                                                                                  "\tst.global.u32 " AT(
                                                                                                                                                                          56) ", %gpuq_high;\n"
                                                                                                                                                                              "\texit;\n}\n";

static const char global_begin[] =
        ".func gpuq_check_global(.reg .b64 %gpuq_a, .reg .b32 %gpuq_n, .reg .b32 %gpuq_w, "
        ".reg .b32 %gpuq_s)\n{\n"
        "\t.reg .pred %gpuq_p, %gpuq_q;\n"
        "\t.reg .b32 %gpuq_i, %gpuq_count, %gpuq_why, %gpuq_zero;\n"
        "\t.reg .b64 %gpuq_t, %gpuq_o, %gpuq_e, %gpuq_size, %gpuq_bytes, %gpuq_begin, %gpuq_may;\n"
        "\tld.volatile.global.u32 %gpuq_i, [gpuq_check];\n"
        "\tsetp.ne.u32 %gpuq_p, %gpuq_i, 0;\n"
        "\t@%gpuq_p exit;\n"
        "\tsetp.eq.u32 %gpuq_p, %gpuq_n, 0;\n"
        "\t@%gpuq_p ret;\n"
        "\tcvt.u64.u32 %gpuq_bytes, %gpuq_n;\n"
        "\tmov.u32 %gpuq_why, 0;\n"
        "\tmov.u32 %gpuq_zero, 0;\n"
        "\tmov.u32 %gpuq_i, 0;\n"
        "\tmov.u64 %gpuq_t, gpuq_check;\n"
        "\tld.global.u32 %gpuq_count, " AT(64) ";\n"
                                               "gpuq_check_next:\n"
                                               "\tsetp.ge.u32 %gpuq_p, %gpuq_i, %gpuq_count;\n"
                                               "\t@%gpuq_p bra gpuq_check_variables;\n"
                                               "\tld.global.u64 %gpuq_begin, [%gpuq_t+80];\n"
                                               "\tld.global.u64 %gpuq_size, [%gpuq_t+88];\n"
                                               "\tld.global.u64 %gpuq_may, [%gpuq_t+96];\n"
                                               "\tadd.u64 %gpuq_t, %gpuq_t, 24;\n"
                                               "\tadd.u32 %gpuq_i, %gpuq_i, 1;\n"
                                               "\tsub.u64 %gpuq_o, %gpuq_a, %gpuq_begin;\n"
                                               "\tadd.u64 %gpuq_e, %gpuq_o, %gpuq_bytes;\n"
                                               "\tsetp.ge.u64 %gpuq_p, %gpuq_o, %gpuq_size;\n"
                                               "\t@%gpuq_p bra gpuq_check_next;\n"
                                               "\tsetp.gt.u64 %gpuq_p, %gpuq_e, %gpuq_size;\n"
                                               "\t@%gpuq_p bra gpuq_check_next;\n"
                                               "\tsetp.gt.u64 %gpuq_p, %gpuq_may, 1;\n"
                                               "\t@%gpuq_p bra gpuq_check_shadow;\n"
                                               "\tsetp.lt.u32 %gpuq_p, %gpuq_w, 2;\n"
                                               "\t@%gpuq_p ret;\n"
                                               "\tsetp.ne.u64 %gpuq_p, %gpuq_may, 0;\n"
                                               "\t@%gpuq_p ret;\n"
                                               "\tmov.u32 %gpuq_why, 1;\n"
                                               "\tbra gpuq_check_next;\n"
                                               "gpuq_check_variables:\n";

/* Behind the address of what may be accessed, and before its size. */
static const char own_range[] = "\tsub.u64 %gpuq_o, %gpuq_a, %gpuq_begin;\n"
                                "\tadd.u64 %gpuq_e, %gpuq_o, %gpuq_bytes;\n";

static const char grid_words[] = "\tmov.u32 %gpuq_i, %envreg1;\n"
                                 "\tmov.u32 %gpuq_count, %envreg2;\n"
                                 "\tmov.b64 %gpuq_begin, {%gpuq_count, %gpuq_i};\n";

/* Where the range has a shadow: the word with the first byte's bit. */
static const char global_end[] =
        "\tcall gpuq_check_end, (%gpuq_a, %gpuq_n, %gpuq_s, %gpuq_why, %gpuq_zero, %gpuq_zero);\n"
        "\tret;\n"
        "gpuq_check_shadow:\n"
        "\tshr.u64 %gpuq_o, %gpuq_a, 5;\n"
        "\tshr.u64 %gpuq_begin, %gpuq_begin, 5;\n"
        "\tsub.u64 %gpuq_o, %gpuq_o, %gpuq_begin;\n"
        "\tshl.b64 %gpuq_o, %gpuq_o, 2;\n"
        "\tadd.u64 %gpuq_o, %gpuq_o, %gpuq_may;\n"
        "\tcall gpuq_check_written, (%gpuq_a, %gpuq_n, %gpuq_w, %gpuq_s, %gpuq_o);\n"
        "\tret;\n}\n";

/*
 * Word by word: an access of a vector may have bits in two, a matrix in many. Bits that are set need no
 * atomic operation. As other threads set bits, they are read with ld.volatile, too.
 */
static const char written[] =
        ".func gpuq_check_written(.reg .b64 %gpuq_a, .reg .b32 %gpuq_n, .reg .b32 %gpuq_w, "
        ".reg .b32 %gpuq_s, .reg .b64 %gpuq_word)\n{\n"
        "\t.reg .pred %gpuq_p;\n"
        "\t.reg .b32 %gpuq_at, %gpuq_left, %gpuq_take, %gpuq_mask, %gpuq_bits, %gpuq_why, "
        "%gpuq_zero;\n"
        "\t.reg .b64 %gpuq_o;\n"
        "\tsetp.eq.u32 %gpuq_p, %gpuq_w, 0;\n"
        "\t@%gpuq_p ret;\n"
        "\tcvt.u32.u64 %gpuq_at, %gpuq_a;\n"
        "\tand.b32 %gpuq_at, %gpuq_at, 31;\n"
        "\tmov.u32 %gpuq_left, %gpuq_n;\n"
        "\tmov.u64 %gpuq_o, %gpuq_word;\n"
        "gpuq_check_word:\n"
        "\tsub.u32 %gpuq_take, 32, %gpuq_at;\n"
        "\tmin.u32 %gpuq_take, %gpuq_take, %gpuq_left;\n"
        "\tsub.u32 %gpuq_bits, 32, %gpuq_take;\n"
        "\tmov.u32 %gpuq_mask, 0xffffffff;\n"
        "\tshr.u32 %gpuq_mask, %gpuq_mask, %gpuq_bits;\n"
        "\tshl.b32 %gpuq_mask, %gpuq_mask, %gpuq_at;\n"
        "\tld.volatile.global.u32 %gpuq_bits, [%gpuq_o];\n"
        "\tand.b32 %gpuq_bits, %gpuq_bits, %gpuq_mask;\n"
        "\tsetp.eq.u32 %gpuq_p, %gpuq_bits, %gpuq_mask;\n"
        "\t@%gpuq_p bra gpuq_check_next_word;\n"
        "\tand.b32 %gpuq_bits, %gpuq_w, 1;\n"
        "\tsetp.ne.u32 %gpuq_p, %gpuq_bits, 0;\n"
        "\t@%gpuq_p bra gpuq_check_unwritten;\n"
        "\tred.global.or.b32 [%gpuq_o], %gpuq_mask;\n"
        "gpuq_check_next_word:\n"
        "\tsub.u32 %gpuq_left, %gpuq_left, %gpuq_take;\n"
        "\tmov.u32 %gpuq_at, 0;\n"
        "\tadd.u64 %gpuq_o, %gpuq_o, 4;\n"
        "\tsetp.ne.u32 %gpuq_p, %gpuq_left, 0;\n"
        "\t@%gpuq_p bra gpuq_check_word;\n"
        "\tret;\n"
        "gpuq_check_unwritten:\n"
        "\tmov.u32 %gpuq_why, 3;\n"
        "\tmov.u32 %gpuq_zero, 0;\n"
        "\tcall gpuq_check_end, (%gpuq_a, %gpuq_n, %gpuq_s, %gpuq_why, %gpuq_zero, %gpuq_zero);\n"
        "\tret;\n}\n";

static const char shared[] =
        ".func gpuq_check_shared(.reg .b32 %gpuq_a, .reg .b32 %gpuq_n, .reg .b32 %gpuq_s, "
        ".reg .b32 %gpuq_low, .reg .b32 %gpuq_high)\n{\n"
        "\t.reg .pred %gpuq_p;\n"
        "\t.reg .b32 %gpuq_i;\n"
        "\t.reg .b64 %gpuq_wide;\n"
        "\tld.volatile.global.u32 %gpuq_i, [gpuq_check];\n"
        "\tsetp.ne.u32 %gpuq_p, %gpuq_i, 0;\n"
        "\t@%gpuq_p exit;\n"
        "\tsetp.eq.u32 %gpuq_p, %gpuq_n, 0;\n"
        "\t@%gpuq_p ret;\n"
        "\tsetp.lt.u32 %gpuq_p, %gpuq_a, %gpuq_low;\n"
        "\t@%gpuq_p bra gpuq_check_bad;\n"
        "\tsetp.ge.u32 %gpuq_p, %gpuq_a, %gpuq_high;\n"
        "\t@%gpuq_p bra gpuq_check_bad;\n"
        "\tsub.u32 %gpuq_i, %gpuq_high, %gpuq_a;\n"
        "\tsetp.le.u32 %gpuq_p, %gpuq_n, %gpuq_i;\n"
        "\t@%gpuq_p ret;\n"
        "gpuq_check_bad:\n"
        "\tcvt.u64.u32 %gpuq_wide, %gpuq_a;\n"
        "\tmov.u32 %gpuq_i, 2;\n"
        "\tcall gpuq_check_end, (%gpuq_wide, %gpuq_n, %gpuq_s, %gpuq_i, %gpuq_low, %gpuq_high);\n"
        "\tret;\n}\n";

static const char generic_begin[] =
        ".func gpuq_check_generic(.reg .b64 %gpuq_a, .reg .b32 %gpuq_n, .reg .b32 %gpuq_w, "
        ".reg .b32 %gpuq_s, .reg .b32 %gpuq_low, .reg .b32 %gpuq_high)\n{\n"
        "\t.reg .pred %gpuq_p;\n"
        "\t.reg .b32 %gpuq_short;\n"
        "\t.reg .b64 %gpuq_o;\n"
        "\tisspacep.shared %gpuq_p, %gpuq_a;\n"
        "\t@!%gpuq_p bra gpuq_check_wide;\n"
        "\tcvta.to.shared.u64 %gpuq_o, %gpuq_a;\n"
        "\tcvt.u32.u64 %gpuq_short, %gpuq_o;\n"
        "\tcall gpuq_check_shared, (%gpuq_short, %gpuq_n, %gpuq_s, %gpuq_low, %gpuq_high);\n"
        "\tret;\n"
        "gpuq_check_wide:\n"
        "\tisspacep.local %gpuq_p, %gpuq_a;\n"
        "\t@%gpuq_p ret;\n";

static const char generic_last[] =
        "\tcall gpuq_check_global, (%gpuq_a, %gpuq_n, %gpuq_w, %gpuq_s);\n"
        "\tret;\n}\n";

void check_functions_declare(FILE *out) {
        fprintf(out, ".visible .global .align 16 .b8 " CHECK_NAME "[%zu];\n%s",
                sizeof(CheckVariable), heads);
}

static void print_own_range(FILE *out, unsigned long long n_bytes) {
        fprintf(out,
                "%s"
                "\tsetp.lt.u64 %%gpuq_p, %%gpuq_o, %llu;\n"
                "\tsetp.le.u64 %%gpuq_q, %%gpuq_e, %llu;\n"
                "\tand.pred %%gpuq_p, %%gpuq_p, %%gpuq_q;\n"
                "\t@%%gpuq_p ret;\n",
                own_range, n_bytes, n_bytes);
}

static void print_variable(FILE *out, const PtxVariable *variable) {
        const char *space = variable->space == PTX_CONST ? "const" : "global";

        fprintf(out, "\tmov.u64 %%gpuq_begin, %.*s;\n\tcvta.%s.u64 %%gpuq_begin, %%gpuq_begin;\n",
                (int)variable->name.n, variable->name.s, space);
        print_own_range(out, ptx_variable_size(variable));
}

static void print_global(FILE *out, const PtxModule *module, PtxToken text) {
        fputs(global_begin, out);
        for (size_t i = 0; i < module->n_variables; i++) {
                const PtxVariable *variable = &module->variables[i];

                if ((variable->space == PTX_GLOBAL || variable->space == PTX_CONST) &&
                    ptx_variable_size(variable) > 0)
                        print_variable(out, variable);
        }
        if (ptx_token_has(text, "%envreg")) {
                fputs(grid_words, out);
                print_own_range(out, GRID_WORDS_BYTES);
        }
        fputs(global_end, out);
}

static void print_generic(FILE *out, PtxToken text) {
        fputs(generic_begin, out);
        if (ptx_token_has(text, "cvta.param"))
                fputs("\tisspacep.param %gpuq_p, %gpuq_a;\n\t@%gpuq_p ret;\n", out);
        if (ptx_token_has(text, "mapa"))
                fputs("\tisspacep.shared::cluster %gpuq_p, %gpuq_a;\n\t@%gpuq_p ret;\n", out);
        fputs(generic_last, out);
}

void check_functions_define(FILE *out, const PtxModule *module, PtxToken text) {
        fprintf(out, "\n%s", end);
        print_global(out, module, text);
        fputs(written, out);
        fputs(shared, out);
        print_generic(out, text);
}
