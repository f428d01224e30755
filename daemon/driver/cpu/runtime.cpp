/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What images call
 *
 * Each function steps out of the kernel and back in: in between, signals are not
 * the kernel's, and nobody may interrupt it.
 */
#include "driver/cpu/engine_machine.h"
#include "driver/cpu/gang.h"

namespace {

class Outside {
      public:
        Machine &machine;

        Outside() : machine(*static_cast<Machine *>(engine_here())) {
                machine.in_kernel = 0;
        }
        /* Whoever sets the context's error interrupts us afterwards: one of both is seen. */
        ~Outside() {
                machine.in_kernel = 1;
                if (__builtin_expect(context_error(machine.context), 0)) {
                        machine.in_kernel = 0;
                        machine.leave(CUDA_SUCCESS);
                }
        }
};

uint32_t runtime_barrier(GpuqCpuBarrier scope, uint32_t predicate) {
        Outside outside;

        return outside.machine.barrier(scope, predicate);
}

uint64_t runtime_warp(GpuqCpuWarp operation, uint32_t mask, uint64_t value, uint32_t source) {
        Outside outside;

        return outside.machine.warp(operation, mask, value, source);
}

uint32_t runtime_active(const void *site) {
        Outside outside;

        return outside.machine.active(site);
}

void runtime_end() {
        Outside outside;

        outside.machine.end();
}

void runtime_relax(uint32_t now) {
        Outside outside;

        outside.machine.relax(now != 0);
}

/* A block's shared memory lies with its host thread's other thread-local variables. */
void *runtime_shared_of(void *pointer, uint32_t rank) {
        Machine &machine = *static_cast<Machine *>(engine_here());
        const Engine *other = gang_engine(machine.block->gang, machine.block->rank, rank);
        char *address = (char *)pointer;

        if (!other)
                return pointer;
        return (char *)engine_place(other) + (address - (char *)machine.place);
}

void runtime_print(const char *format, va_list arguments) {
        Outside outside;

        context_print(outside.machine.context, format, arguments);
}

void runtime_assertion(const char *text, const char *file, unsigned line, const char *function) {
        Machine &machine = *static_cast<Machine *>(engine_here());
        const GpuqCpuIndex &block = machine.place->block, &thread = machine.place->thread;

        machine.in_kernel = 0;
        machine.leave_saying(
                CUDA_ERROR_ASSERT,
                "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file,
                line, function, block.x, block.y, block.z, thread.x, thread.y, thread.z, text);
}

void runtime_trap() {
        Machine &machine = *static_cast<Machine *>(engine_here());

        machine.in_kernel = 0;
        machine.leave(CUDA_ERROR_LAUNCH_FAILED);
}

uint32_t runtime_named(uint32_t id, uint32_t n, uint32_t predicate, uint32_t waits) {
        Outside outside;

        return outside.machine.barrier_named(id, n, predicate, waits != 0);
}

uint32_t runtime_is_local(uint64_t address) {
        const Machine &machine = *static_cast<Machine *>(engine_here());

        return machine.is_local(address);
}

} // namespace

const GpuqCpuRuntime engine_runtime = {
        runtime_barrier, runtime_warp,      runtime_active,   runtime_end,
        runtime_relax,   runtime_shared_of, runtime_print,    runtime_assertion,
        runtime_trap,    runtime_named,     runtime_is_local,
};
