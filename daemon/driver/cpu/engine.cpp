/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/engine.h"

#include <cstdarg>
#include <cstdio>
#include <new>

#include <unistd.h>

#include "driver/cpu/engine_machine.h"
#include "driver/cpu/fault.h"

static thread_local Machine *here;

/* ---- a host thread ------------------------------------------------------------ */

Machine::Machine(struct CUctx_st *context_) : Engine{} {
        context = context_;
        thread = pthread_self();
}

bool Machine::open() {
        threads = new (std::nothrow) Thread[MAX_THREADS];
        return threads != nullptr;
}

Machine::~Machine() {
        for (Fiber *fiber : fibers)
                delete fiber;
        delete[] threads;
}

Engine *engine_new(struct CUctx_st *context) {
        Machine *machine = new (std::nothrow) Machine(context);

        if (!machine)
                return nullptr;
        if (!machine->open() || fault_thread_open() < 0) {
                delete machine;
                return nullptr;
        }

        here = machine;
        context_add_engine(context, machine);
        return machine;
}

Engine *engine_free(Engine *engine) {
        if (!engine)
                return nullptr;

        context_remove_engine(engine->context, engine);
        here = nullptr;
        fault_thread_close();
        delete static_cast<Machine *>(engine);
        return nullptr;
}

Engine *engine_here(void) {
        return here;
}

bool engine_end_kernel(void) {
        return here && here->end_kernel();
}

void engine_leave(CUresult error) {
        here->leave(error);
}

GpuqCpuPlace *engine_place(const Engine *engine) {
        return static_cast<const Machine *>(engine)->place;
}

CUresult engine_run_block(Engine *engine, const EngineBlock *block) {
        return static_cast<Machine *>(engine)->run_block(*block);
}

CUresult engine_run_guarded(Engine *engine, CUresult (*run)(void *), void *argument) {
        return static_cast<Machine *>(engine)->run_guarded(run, argument);
}

/* ---- from the host's stack to a fiber and back ---------------------------------- */

/* For one more fiber, also among the spare ones: no push_back() throws where nobody could catch it. */
bool Machine::make_room() {
        size_t n = fibers.size();

        if (n < fibers.capacity() && n < spare.capacity())
                return true;
        try {
                fibers.reserve(2 * n + 16);
                spare.reserve(2 * n + 16);
        } catch (const std::bad_alloc &) {
                return false;
        }
        return true;
}

Fiber *Machine::take() {
        Fiber *fiber;

        if (!spare.empty()) {
                fiber = spare.back();
                spare.pop_back();
                return fiber;
        }

        if (n_used == fibers.size()) {
                fiber = make_room() ? Fiber::make() : nullptr;
                if (!fiber)
                        return nullptr;
                fibers.push_back(fiber);
        }
        return fibers[n_used++];
}

/* Comes back when the fibers have done everything, or when something left. */
void Machine::enter(Fiber *fiber) {
        error = CUDA_SUCCESS;
        running = fiber;
        host.switch_to(*fiber);
        running = nullptr;
        n_used = 0;
        spare.clear();
}

bool Machine::end_kernel() {
        bool was_in_kernel = in_kernel;

        in_kernel = 0;
        return was_in_kernel;
}

void Machine::leave(CUresult error_) {
        Fiber *from = running;

        error = error_;
        from->leave_to(host);
}

void Machine::leave_saying(CUresult error_, const char *format, ...) {
        char message[2048];
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vsnprintf(message, sizeof(message), format, arguments);
        va_end(arguments);
        if (n >= (int)sizeof(message))
                n = (int)sizeof(message) - 1;
        /* In one piece, beside those of other threads. */
        if (write(STDERR_FILENO, message, (size_t)n) < 0)
                leave(error_);
        leave(error_);
}

void Machine::main_guarded() {
        Machine *machine = here;
        CUresult r;

        machine->in_kernel = 1;
        r = machine->guarded(machine->guarded_argument);
        machine->in_kernel = 0;
        machine->leave(r);
}

CUresult Machine::run_guarded(CUresult (*run)(void *), void *argument) {
        Fiber *fiber = take();

        if (!fiber)
                return CUDA_ERROR_OUT_OF_MEMORY;

        guarded = run;
        guarded_argument = argument;
        fiber->prepare(main_guarded);
        enter(fiber);
        return error;
}

/* A fiber starts threads of the block until all are started. */
void Machine::main_block() {
        Machine *machine = here;
        const EngineBlock *block = machine->block;

        machine->in_kernel = 1;
        if (context_error(machine->context)) {
                machine->in_kernel = 0;
                machine->leave(CUDA_SUCCESS);
        }
        block->entry->threads(block->params);
        machine->in_kernel = 0;

        /* The last of them ended here; others may still stand somewhere. */
        if (!machine->place->waited || !machine->n_alive)
                machine->leave(CUDA_SUCCESS);
        machine->spare.push_back(machine->running);
        machine->go_on(true);
        abort();
}

static uint32_t volume(const GpuqCpuIndex &dim) {
        return dim.x * dim.y * dim.z;
}

CUresult Machine::run_block(const EngineBlock &block_) {
        Fiber *fiber = take();

        if (!fiber)
                return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;

        block = &block_;
        place = block->image->place();
        place->block = block->block;
        place->block_dim = block->block_dim;
        place->grid_dim = block->grid_dim;
        place->cluster_dim = block->cluster_dim;
        place->cluster = block->cluster;
        place->shared_bytes = block->shared_bytes;
        place->next = {0, 0, 0};
        place->n_next = 0;
        place->n_threads = volume(block->block_dim);
        place->waited = 0;
        place->sm = sm;
        place->n_sms = n_sms;
        place->grid_words = block->grid_words;

        fiber->prepare(main_block);
        enter(fiber);
        return error;
}
