/* SPDX-License-Identifier: GPL-2.0 */
/* What test_lanes.c and the program in its threads (bpf/asker.bpf.c) share. */
#ifndef WEIR_TESTS_ASKER_H
#define WEIR_TESTS_ASKER_H

#define ASKERS 4

/* What one thread's requests were told. */
struct asker_said {
	unsigned long long admitted, refused, undone;
};

#endif
