/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph
 */
#include "worker/graph.h"

#include <string.h>

#include "worker/library.h"

/* One step's part of the shape. */
typedef struct GraphShape {
        uint32_t kind;
        uint32_t shared_bytes; /* or a fill's width */
        const Function *function;
        uint32_t grid[3], block[3], cluster[3];
        uint32_t cooperative;
        uint64_t length; /* of a copy in bytes, of a fill in elements; of a product its hash */
} GraphShape;

/* What is made a graph of. */
typedef struct GraphRun {
        const Context *context;
        const Program *program;
        const Stream *stream; /* to capture with */
} GraphRun;

void graphs_init(Graphs *graphs, Context *context) {
        *graphs = (Graphs){.context = context};
        TAILQ_INIT(&graphs->list);
}

/* Of whole words, which a shape is. */
static uint64_t graph_hash(const uint8_t *key, size_t n_key) {
        uint64_t hash = 0x9e3779b97f4a7c15u, word;

        for (size_t i = 0; i + sizeof(word) <= n_key; i += sizeof(word)) {
                memcpy(&word, key + i, sizeof(word));
                hash = (hash ^ word) * 0xff51afd7ed558ccdu;
                hash ^= hash >> 32;
        }
        return hash;
}

/* ---- shape -------------------------------------------------------------------- */

size_t graph_key_room(const Program *program) {
        return program->n_steps * sizeof(GraphShape);
}

void graph_key(const Program *program, uint8_t *key) {
        GraphShape *shapes = (GraphShape *)key;

        for (size_t i = 0; i < program->n_steps; ++i) {
                const Step *step = &program->steps[i];
                GraphShape *shape = &shapes[i];

                shape->kind = step->kind;
                if (step->kind == STEP_COPY) {
                        shape->length = step->copy.length;
                } else if (step->kind == STEP_FILL) {
                        shape->length = step->fill.n;
                        shape->shared_bytes = step->fill.width;
                } else if (step->kind == STEP_GEMM) {
                        /* Patching may change it, but usually not to a product of another shape. */
                        shape->length =
                                graph_hash((const uint8_t *)&step->gemm.gemm, GEMM_SHAPE_BYTES);
                } else {
                        shape->function = step->launch.function;
                        shape->shared_bytes = step->launch.shared_bytes;
                        memcpy(shape->grid, step->launch.grid, sizeof(shape->grid));
                        memcpy(shape->block, step->launch.block, sizeof(shape->block));
                        memcpy(shape->cluster, step->launch.cluster, sizeof(shape->cluster));
                        shape->cooperative = step->launch.cooperative;
                }
        }
}

/* ---- arguments ---------------------------------------------------------------------- */

typedef struct GraphPlaces {
        CUdeviceptr to, from;
} GraphPlaces;

typedef struct GraphGemm {
        Gemm gemm;
        GemmPlaces places;
} GraphGemm;

static size_t graph_step_room(const Step *step) {
        size_t n = 0;

        if (step->kind == STEP_GEMM)
                return sizeof(GraphGemm);
        if (step->kind != STEP_LAUNCH)
                return sizeof(GraphPlaces);
        for (size_t i = 0; i < function_n_values(step->launch.function); ++i)
                n += step->launch.function->parameters[i].size;
        return n;
}

/* The parts of a step that patching can change. */
static void graph_step_arguments(const Program *program, const Step *step, uint8_t *arguments) {
        const Function *function = step->launch.function;
        GraphPlaces places = {0};
        GraphGemm gemm;

        if (step->kind == STEP_LAUNCH) {
                for (size_t i = 0; i < function_n_values(function); ++i) {
                        memcpy(arguments, step->launch.values[i], function->parameters[i].size);
                        arguments += function->parameters[i].size;
                }
                return;
        }
        if (step->kind == STEP_GEMM) {
                gemm = (GraphGemm){step->gemm.gemm, program_gemm_places(program, &step->gemm)};
                memcpy(arguments, &gemm, sizeof(gemm));
                return;
        }
        if (step->kind == STEP_COPY)
                places = (GraphPlaces){place_address(&step->copy.to),
                                       place_address(&step->copy.from)};
        else
                places = (GraphPlaces){place_address(&step->fill.to), step->fill.value};
        memcpy(arguments, &places, sizeof(places));
}

static size_t graph_arguments_room(const Program *program) {
        size_t n = 0;

        for (size_t i = 0; i < program->n_steps; ++i)
                n += graph_step_room(&program->steps[i]);
        return n;
}

static void graph_arguments(const Program *program, uint8_t *arguments) {
        for (size_t i = 0; i < program->n_steps; ++i) {
                graph_step_arguments(program, &program->steps[i], arguments);
                arguments += graph_step_room(&program->steps[i]);
        }
}

/* ---- nodes ------------------------------------------------------------------------ */

static CUDA_KERNEL_NODE_PARAMS graph_kernel(const ProgramLaunch *launch) {
        return (CUDA_KERNEL_NODE_PARAMS){
                .func = launch->function->function,
                .gridDimX = launch->grid[0],
                .gridDimY = launch->grid[1],
                .gridDimZ = launch->grid[2],
                .blockDimX = launch->block[0],
                .blockDimY = launch->block[1],
                .blockDimZ = launch->block[2],
                .sharedMemBytes = launch->shared_bytes,
                .kernelParams = launch->values,
        };
}

static CUDA_MEMCPY3D graph_copy(const ProgramCopy *copy) {
        return (CUDA_MEMCPY3D){
                .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                .srcDevice = place_address(&copy->from),
                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                .dstDevice = place_address(&copy->to),
                .WidthInBytes = copy->length,
                .Height = 1,
                .Depth = 1,
        };
}

static CUDA_MEMSET_NODE_PARAMS graph_fill(const ProgramFill *fill) {
        return (CUDA_MEMSET_NODE_PARAMS){
                .dst = place_address(&fill->to),
                .value = fill->value,
                .elementSize = fill->width,
                .width = fill->n,
                .height = 1,
        };
}

static CUresult graph_set_attributes(const Driver *cu, CUgraphNode node,
                                     const ProgramLaunch *launch) {
        CUkernelNodeAttrValue value = {0};
        CUresult result = CUDA_SUCCESS;

        if (launch->cooperative) {
                value.cooperative = 1;
                result = cu->cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                                           &value);
        }
        if (result == CUDA_SUCCESS && launch->cluster[0]) {
                value = (CUkernelNodeAttrValue){
                        .clusterDim = {launch->cluster[0], launch->cluster[1], launch->cluster[2]},
                };
                result = cu->cuGraphKernelNodeSetAttribute(
                        node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value);
        }
        return result;
}

/* A product, as the library's own graph within the job's. */
static CUresult graph_capture(const GraphRun *run, const Step *step, CUgraph *ret_child) {
        const GemmPlaces places = program_gemm_places(run->program, &step->gemm);

        return library_capture_gemm(run->context->library, &step->gemm.gemm, &places,
                                    run->stream->stream, ret_child);
}

static CUresult graph_add_gemm(const GraphRun *run, Graph *graph, size_t i, const Step *step) {
        const Driver *cu = run->context->cu;
        CUgraph child;
        CUresult result = graph_capture(run, step, &child);

        if (result != CUDA_SUCCESS)
                return result;
        result = cu->cuGraphAddChildGraphNode(&graph->nodes[i], graph->graph,
                                              i > 0 ? &graph->nodes[i - 1] : NULL, i > 0, child);
        cu->cuGraphDestroy(child);
        return result;
}

/* Appends a step behind the one before. */
static CUresult graph_add(const GraphRun *run, Graph *graph, size_t i, const Step *step) {
        const Context *context = run->context;
        const Driver *cu = context->cu;
        const CUgraphNode *after = i > 0 ? &graph->nodes[i - 1] : NULL;
        size_t n_after = i > 0;

        if (step->kind == STEP_GEMM)
                return graph_add_gemm(run, graph, i, step);

        if (step->kind == STEP_COPY) {
                CUDA_MEMCPY3D params = graph_copy(&step->copy);

                return cu->cuGraphAddMemcpyNode(&graph->nodes[i], graph->graph, after, n_after,
                                                &params, context->context);
        }
        if (step->kind == STEP_FILL) {
                CUDA_MEMSET_NODE_PARAMS params = graph_fill(&step->fill);

                return cu->cuGraphAddMemsetNode(&graph->nodes[i], graph->graph, after, n_after,
                                                &params, context->context);
        }

        CUDA_KERNEL_NODE_PARAMS params = graph_kernel(&step->launch);
        CUresult result =
                cu->cuGraphAddKernelNode(&graph->nodes[i], graph->graph, after, n_after, &params);

        if (result != CUDA_SUCCESS)
                return result;
        return graph_set_attributes(cu, graph->nodes[i], &step->launch);
}

/* Fails if the library's graph has other nodes than before. */
static CUresult graph_patch_gemm(const GraphRun *run, const Graph *graph, size_t i,
                                 const Step *step) {
        const Driver *cu = run->context->cu;
        CUgraph child;
        CUresult result = graph_capture(run, step, &child);

        if (result != CUDA_SUCCESS)
                return result;
        result = cu->cuGraphExecChildGraphNodeSetParams(graph->exec, graph->nodes[i], child);
        cu->cuGraphDestroy(child);
        return result;
}

static CUresult graph_patch_step(const GraphRun *run, const Graph *graph, size_t i,
                                 const Step *step) {
        const Context *context = run->context;
        const Driver *cu = context->cu;

        if (step->kind == STEP_GEMM)
                return graph_patch_gemm(run, graph, i, step);

        if (step->kind == STEP_COPY) {
                CUDA_MEMCPY3D params = graph_copy(&step->copy);

                return cu->cuGraphExecMemcpyNodeSetParams(graph->exec, graph->nodes[i], &params,
                                                          context->context);
        }
        if (step->kind == STEP_FILL) {
                CUDA_MEMSET_NODE_PARAMS params = graph_fill(&step->fill);

                return cu->cuGraphExecMemsetNodeSetParams(graph->exec, graph->nodes[i], &params,
                                                          context->context);
        }

        CUDA_KERNEL_NODE_PARAMS params = graph_kernel(&step->launch);

        return cu->cuGraphExecKernelNodeSetParams(graph->exec, graph->nodes[i], &params);
}

/* Only steps whose values differ from the last run: patching one costs the driver about as much as
 * a launch. */
static CUresult graph_patch(const Graphs *graphs, Graph *graph, const GraphRun *run,
                            const uint8_t *arguments) {
        const Program *program = run->program;
        bool is_old = graph->generation != graphs->generation;
        uint8_t *given = graph->key + graph->n_key;

        for (size_t i = 0; i < program->n_steps; ++i) {
                size_t n = graph_step_room(&program->steps[i]);

                if (is_old || memcmp(given, arguments, n) != 0) {
                        CUresult result = graph_patch_step(run, graph, i, &program->steps[i]);

                        if (result != CUDA_SUCCESS)
                                return result;
                        memcpy(given, arguments, n);
                }
                given += n;
                arguments += n;
        }
        graph->generation = graphs->generation;
        return CUDA_SUCCESS;
}

static void graph_clear(Graph *graph, const Driver *cu) {
        if (graph->exec)
                cu->cuGraphExecDestroy(graph->exec);
        if (graph->graph)
                cu->cuGraphDestroy(graph->graph);
}

/* ---- the reserve ----------------------------------------------------------------- */

static CUresult graph_make_reserve(Graph *graph, const Driver *cu,
                                   const CUDA_KERNEL_NODE_PARAMS *params, size_t n_steps) {
        CUresult result = cu->cuGraphCreate(&graph->graph, 0);
        CUgraphNode nodes[GRAPH_STEPS];

        for (size_t i = 0; i < n_steps && result == CUDA_SUCCESS; ++i)
                result = cu->cuGraphAddKernelNode(&nodes[i], graph->graph,
                                                  i > 0 ? &nodes[i - 1] : NULL, i > 0, params);
        if (result != CUDA_SUCCESS)
                return result;
        return cu->cuGraphInstantiateWithFlags(&graph->exec, graph->graph, 0);
}

void graphs_reserve(const Graphs *graphs, CUfunction function, void **params) {
        const Driver *cu = graphs->context->cu;
        const CUDA_KERNEL_NODE_PARAMS node = {
                .func = function,
                .gridDimX = 1,
                .gridDimY = 1,
                .gridDimZ = 1,
                .blockDimX = 1,
                .blockDimY = 1,
                .blockDimZ = 1,
                .kernelParams = params,
        };
        Graph all[GRAPHS_MAX + LAUNCHER_MAX] = {0};
        CUresult result = CUDA_SUCCESS;

        /* On the host no launch waits for memory, and this would cost 6,000 allocations at each
         * start. */
        if (cu->cpu || graphs->context->is_green)
                return;
        /* All graphs at once, because memory freed by one would serve the next. */
        for (size_t i = 0; i < ARRAY_SIZE(all) && result == CUDA_SUCCESS; ++i)
                result = graph_make_reserve(&all[i], cu, &node, i < GRAPHS_MAX ? GRAPH_STEPS : 1);
        for (size_t i = 0; i < ARRAY_SIZE(all); ++i)
                graph_clear(&all[i], cu);
}

/* ---- life ----------------------------------------------------------------------------- */

static Graph *graph_free(Graph *graph, const Driver *cu) {
        graph_clear(graph, cu);
        free(graph->nodes);
        free(graph->key);
        free(graph);
        return NULL;
}

static void graphs_remove(Graphs *graphs, Graph *graph) {
        TAILQ_REMOVE(&graphs->list, graph, link);
        --graphs->n;
        graph_free(graph, graphs->context->cu);
}

void graphs_forget_addresses(Graphs *graphs) {
        ++graphs->generation;
}

void graphs_clear(Graphs *graphs) {
        while (!TAILQ_EMPTY(&graphs->list))
                graphs_remove(graphs, TAILQ_FIRST(&graphs->list));
        free(graphs->wanted);
        graphs->wanted = NULL;
        graphs->n_wanted_room = 0;
}

/* Evicts the least recently used graph. Return: whether there is space for one. */
static bool graphs_make_room(Graphs *graphs) {
        Graph *graph;

        if (graphs->n < GRAPHS_MAX)
                return true;
        TAILQ_FOREACH_REVERSE (graph, &graphs->list, GraphsList, link)
                if (graph->n_busy == 0) {
                        graphs_remove(graphs, graph);
                        ++graphs->n_evicted;
                        return true;
                }
        return false;
}

static bool graph_may_run(const Graph *graph, const Stream *stream) {
        return graph->n_busy == 0 || graph->stream == stream;
}

/* The memory of wide launches is another address on each stream, and a texture object may be a new one. */
static bool graph_may_be_same(const Program *program) {
        return program->number && program->n_buffers <= GRAPH_N_ADDRESSES && !program->is_wide &&
               program->n_textures == 0;
}

/* A graph whose last run was this program on the same buffers: shape and arguments need no check. */
static Graph *graphs_find_same(const Graphs *graphs, const Program *program, const Stream *stream) {
        Graph *graph;

        if (!graph_may_be_same(program))
                return NULL;
        TAILQ_FOREACH (graph, &graphs->list, link)
                if (graph_may_run(graph, stream) && graph->program == program->number &&
                    graph->generation == graphs->generation &&
                    memcmp(graph->addresses, program->addresses,
                           program->n_buffers * sizeof(*program->addresses)) == 0)
                        return graph;
        return NULL;
}

static void graph_remember(Graph *graph, const Program *program) {
        graph->program = 0;
        if (!graph_may_be_same(program))
                return;
        graph->program = program->number;
        memcpy(graph->addresses, program->addresses,
               program->n_buffers * sizeof(*program->addresses));
}

/* Of the graphs of this shape, the one that has the arguments already, else the least recently
 * used. */
static Graph *graphs_find(Graphs *graphs, const Stream *stream, size_t n_key, size_t n_arguments,
                          uint64_t hash) {
        Graph *graph, *found = NULL;

        TAILQ_FOREACH (graph, &graphs->list, link) {
                if (!graph_may_run(graph, stream) || graph->hash != hash || graph->n_key != n_key ||
                    memcmp(graph->key, graphs->wanted, n_key) != 0)
                        continue;
                if (memcmp(graph->key + n_key, graphs->wanted + n_key, n_arguments) == 0)
                        return graph;
                found = graph;
        }
        return found;
}

static CUresult graph_build(const GraphRun *run, Graph *graph) {
        const Program *program = run->program;
        const Driver *cu = run->context->cu;
        CUresult result;

        result = cu->cuGraphCreate(&graph->graph, 0);
        for (size_t i = 0; result == CUDA_SUCCESS && i < program->n_steps; ++i)
                result = graph_add(run, graph, i, &program->steps[i]);
        if (result != CUDA_SUCCESS)
                return result;
        return cu->cuGraphInstantiateWithFlags(&graph->exec, graph->graph, 0);
}

static int graphs_make(Graphs *graphs, const GraphRun *run, size_t n_key, size_t n_arguments,
                       uint64_t hash, Graph **ret_graph, Failure *failure) {
        const Program *program = run->program;
        Graph *graph;
        int r;

        if (!graphs_make_room(graphs)) {
                failure_set(failure, GPUQ__V1__CODE__E_LAUNCH, "all graphs are in flight");
                return FAILURE_E_SET;
        }
        graph = calloc(1, sizeof(*graph));
        if (!graph)
                return -ENOMEM;
        graph->n_key = n_key;
        graph->hash = hash;
        graph->generation = graphs->generation;
        graph->key = malloc(n_key + n_arguments);
        graph->nodes = calloc(program->n_steps, sizeof(*graph->nodes));
        if (!graph->key || !graph->nodes) {
                graph_free(graph, graphs->context->cu);
                return -ENOMEM;
        }
        memcpy(graph->key, graphs->wanted, n_key + n_arguments);

        r = result_check(graphs->context->cu, graph_build(run, graph), GPUQ__V1__CODE__E_LAUNCH,
                         "creating a graph", failure);
        if (r) {
                graph_free(graph, graphs->context->cu);
                return r;
        }

        TAILQ_INSERT_HEAD(&graphs->list, graph, link);
        ++graphs->n;
        ++graphs->n_made;
        *ret_graph = graph;
        return 0;
}

static int graphs_want(Graphs *graphs, const Program *program, size_t n_key, size_t n_arguments) {
        if (graphs->n_wanted_room < n_key + n_arguments) {
                uint8_t *wanted = realloc(graphs->wanted, n_key + n_arguments);

                if (!wanted)
                        return -ENOMEM;
                graphs->wanted = wanted;
                graphs->n_wanted_room = n_key + n_arguments;
        }

        memset(graphs->wanted, 0, n_key);
        graph_key(program, graphs->wanted);
        graph_arguments(program, graphs->wanted + n_key);
        return 0;
}

/* While it is in flight it stays, but cannot be found any more, and is evicted first. */
static void graphs_give_up(Graphs *graphs, Graph *graph) {
        if (graph->n_busy == 0) {
                graphs_remove(graphs, graph);
                ++graphs->n_evicted;
                return;
        }
        graph->n_key = 0;
        graph->program = 0;
}

static void graphs_use(Graphs *graphs, Graph *graph) {
        ++graphs->n_reused;
        TAILQ_REMOVE(&graphs->list, graph, link);
        TAILQ_INSERT_HEAD(&graphs->list, graph, link);
}

/* A graph of this shape, patched, or a new one. */
static int graphs_take_like(Graphs *graphs, const Program *program, const Stream *stream,
                            Graph **ret_graph, Failure *failure) {
        size_t n_key = graph_key_room(program), n_arguments = graph_arguments_room(program);
        const GraphRun run = {graphs->context, program, stream};
        uint64_t hash;
        Graph *graph;
        int r;

        r = graphs_want(graphs, program, n_key, n_arguments);
        if (r < 0)
                return r;

        hash = graph_hash(graphs->wanted, n_key);
        graph = graphs_find(graphs, stream, n_key, n_arguments, hash);
        if (graph && graph_patch(graphs, graph, &run, graphs->wanted + n_key) != CUDA_SUCCESS) {
                /* A new one instead; if the context is unusable, creating it reports so. */
                graphs_give_up(graphs, graph);
                graph = NULL;
        }

        if (graph) {
                graphs_use(graphs, graph);
        } else {
                r = graphs_make(graphs, &run, n_key, n_arguments, hash, &graph, failure);
                if (r)
                        return r;
        }

        graph_remember(graph, program);
        *ret_graph = graph;
        return 0;
}

int graphs_take(Graphs *graphs, const Program *program, const Stream *stream, Graph **ret_graph,
                Failure *failure) {
        Graph *graph = graphs_find_same(graphs, program, stream);
        int r;

        if (graph) {
                graphs_use(graphs, graph);
        } else {
                r = graphs_take_like(graphs, program, stream, &graph, failure);
                if (r)
                        return r;
        }

        graph->stream = stream;
        ++graph->n_busy;
        *ret_graph = graph;
        return 0;
}

void graph_release(Graph *graph) {
        if (graph)
                --graph->n_busy;
}
