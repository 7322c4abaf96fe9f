/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For LD_PRELOAD: a kernel that refuses the BPF program whose name is WEIR_TEST_REFUSE, as one does that cannot follow it; or that takes
 * WEIR_TEST_SLOW seconds for the first one that it checks, as on a slow machine.
 * libbpf makes its system calls by syscall().
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char last_words[] = "0: R1=ctx() R10=fp0\n41: (71) r2 = *(u8 *)(r1 +0)\nR1 has been made up\n"
				 "processed 42 insns (limit 1000000) max_states_per_insn 0 total_states 0\n";

static long refuse(const union bpf_attr *attr)
{
	if (attr->log_level && attr->log_buf)
		snprintf((char *)(uintptr_t)attr->log_buf, attr->log_size, "%s", last_words);
	errno = EACCES;
	return -1;
}

/* In the thread that loads; others go on. */
static void take_time(void)
{
	const char *seconds = getenv("WEIR_TEST_SLOW");
	static bool taken;

	if (seconds && !taken)
		sleep(atoi(seconds));
	taken = true;
}

/* The number is named as unistd.h has it: clang-tidy wants that. */
long syscall(long __sysno, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"), a[6];
	const char *name = getenv("WEIR_TEST_REFUSE");
	va_list args;

	va_start(args, __sysno);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (__sysno == SYS_bpf && a[0] == BPF_PROG_LOAD)
		take_time();
	if (__sysno == SYS_bpf && a[0] == BPF_PROG_LOAD && name) {
		const union bpf_attr *attr = (const union bpf_attr *)a[1];

		/* The kernel keeps as much of a long name. */
		if (!strncmp(attr->prog_name, name, sizeof(attr->prog_name) - 1))
			return refuse(attr);
	}
	return real(__sysno, a[0], a[1], a[2], a[3], a[4], a[5]);
}
