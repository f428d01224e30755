/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capture: work that is pushed to a stream becomes nodes of a graph. By the thread that pushes.
 */
#include "driver/cpu/api.h"
#include "driver/cpu/graph.h"
#include "driver/cpu/stream.h"

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
        Context *context;
        Stream *stream;
        CUresult r;

        r = stream_enter(handle, &context, &stream);
        if (r)
                return r;
        if (stream->capture || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
                return CUDA_ERROR_INVALID_VALUE;

        stream->append = graph_append;
        return cuGraphCreate(&stream->capture, 0);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *ret_graph) {
        Context *context;
        Stream *stream;
        CUresult r;

        r = stream_enter(handle, &context, &stream);
        if (r)
                return r;
        if (!stream->capture || !ret_graph)
                return CUDA_ERROR_INVALID_VALUE;

        *ret_graph = TAKE_PTR(stream->capture);
        return CUDA_SUCCESS;
}
