/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX that a user wrote, with checks: it is rewritten into text that the reader takes, or refused with a message of one
 * line. Each site has a line.
 */

#include <stdlib.h>
#include <string.h>

#include "compiler/check_rewrite.h"
#include "compiler/ptx/module.h"
#include "input.h"

static void must(bool is_so) {
        if (!is_so)
                abort();
}

static size_t count(const char *text, const char *what) {
        size_t n = 0;

        for (const char *s = text; (s = strstr(s, what)); s++)
                n++;
        return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        _cleanup_(ptx_module_freep) PtxModule *module = NULL;
        _cleanup_(checked_finish) Checked checked = {};
        _cleanup_(freep) char *error = NULL;
        int r;

        r = check_rewrite((const char *)data, n_data, "kernel.cu", &checked, &error);
        must(r == 0 || r == CHECK_REWRITE_E_REFUSED);
        must(r == 0 ? checked.text && checked.sites && !error : error && !strchr(error, '\n'));
        if (r)
                return 0;

        must(count(checked.sites, "\n") * 2 == count(checked.sites, "\t"));
        r = ptx_module_read(checked.text, checked.n_text, &module, &error);
        must(r == 0 || r == PTX_E_INVALID);
        return 0;
}
