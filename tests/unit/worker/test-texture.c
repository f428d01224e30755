/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture objects: which are the same, how long they live, and what a device refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/texture.h"

/* ---- a driver that counts --------------------------------------------------------- */

static unsigned n_made, n_destroyed;
static CUDA_RESOURCE_DESC last_resource;
static CUDA_TEXTURE_DESC last_sampler;
static CUresult answer;

static CUresult create(CUtexObject *ret_texture, const CUDA_RESOURCE_DESC *resource,
                       const CUDA_TEXTURE_DESC *sampler, const CUDA_RESOURCE_VIEW_DESC *view) {
        assert_null(view);
        last_resource = *resource;
        last_sampler = *sampler;
        if (answer == CUDA_SUCCESS)
                *ret_texture = ++n_made;
        return answer;
}

static CUresult destroy(CUtexObject texture) {
        assert_in_range(texture, 1, n_made);
        n_destroyed++;
        return CUDA_SUCCESS;
}

static CUresult name(CUresult result, const char **ret_name) {
        *ret_name = "CUDA_ERROR";
        return CUDA_SUCCESS;
}

static const Driver driver = {
        .cuTexObjectCreate = create,
        .cuTexObjectDestroy = destroy,
        .cuGetErrorName = name,
        .cuGetErrorString = name,
};
static Context context = {
        .cu = &driver,
        .limits = {.max_texture_line = 1000,
                   .max_texture = {100, 50},
                   .max_texture_pitch = 4096,
                   .texture_alignment = 512,
                   .texture_pitch_alignment = 32},
};
static Textures textures;

static const TextureShape line = {.format = TEXTURE_U16, .channels = 2, .width = 100};
static const TextureShape plane = {
        .format = TEXTURE_F32,
        .channels = 1,
        .width = 10,
        .height = 3,
        .pitch = 64,
        .linear = true,
        .normalized = true,
        .address = {TEXTURE_WRAP, TEXTURE_BORDER},
};

static int setup(void **state) {
        n_made = n_destroyed = 0;
        answer = CUDA_SUCCESS;
        textures_init(&textures, &context);
        return 0;
}

static int teardown(void **state) {
        textures_clear(&textures);
        assert_int_equal(n_made, n_destroyed);
        assert_int_equal(textures.n_idle, 0);
        return 0;
}

static Texture *take(const TextureShape *shape, CUdeviceptr address) {
        Failure failure = {0};
        Texture *texture = NULL;

        assert_int_equal(textures_take(&textures, shape, address, &texture, &failure), 0);
        return texture;
}

/* ---- tests ------------------------------------------------------------------------ */

static void the_driver_gets_what_the_argument_says(void **state) {
        TextureShape shape = line;

        textures_release(&textures, take(&line, 0x1000));
        assert_int_equal(last_resource.resType, CU_RESOURCE_TYPE_LINEAR);
        assert_int_equal(last_resource.res.linear.devPtr, 0x1000);
        assert_int_equal(last_resource.res.linear.format, CU_AD_FORMAT_UNSIGNED_INT16);
        assert_int_equal(last_resource.res.linear.numChannels, 2);
        assert_int_equal(last_resource.res.linear.sizeInBytes, 400);
        assert_int_equal(last_sampler.flags, CU_TRSF_READ_AS_INTEGER);
        shape.to_float = true;
        textures_release(&textures, take(&shape, 0x1000));
        assert_int_equal(last_sampler.flags, 0);

        textures_release(&textures, take(&plane, 0x2000));
        assert_int_equal(last_resource.resType, CU_RESOURCE_TYPE_PITCH2D);
        assert_int_equal(last_resource.res.pitch2D.devPtr, 0x2000);
        assert_int_equal(last_resource.res.pitch2D.format, CU_AD_FORMAT_FLOAT);
        assert_int_equal(last_resource.res.pitch2D.width, 10);
        assert_int_equal(last_resource.res.pitch2D.height, 3);
        assert_int_equal(last_resource.res.pitch2D.pitchInBytes, 64);
        assert_int_equal(last_sampler.addressMode[0], CU_TR_ADDRESS_MODE_WRAP);
        assert_int_equal(last_sampler.addressMode[1], CU_TR_ADDRESS_MODE_BORDER);
        assert_int_equal(last_sampler.filterMode, CU_TR_FILTER_MODE_LINEAR);
        assert_int_equal(last_sampler.flags, CU_TRSF_NORMALIZED_COORDINATES);
}

static void the_same_memory_and_shape_is_the_same_object(void **state) {
        Texture *first = take(&line, 0x1000), *again = take(&line, 0x1000);

        assert_ptr_equal(first, again);
        textures_release(&textures, first);
        textures_release(&textures, again);
        assert_ptr_equal(take(&line, 0x1000), first);
        textures_release(&textures, first);
        assert_int_equal(n_made, 1);

        textures_release(&textures, take(&line, 0x2000));
        textures_release(&textures, take(&plane, 0x1000));
        assert_int_equal(n_made, 3);
        assert_int_equal(n_destroyed, 0);
}

/* A kernel in flight has the handle. */
static void one_in_use_outlives_the_addresses_it_was_made_for(void **state) {
        Texture *old = take(&line, 0x1000), *new;

        textures_release(&textures, take(&line, 0x2000));
        textures_forget_addresses(&textures);
        assert_int_equal(n_destroyed, 1); /* the idle one */
        new = take(&line, 0x1000);
        assert_ptr_not_equal(new, old);
        textures_release(&textures, old);
        assert_int_equal(n_destroyed, 2);
        textures_release(&textures, new);
        assert_int_equal(n_destroyed, 2);
}

static void idle_ones_are_few(void **state) {
        Texture *busy = take(&line, 512);

        for (unsigned i = 2; i < 3 * TEXTURES_MAX; i++)
                textures_release(&textures, take(&line, 512 * (CUdeviceptr)i));
        assert_true(textures.n_idle <= TEXTURES_MAX);
        assert_ptr_equal(take(&line, 512), busy);
        textures_release(&textures, busy);
        textures_release(&textures, busy);
        assert_true(textures.n_idle <= TEXTURES_MAX);
}

static void what_the_driver_refuses_is_told(void **state) {
        Failure failure = {0};
        Texture *texture = NULL;

        answer = CUDA_ERROR_INVALID_VALUE;
        assert_int_equal(textures_take(&textures, &line, 0x1000, &texture, &failure),
                         FAILURE_E_SET);
        assert_non_null(strstr(failure.text, "cuTexObjectCreate"));
        assert_null(texture);
        failure_clear(&failure);
        answer = CUDA_SUCCESS;
        assert_int_equal(textures_take(&textures, &line, 0x1100, &texture, &failure),
                         FAILURE_E_SET);
        assert_int_equal(failure.code, GPUQ__V1__CODE__E_INVALID);
        assert_non_null(strstr(failure.text, "256 bytes behind a multiple of 512 bytes"));
        failure_clear(&failure);
        assert_int_equal(n_made, 0);
}

static void assert_limit(TextureShape shape, const char *why) {
        char text[256] = "";

        assert_false(texture_check_limits(&shape, &context.limits, text, sizeof(text)));
        assert_non_null(strstr(text, why));
}

static void what_the_device_lacks_is_told_with_its_limits(void **state) {
        TextureShape shape = line;
        char text[256];

        assert_true(texture_check_limits(&line, &context.limits, text, sizeof(text)));
        assert_true(texture_check_limits(&plane, &context.limits, text, sizeof(text)));
        shape.width = 1001;
        assert_limit(shape, "a texture of 1001 texels; this device takes 1000");
        shape = plane;
        shape.width = 101;
        shape.pitch = 512;
        assert_limit(shape, "101 x 3 texels with a pitch of 512 bytes; this device takes 100 x 50");
        shape = plane;
        shape.height = 51;
        assert_limit(shape, "10 x 51 texels");
        shape = plane;
        shape.pitch = 8192;
        assert_limit(shape, "a pitch of 8192 bytes");
        shape.pitch = 48;
        assert_limit(shape, "on this device it must be a multiple of 32 bytes");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(the_driver_gets_what_the_argument_says, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(the_same_memory_and_shape_is_the_same_object, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(one_in_use_outlives_the_addresses_it_was_made_for,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(idle_ones_are_few, setup, teardown),
                cmocka_unit_test_setup_teardown(what_the_driver_refuses_is_told, setup, teardown),
                cmocka_unit_test_setup_teardown(what_the_device_lacks_is_told_with_its_limits,
                                                setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
