/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Module
 *
 * An image is sent in a memfd that the daemon created. The client fills and then seals it, so that
 * no process can change it while the compiler reads it.
 */

#include "module.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "error.h"
#include "headers.h"
#include "place.h"
#include "util/kernel-name.h"
#include "util/near.h"
#include "util/symbol.h"
#include "util/write_all.h"

#define MODULE_NAME_MAX 256 /* bytes, of the protocol */
#define MODULE_CHECK    "--check"
#define MODULE_SEALS    (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

/* ---- loading ------------------------------------------------------------------- */

/* A length is an argument of 8 bytes. If a newer daemon describes other lengths, only its
 * worker checks them. */
static void module_read_needs(const Gpuq__V1__KernelInfo *kernel, Need *needs) {
        need_parse(kernel->text, needs, kernel->n_parameters);
        for (size_t i = 0; i < kernel->n_parameters; i++)
                for (size_t k = 0; k < needs[i].n_lengths; k++)
                        if (kernel->parameters[needs[i].lengths[k]]->kind != GPUQ__V1__KIND__I64 ||
                            kernel->parameters[needs[i].lengths[k]]->size != sizeof(uint64_t))
                                needs[i].element = 0;
}

static int module_copy_parameters(gpuq_module *module) {
        const Gpuq__V1__ModuleReady *ready = module->ready;
        size_t n = 0;

        for (size_t i = 0; i < ready->n_kernels; i++)
                n += ready->kernels[i]->n_parameters;

        module->first = calloc(ready->n_kernels + 1, sizeof(*module->first));
        module->parameters = calloc(n + 1, sizeof(*module->parameters));
        module->needs = calloc(n + 1, sizeof(*module->needs));
        if (!module->first || !module->parameters || !module->needs)
                return error_memory();

        n = 0;
        for (size_t i = 0; i < ready->n_kernels; i++) {
                module->first[i] = n;
                module_read_needs(ready->kernels[i], module->needs + n);
                for (size_t j = 0; j < ready->kernels[i]->n_parameters; j++)
                        module->parameters[n++] = (gpuq_parameter){
                                .kind = (gpuq_kind)ready->kernels[i]->parameters[j]->kind,
                                .size = ready->kernels[i]->parameters[j]->size,
                        };
        }
        return 0;
}

static void module_free_memory(gpuq_module *module) {
        reply_freep(&module->reply);
        if (module->load)
                gpuq__v1__module_load__free_unpacked(module->load, NULL);
        free(module->log);
        free(module->first);
        free(module->parameters);
        free(module->needs);
        free(module);
}

static int module_copy_load(gpuq_module *module, const Gpuq__V1__ModuleLoad *load) {
        _cleanup_(freep) uint8_t *packed = NULL;
        size_t n;

        packed = malloc(gpuq__v1__module_load__get_packed_size(load) + 1);
        if (!packed)
                return error_memory();

        n = gpuq__v1__module_load__pack(load, packed);
        module->load = gpuq__v1__module_load__unpack(NULL, n, packed);
        return module->load ? 0 : error_memory();
}

static int module_new(gpuq_client *client, const Gpuq__V1__ModuleLoad *load,
                      Gpuq__V1__Reply **reply, gpuq_module **ret_module) {
        gpuq_module *module;
        int r;

        module = calloc(1, sizeof(*module));
        if (!module)
                return error_memory();

        module->refs = 1;
        module->ready = (*reply)->module;
        module->id = module->ready->module;
        module->reply = TAKE_PTR(*reply);
        r = module_copy_parameters(module);
        if (r == 0)
                r = module_copy_load(module, load);
        if (r < 0) {
                module_free_memory(module);
                return r;
        }

        module->client = client_ref(client);
        TAILQ_INSERT_TAIL(&client->modules->loaded, module, modules);
        *ret_module = module;
        return 0;
}

static void module_unload(gpuq_client *client, uint64_t id) {
        Gpuq__V1__ModuleUnload unload = GPUQ__V1__MODULE_UNLOAD__INIT;

        if (client->error != 0)
                return;

        unload.module = id;
        if (client_send(client, GPUQ__V1__REQUEST__BODY_MODULE_UNLOAD, &unload, NULL) == 0)
                client_flush(client);
}

static int module_load(gpuq_client *client, Gpuq__V1__ModuleLoad *load, gpuq_module **ret_module) {
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        uint64_t id;
        int r;

        r = call_run(client, GPUQ__V1__REQUEST__BODY_MODULE_LOAD, load,
                     GPUQ__V1__REPLY__BODY_MODULE, CLIENT_FOREVER, &reply, NULL);
        if (r < 0)
                return r;

        id = reply->module->module;
        r = module_new(client, load, &reply, ret_module);
        if (r < 0)
                module_unload(client, id);
        return r;
}

static int module_write(int fd, const gpuq_code *code, const Headers *headers) {
        int r;

        r = write_all(fd, code->image, code->n_image, 0);
        if (r == 0)
                r = write_all(fd, headers->bytes, headers->n_bytes, (int64_t)code->n_image);
        if (r < 0)
                return error_set(GPUQ_E_SYSTEM, "cannot write a module's image: %s", strerror(-r));
        if (fcntl(fd, F_ADD_SEALS, MODULE_SEALS) < 0)
                return error_system("cannot seal a module's image");
        return 0;
}

/* Gives up the lock while it copies: an image may be many megabytes. */
static int module_upload(gpuq_client *client, const gpuq_code *code, const Headers *headers,
                         Upload *upload) {
        _cleanup_(closep) int fd = -1;
        int r;

        r = place_image(client, code->n_image + headers->n_bytes, &upload->id, &fd);
        if (r < 0)
                return r;

        TAILQ_INSERT_TAIL(&client->modules->uploads, upload, uploads);
        pthread_mutex_unlock(&client->lock);
        r = module_write(fd, code, headers);
        pthread_mutex_lock(&client->lock);
        if (r < 0) {
                TAILQ_REMOVE(&client->modules->uploads, upload, uploads);
                arena_close(client, upload->id);
        }
        return r;
}

static int module_load_image(gpuq_client *client, Gpuq__V1__ModuleLoad *load, const gpuq_code *code,
                             const Headers *headers, gpuq_module **ret_module) {
        Upload upload;
        int r;

        r = module_upload(client, code, headers, &upload);
        if (r < 0)
                return r;

        load->image = upload.id;
        r = module_load(client, load, ret_module);
        TAILQ_REMOVE(&client->modules->uploads, &upload, uploads);
        if (r < 0)
                arena_close(
                        client,
                        load->image); /* rejected before the daemon consumed it, or unknown there */
        return r;
}

static bool module_is_path(const char *image, size_t n_image) {
        static const char *const endings[] = {".cu", ".ptx", ".cubin", ".fatbin"};
        char path[PATH_MAX];

        if (n_image >= sizeof(path) || memchr(image, '\n', n_image))
                return false;
        memcpy(path, image, n_image);
        path[n_image] = '\0';
        if (strlen(path) < n_image || strpbrk(path, "{;#"))
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
                if (n_image > strlen(endings[i]) &&
                    strcmp(path + n_image - strlen(endings[i]), endings[i]) == 0)
                        return true;
        return access(path, F_OK) == 0;
}

static int module_check(const gpuq_code *code) {
        if ((unsigned)code->format > GPUQ_FORMAT_FATBIN && code->format != GPUQ_FORMAT_OPENCL)
                return error_set(GPUQ_E_INVALID, "unknown module format %d", (int)code->format);
        if (!code->image || code->n_image == 0)
                return error_set(GPUQ_E_INVALID, "the module's code is empty: pass CUDA C++ "
                                                 "source, PTX, a cubin or a fatbin");
        if (module_is_path(code->image, code->n_image))
                return error_set(GPUQ_E_INVALID,
                                 "the module's code is \"%.*s\", which is a file name: read the "
                                 "file and pass its contents",
                                 (int)code->n_image, (const char *)code->image);
        if (code->name && strlen(code->name) > MODULE_NAME_MAX)
                return error_set(GPUQ_E_INVALID, "the module's name is longer than %d bytes",
                                 MODULE_NAME_MAX);
        return 0;
}

static size_t module_count(const char *const *list) {
        size_t n = 0;

        while (list && list[n])
                n++;
        return n;
}

/* Notes stand before the compiler's log, or behind its errors, which they may explain. */
static int module_add_notes(const char *notes, int error, gpuq_module **module) {
        _cleanup_(freep) char *text = NULL;

        if (!notes || (error < 0 && error != GPUQ_E_COMPILE))
                return error;
        if (error < 0) {
                text = strdup(gpuq_error_text());
                return text ? error_set(error, "%s\n%s", text, notes) : error;
        }
        if (asprintf(&text, "%s%s%s", notes, *(*module)->ready->log ? "\n" : "",
                     (*module)->ready->log) >= 0)
                (*module)->log = TAKE_PTR(text);
        return 0;
}

int gpuq_module_load_code(gpuq_client *client, const gpuq_code *code, gpuq_module **ret_module) {
        _cleanup_(headers_clear) Headers headers = {0};
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;
        int r;

        r = module_check(code);
        if (r == 0)
                r = headers_collect(code, &headers);
        if (r < 0)
                return r;
        r = client_enter_open(client);
        if (r < 0)
                return r;

        load.format = (Gpuq__V1__Format)code->format;
        load.length = code->n_image;
        load.header_bytes = headers.n_bytes;
        load.options = headers.options;
        load.n_options = headers.n_options;
        load.names = (char **)code->names;
        load.n_names = module_count(code->names);
        if (code->name)
                load.name = (char *)code->name;
        r = client_leave(client, module_load_image(client, &load, code, &headers, ret_module));
        return module_add_notes(headers.notes, r, ret_module);
}

int gpuq_module_load(gpuq_client *client, gpuq_format format, const void *image, size_t n_image,
                     const char *const *options, const char *name, gpuq_module **ret_module) {
        const gpuq_code code = {
                .format = format,
                .image = image,
                .n_image = n_image,
                .options = options,
                .name = name,
        };

        return gpuq_module_load_code(client, &code, ret_module);
}

static int module_load_builtin(gpuq_client *client, gpuq_module **ret_module) {
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;

        load.format = GPUQ__V1__FORMAT__BUILTIN;
        load.name = "builtin";
        return module_load(client, &load, ret_module);
}

int gpuq_module_builtin(gpuq_client *client, gpuq_module **ret_module) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, module_load_builtin(client, ret_module));
}

int module_find_builtin(gpuq_client *client, gpuq_module **ret_builtin) {
        gpuq_module *builtin;
        int r;

        if (!client->modules->builtin) {
                r = module_load_builtin(client, &builtin);
                if (r < 0)
                        return r;
                if (client->modules->builtin) /* another thread was faster */
                        module_unref(builtin);
                else
                        client->modules->builtin = builtin;
        }
        *ret_builtin = client->modules->builtin;
        return 0;
}

void module_drop_builtin(gpuq_client *client) {
        gpuq_module *builtin = TAKE_PTR(client->modules->builtin);

        if (builtin)
                module_unref(builtin);
}

/* ---- checked modules --------------------------------------------------------------- */

static bool module_is_checked(const gpuq_module *module) {
        for (size_t i = 0; i < module->load->n_options; i++)
                if (strcmp(module->load->options[i], MODULE_CHECK) == 0)
                        return true;
        return false;
}

/* The daemon takes the image of a loaded module once more. */
static int module_load_checked(gpuq_module *module, gpuq_module **ret_checked) {
        Gpuq__V1__ModuleLoad load = *module->load;
        _cleanup_(freep) char **options = calloc(load.n_options + 1, sizeof(*options));

        if (!options)
                return error_memory();

        if (load.n_options > 0)
                memcpy(options, load.options, load.n_options * sizeof(*options));
        options[load.n_options++] = (char *)MODULE_CHECK;
        load.options = options;
        load.module = 0;
        return module_load(module->client, &load, ret_checked);
}

int module_find_checked(gpuq_module *module, gpuq_module **ret_checked) {
        gpuq_module *checked;
        int r;

        if (module_is_checked(module)) {
                *ret_checked = module;
                return 0;
        }
        if (!module->checked) {
                r = module_load_checked(module, &checked);
                if (r < 0)
                        return r;
                if (module->checked) /* another thread was faster */
                        module_unref(checked);
                else
                        module->checked = checked;
        }
        *ret_checked = module->checked;
        return 0;
}

/* ---- asking --------------------------------------------------------------------- */

static const char *module_kernel_name(const void *ready, size_t i) {
        return ((const Gpuq__V1__ModuleReady *)ready)->kernels[i]->name;
}

static const char *module_kernel_symbol(const void *ready, size_t i) {
        const Gpuq__V1__KernelInfo *kernel = ((const Gpuq__V1__ModuleReady *)ready)->kernels[i];

        return *kernel->symbol ? kernel->symbol : kernel->name;
}

static KernelNames module_names(const gpuq_module *module) {
        return (KernelNames){module->ready, module->ready->n_kernels, module_kernel_name,
                             module_kernel_symbol};
}

static void module_list(FILE *file, const gpuq_module *module, const char *name, bool all) {
        const KernelNames names = module_names(module);
        Near near = near_to(name);
        size_t n = 0;

        for (size_t i = 0; i < names.n_kernels; i++) {
                if (!all && !kernel_name_may_be(&names, i, name))
                        continue;
                fprintf(file, "%s%s", n++ > 0 ? ", " : "", module_kernel_name(module->ready, i));
                near_offer(&near, module_kernel_name(module->ready, i));
        }
        if (n == 0)
                fputs("none", file);
        if (all && near.found)
                fprintf(file, "; did you mean \"%s\"?", near.found);
}

static int module_not_found(const gpuq_module *module, const char *name, bool ambiguous) {
        _cleanup_(freep) char *list = NULL;
        size_t n_list = 0;
        FILE *file;

        file = open_memstream(&list, &n_list);
        if (!file)
                return error_memory();
        module_list(file, module, name, !ambiguous);
        if (fclose(file) != 0)
                return error_memory();

        if (ambiguous)
                return error_set(GPUQ_E_NOT_FOUND,
                                 "the name \"%s\" is that of several kernels of the module: %s",
                                 name, list);
        if (strchr(name, '<'))
                return error_set(GPUQ_E_NOT_FOUND,
                                 "the module has no kernel \"%s\"; it has: %s (an instance of a "
                                 "template must be named when the module is loaded)",
                                 name, list);
        return error_set(GPUQ_E_NOT_FOUND, "the module has no kernel \"%s\"; it has: %s", name,
                         list);
}

/* By a name of the load request, which may have typedefs and constants of the source in it. */
static bool module_find_named(const gpuq_module *module, const char *name, size_t *ret_i) {
        const Gpuq__V1__ModuleReady *ready = module->ready;

        for (size_t i = 0; i < module->load->n_names && i < ready->n_named; i++)
                if (ready->named[i] < ready->n_kernels &&
                    kernel_name_equal(module->load->names[i], name)) {
                        *ret_i = ready->named[i];
                        return true;
                }
        return false;
}

static int module_find_index(const gpuq_module *module, const char *name, size_t *ret_i) {
        const KernelNames names = module_names(module);
        int r;

        if (module_find_named(module, name, ret_i))
                return 0;
        r = kernel_name_find(&names, name, ret_i);
        return r ? module_not_found(module, name, r == KERNEL_NAME_E_AMBIGUOUS) : 0;
}

int module_find(gpuq_module *module, const char *name, const Gpuq__V1__KernelInfo **ret_kernel,
                const Need **ret_needs) {
        const Gpuq__V1__ModuleReady *ready = module->ready;
        size_t i = module->last_found;
        int r;

        if (i >= ready->n_kernels || strcmp(ready->kernels[i]->name, name) != 0) {
                r = module_find_index(module, name, &i);
                if (r < 0)
                        return r;
        }

        module->last_found = i;
        *ret_kernel = ready->kernels[i];
        *ret_needs = module->needs + module->first[i];
        return 0;
}

size_t gpuq_module_n_kernels(const gpuq_module *module) {
        return module ? module->ready->n_kernels : 0;
}

int gpuq_module_kernel(const gpuq_module *module, size_t i, gpuq_kernel_info *ret_info) {
        const Gpuq__V1__KernelInfo *kernel;

        if (!module)
                return error_set(GPUQ_E_INVALID, "gpuq_module_kernel(): the module is NULL");
        if (i >= module->ready->n_kernels)
                return error_set(GPUQ_E_NOT_FOUND,
                                 "the module has %zu kernels; there is no kernel with index %zu",
                                 module->ready->n_kernels, i);

        kernel = module->ready->kernels[i];
        *ret_info = (gpuq_kernel_info){
                .name = kernel->name,
                .text = kernel->text,
                .parameters = module->parameters + module->first[i],
                .n_parameters = kernel->n_parameters,
                .kinds_known = kernel->kinds_known,
                .max_block = kernel->max_block,
                .symbol = module_kernel_symbol(module->ready, i),
                .attributes =
                        {
                                .registers = kernel->registers,
                                .shared_bytes = kernel->shared_bytes,
                                .const_bytes = kernel->const_bytes,
                                .local_bytes = kernel->local_bytes,
                                .ptx_version = kernel->ptx_version,
                                .binary_version = kernel->binary_version,
                        },
        };
        return 0;
}

int gpuq_module_find(const gpuq_module *module, const char *name, size_t *ret_i) {
        if (!module || !name)
                return error_set(GPUQ_E_INVALID,
                                 "gpuq_module_find(): the module or the name is NULL");
        return module_find_index(module, name, ret_i);
}

const char *gpuq_module_log(const gpuq_module *module) {
        if (!module)
                return "";
        return module->log ? module->log : module->ready->log;
}

bool gpuq_module_has_variables(const gpuq_module *module) {
        return module && module->ready->has_variables;
}

int gpuq_module_variable_size(const gpuq_module *module, const char *name, size_t *ret_bytes) {
        const Gpuq__V1__ModuleReady *ready;

        if (!module || !name)
                return error_set(GPUQ_E_INVALID,
                                 "gpuq_module_variable_size(): the module or the name is NULL");
        ready = module->ready;
        for (size_t i = 0; i < ready->n_variables; i++)
                if (strcmp(ready->variables[i]->name, name) == 0 ||
                    symbol_matches(ready->variables[i]->name, name)) {
                        *ret_bytes = ready->variables[i]->size;
                        return 0;
                }
        return error_set(GPUQ_E_NOT_FOUND,
                         "the module lists no variable %s; a compiler may have made it a constant",
                         name);
}

/* ---- the end ---------------------------------------------------------------------- */

gpuq_module *module_ref(gpuq_module *module) {
        module->refs++;
        return module;
}

void module_unref(gpuq_module *module) {
        gpuq_client *client = module->client;

        if (--module->refs > 0)
                return;

        if (module->checked)
                module_unref(module->checked);
        TAILQ_REMOVE(&client->modules->loaded, module, modules);
        module_unload(client, module->id);
        module_free_memory(module);
        client_unref(client);
}

static void module_free_forked(gpuq_module *module) {
        gpuq_client *client = module->client;

        if (--module->refs > 0)
                return;

        if (module->checked)
                module_free_forked(module->checked);
        module_free_memory(module);
        client_unref(client);
}

void gpuq_module_free(gpuq_module *module) {
        gpuq_client *client;

        if (!module)
                return;
        if (client_forked(module->client)) {
                module_free_forked(module);
                return;
        }

        client = client_ref(module->client);
        pthread_mutex_lock(&client->lock);
        module_unref(module);
        client_leave(client, 0);
}
