/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_XID_H
#define GPUQ_SUPERVISOR_XID_H

/*
 * Xid
 *
 * Parses an error that NVIDIA's driver reports in one record of the kernel's log. The driver's
 * versions use these forms (krcReportXid_IMPL() of the open kernel modules has the newer ones):
 *
 *     6,1234,5678901,-;NVRM: Xid (PCI:0000:18:00): 31, pid=4711, name=gpuqd-worker, Ch 00000008, …
 *     6,1234,5678901,-;NVRM: Xid (PCI:0000:18:00): 13, pid='<unknown>', name=<unknown>, Graphics …
 *     6,1234,5678901,-;NVRM: Xid (PCI:0000:18:00): 63, pid=1896, Row Remapper: …
 *     6,1234,5678901,-;NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.
 *     6,1234,5678901,-;NVRM: Xid (PCI:0000:18:00 GPU-I:02 GPU-CI:00): 31, pid=4711, …
 *
 * Only records of the kernel's own facility that begin so count. A program that writes to /dev/kmsg
 * never gets that facility, and a record never quotes a program at its beginning. Pure: text in,
 * numbers and text out.
 */

#include <stdbool.h>
#include <stdint.h>

#define XID_TEXT_MAX 200u /* bytes, with the end */

typedef struct Xid {
        uint32_t domain, bus, device; /* of PCI */
        unsigned number;
        int32_t pid;             /* the process whose channel failed; 0: the record names none */
        char text[XID_TEXT_MAX]; /* the driver's text; may be cut, printable */
} Xid;

/** xid_parse() - parse one line. Return: false: it is no Xid. */
bool xid_parse(const char *line, Xid *ret_xid);
/** xid_is_at() - the Xid is of the device with this PCI bus id, as CUDA writes it. */
bool xid_is_at(const Xid *xid, const char *pci);

#endif
