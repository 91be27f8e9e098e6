/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/apps.h"

#define ROW(name) &app_##name,

const struct application *const APPLICATIONS[] = {APPS(ROW) NULL};
