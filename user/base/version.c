/* SPDX-License-Identifier: GPL-2.0 */
#include "base/version.h"

const char weir_version[] = WEIR_VERSION;
const char weir_version_line[] = "weir " WEIR_VERSION;
