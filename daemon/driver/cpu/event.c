/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/event.h"

#include <time.h>

#include "driver/cpu/api.h"
#include "driver/cpu/stream.h"

#define EVENT_MAGIC   0x65766e74u
#define EVENT_FLAGS   7u
#define EVENT_LOOK_NS 10000000

/* A record of an event in a stream, or a wait for one. */
typedef struct EventWork {
        Work work;
        Event *event;
        uint64_t count;
} EventWork;

static Event *event_unref(Event *event) {
        if (event && --event->n_refs == 0)
                free(event);
        return NULL;
}

void event_release(Event *event) {
        LIST_REMOVE(event, link);
        event->magic = 0;
        event_unref(event);
}

static CUresult event_enter(Event *event, Context **ret_context) {
        CUresult r;

        r = context_enter(ret_context);
        if (r)
                return r;
        if (!event || event->magic != EVENT_MAGIC)
                return CUDA_ERROR_INVALID_HANDLE;

        *ret_context = event->context;
        return (CUresult)event->context->error;
}

static void event_work_free(Work *work) {
        EventWork *event_work = (EventWork *)work;

        event_unref(event_work->event);
        free(event_work);
}

static CUresult event_work_push(Stream *stream, Event *event, uint64_t count,
                                CUresult (*run)(Work *, Stream *)) {
        EventWork *work;

        work = calloc(1, sizeof(*work));
        if (!work)
                return CUDA_ERROR_OUT_OF_MEMORY;

        work->work = (Work){.n_refs = 1, .run = run, .free = event_work_free};
        work->event = event;
        work->count = count;
        event->n_refs++;
        return stream_push(stream, &work->work);
}

static CUresult event_run_record(Work *work, Stream *stream) {
        EventWork *record = (EventWork *)work;
        Event *event = record->event;
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        pthread_mutex_lock(&event->context->lock);
        event->reached = MAX(event->reached, record->count);
        event->time_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
        pthread_cond_broadcast(&event->context->progress);
        pthread_mutex_unlock(&event->context->lock);
        return CUDA_SUCCESS;
}

/* A fault of another context does not wake this one, so the thread polls. */
static void event_sleep(Context *context, Context *other) {
        struct timespec until;

        if (context == other) {
                pthread_cond_wait(&context->progress, &context->lock);
                return;
        }

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += EVENT_LOOK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&context->progress, &context->lock, &until);
}

/* In the stream's thread: an event of a failed or ending context is never reached. */
static CUresult event_run_wait(Work *work, Stream *stream) {
        EventWork *wait = (EventWork *)work;
        Event *event = wait->event;
        Context *context = event->context;

        pthread_mutex_lock(&context->lock);
        while (event->reached < wait->count && !context->error && !stream->context->error)
                event_sleep(context, stream->context);
        pthread_mutex_unlock(&context->lock);
        return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *ret_event, unsigned int flags) {
        Context *context;
        Event *event;
        CUresult r;

        r = context_enter(&context);
        if (r)
                return r;
        if (!ret_event || flags & ~EVENT_FLAGS)
                return CUDA_ERROR_INVALID_VALUE;

        event = calloc(1, sizeof(*event));
        if (!event)
                return CUDA_ERROR_OUT_OF_MEMORY;

        event->magic = EVENT_MAGIC;
        event->context = context;
        event->n_refs = 1;
        event->timed = !(flags & CU_EVENT_DISABLE_TIMING);
        pthread_mutex_lock(&context->lock);
        LIST_INSERT_HEAD(&context->events, event, link);
        pthread_mutex_unlock(&context->lock);
        *ret_event = event;
        return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
        Context *context;
        CUresult r;

        r = event_enter(event, &context);
        if (r)
                return r;

        pthread_mutex_lock(&context->lock);
        event_release(event);
        pthread_mutex_unlock(&context->lock);
        return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream handle) {
        Context *context;
        Stream *stream;
        uint64_t count;
        CUresult r;

        r = event_enter(event, &context);
        if (r)
                return r;
        r = stream_enter(handle, &context, &stream);
        if (r)
                return r;
        if (stream->context != event->context)
                return CUDA_ERROR_INVALID_HANDLE;

        pthread_mutex_lock(&context->lock);
        count = ++event->recorded;
        pthread_mutex_unlock(&context->lock);
        return event_work_push(stream, event, count, event_run_record);
}

CUresult cuEventQuery(CUevent event) {
        Context *context;
        bool reached;
        CUresult r;

        r = event_enter(event, &context);
        if (r)
                return r;

        pthread_mutex_lock(&context->lock);
        reached = event->reached == event->recorded;
        pthread_mutex_unlock(&context->lock);
        return reached ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventElapsedTime(float *ret_milliseconds, CUevent start, CUevent end) {
        Context *context;
        bool reached;
        int64_t ns;
        CUresult r;

        r = event_enter(start, &context);
        if (!r)
                r = event_enter(end, &context);
        if (r)
                return r;
        if (!ret_milliseconds)
                return CUDA_ERROR_INVALID_VALUE;
        if (!start->timed || !end->timed || start->context != end->context)
                return CUDA_ERROR_INVALID_HANDLE;

        pthread_mutex_lock(&context->lock);
        r = start->recorded && end->recorded ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
        reached = start->reached == start->recorded && end->reached == end->recorded;
        ns = end->time_ns - start->time_ns;
        pthread_mutex_unlock(&context->lock);
        if (r)
                return r;
        if (!reached)
                return CUDA_ERROR_NOT_READY;

        *ret_milliseconds = (float)((double)ns / 1e6);
        return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags) {
        Context *context, *event_context;
        Stream *stream;
        uint64_t count;
        CUresult r;

        r = stream_enter(handle, &context, &stream);
        if (!r)
                r = event_enter(event, &event_context);
        if (r)
                return r;
        if (flags > 1)
                return CUDA_ERROR_INVALID_VALUE;

        pthread_mutex_lock(&event_context->lock);
        count = event->recorded;
        pthread_mutex_unlock(&event_context->lock);
        return event_work_push(stream, event, count, event_run_wait);
}
