/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_TESTS_ARRAY_SIZE_H
#define WEIR_TESTS_ARRAY_SIZE_H

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#endif
