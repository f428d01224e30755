/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wire
 *
 * See wire.h. This file has its life and its ring; wire_input.c reads, wire_output.c writes.
 */

#include "proto/wire_state.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int wire_new(int fd, bool accept_fds, Wire **ret_wire) {
        Wire *wire;

        wire = calloc(1, sizeof(*wire));
        if (!wire)
                return -ENOMEM;

        wire->fd = fd;
        wire->accept_fds = accept_fds;
        wire->frame_max = WIRE_HELLO_MAX;
        wire->output_max = WIRE_OUTPUT_MAX;
        wire->ring_from = UINT64_MAX;

        *ret_wire = wire;
        return 0;
}

Wire *wire_free(Wire *wire) {
        if (!wire)
                return NULL;

        for (unsigned i = 0; i < wire->n_fds_out; i++)
                close(wire->fds_out[i].fd);
        free(wire->fds_out);
        wire_buffer_release(&wire->output);
        for (unsigned i = 0; i < wire->n_fds_in; i++)
                close(wire->fds_in[i]);
        wire_buffer_release(&wire->stream);
        wire_buffer_release(&wire->input);
        wire_ring_release(&wire->ring);
        if (wire->fd >= 0)
                close(wire->fd);
        free(wire);
        return NULL;
}

int wire_fd(const Wire *wire) {
        return wire->fd;
}

void wire_set_frame_max(Wire *wire, size_t max) {
        wire->frame_max = max;
}

void wire_set_output_max(Wire *wire, size_t max) {
        wire->output_max = max;
}

bool wire_has_ended(const Wire *wire) {
        return wire->has_ended;
}

const char *wire_problem(const Wire *wire) {
        return wire->problem ? wire->problem : "no error";
}

int wire_fail(Wire *wire, const char *problem) {
        if (!wire->problem)
                wire->problem = problem;
        return WIRE_E_PROTOCOL;
}

size_t wire_buffered(const Wire *wire) {
        return wire->input.reach + wire->stream.reach + wire->output.reach;
}

unsigned wire_unread_fds(Wire *wire) {
        return wire->n_fds_out + unread_look(&wire->unread, wire->fd);
}

int wire_release(Wire *wire, Unread *ret_unread) {
        int fd = wire->fd;

        *ret_unread = wire->unread;
        wire->unread = (Unread){};
        wire->fd = -1;
        return fd;
}

void wire_drop_input(Wire *wire) {
        wire_buffer_release(&wire->input);
        wire_buffer_release(&wire->stream);
}

/* ---- the ring -------------------------------------------------------------- */

int wire_make_ring(Wire *wire, uint32_t capacity, int *ret_fd) {
        return wire->ring.map ? -EEXIST : wire_ring_make(&wire->ring, capacity, ret_fd);
}

int wire_adopt_ring(Wire *wire, int fd, uint32_t capacity) {
        return wire->ring.map ? -EEXIST : wire_ring_adopt(&wire->ring, fd, capacity);
}

bool wire_has_ring(const Wire *wire) {
        return wire->ring.map != NULL;
}

void wire_ring_output(Wire *wire) {
        wire->ring_from = wire->position + wire_buffer_used(&wire->output);
}

void wire_ring_input(Wire *wire) {
        wire->is_ringed_in = true;
}

bool wire_is_ringed(const Wire *wire) {
        return wire->is_ringed_in;
}

bool wire_has_input(const Wire *wire) {
        return wire->is_ringed_in && !ring_is_empty(&wire->ring.in);
}

bool wire_sleep(Wire *wire) {
        return !wire->is_ringed_in || ring_sleep(&wire->ring.in);
}

void wire_wake(Wire *wire) {
        if (wire->is_ringed_in)
                ring_wake(&wire->ring.in);
}
