/* SPDX-License-Identifier: Apache-2.0 */
#include "xid.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XID_FACILITY_SHIFT 3 /* below it is the priority; the kernel's facility is 0 */

static bool xid_skip(const char **p, const char *word) {
        size_t n = strlen(word);

        if (strncmp(*p, word, n) != 0)
                return false;
        *p += n;
        return true;
}

/* Digits only: strtoul() would accept blanks and signs. */
static bool xid_number(const char **p, int base, unsigned long max, unsigned long *ret) {
        unsigned char first = (unsigned char)**p;
        unsigned long n;
        char *end;

        if (base == 16 ? !isxdigit(first) : !isdigit(first))
                return false;
        errno = 0;
        n = strtoul(*p, &end, base);
        if (errno || n > max)
                return false;
        *p = end;
        *ret = n;
        return true;
}

/* "6,1234,5678901,-;" */
static bool xid_skip_header(const char **p) {
        unsigned long priority;
        const char *text;

        if (!xid_number(p, 10, UINT32_MAX, &priority) || priority >> XID_FACILITY_SHIFT ||
            **p != ',')
                return false;
        text = strchr(*p, ';');
        if (!text)
                return false;
        *p = text + 1;
        return true;
}

/* "PCI:0000:18:00", possibly followed by the instance of a divided GPU. */
static bool xid_address(const char **p, Xid *xid) {
        unsigned long domain, bus, device;
        const char *end;

        (void)xid_skip(p, "PCI:");
        if (!xid_number(p, 16, UINT32_MAX, &domain) || !xid_skip(p, ":") ||
            !xid_number(p, 16, 0xff, &bus) || !xid_skip(p, ":") ||
            !xid_number(p, 16, 0x1f, &device))
                return false;
        end = strchr(*p, ')');
        if (!end || (**p != ')' && **p != ' '))
                return false;

        *p = end;
        xid->domain = (uint32_t)domain;
        xid->bus = (uint32_t)bus;
        xid->device = (uint32_t)device;
        return true;
}

/* Skips a member that was read or is not needed. */
static void xid_next(const char **p) {
        const char *comma = strstr(*p, ", ");

        *p = comma ? comma + 2 : *p + strlen(*p);
}

static void xid_process(const char **p, Xid *xid) {
        unsigned long pid = 0;

        if (!xid_skip(p, "pid="))
                return;
        if (xid_number(p, 10, INT32_MAX, &pid))
                xid->pid = (int32_t)pid;
        xid_next(p);
        if (xid_skip(p, "name="))
                xid_next(p);
}

/* The kernel itself writes nothing else, but a replacement of its log may. */
static void xid_text(const char *p, char text[static XID_TEXT_MAX]) {
        size_t n = 0;

        for (; *p && n < XID_TEXT_MAX - 1; ++p)
                text[n++] = *p >= ' ' && *p <= '~' ? *p : '?';
        text[n] = '\0';
}

bool xid_parse(const char *line, Xid *ret_xid) {
        const char *p = line;
        unsigned long number;
        Xid xid = {};

        if (!xid_skip_header(&p) || !xid_skip(&p, "NVRM: Xid (") || !xid_address(&p, &xid) ||
            !xid_skip(&p, "): ") || !xid_number(&p, 10, UINT16_MAX, &number))
                return false;
        if (*p && !xid_skip(&p, ", "))
                return false;

        xid.number = (unsigned)number;
        xid_process(&p, &xid);
        xid_text(p, xid.text);
        *ret_xid = xid;
        return true;
}

bool xid_is_at(const Xid *xid, const char *pci) {
        unsigned long domain, bus, device;

        return xid_number(&pci, 16, UINT32_MAX, &domain) && xid_skip(&pci, ":") &&
               xid_number(&pci, 16, 0xff, &bus) && xid_skip(&pci, ":") &&
               xid_number(&pci, 16, 0x1f, &device) && domain == xid->domain && bus == xid->bus &&
               device == xid->device;
}
