/* SPDX-License-Identifier: GPL-2.0 */
/* For clang-tidy alone, before cmocka's own header, which does not say that an assertion that fails ends the test. */
#ifndef WEIR_TESTS_TIDY_CMOCKA_H
#define WEIR_TESTS_TIDY_CMOCKA_H

#include_next <cmocka.h>

_Noreturn void end_test(void);

#define _assert_true(value, ...) ((value) ? (void)0 : end_test())
#define _assert_int_equal(a, b, ...) ((a) == (b) ? (void)0 : end_test())
#define _fail(...) end_test()

#endif
