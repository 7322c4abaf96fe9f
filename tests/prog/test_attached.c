/* SPDX-License-Identifier: GPL-2.0 */
/* The tests of all files with ATTACHED_TESTS, on programs that are loaded once; of some files, where these are named. */
#include "attached.h"

int main(int argc, char **argv)
{
	(void)argc;
	return attached_run(argv + 1) ? 1 : 0;
}
