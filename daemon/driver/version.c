/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/driver.h"

#include <stdio.h>
#include <string.h>

void driver_module_version(char ret_text[static DRIVER_VERSION_TEXT]) {
        FILE *file = fopen("/sys/module/nvidia/version", "re");

        ret_text[0] = '\0';
        if (!file)
                return;
        if (!fgets(ret_text, DRIVER_VERSION_TEXT, file))
                ret_text[0] = '\0';
        ret_text[strcspn(ret_text, "\n")] = '\0';
        fclose(file);
}
