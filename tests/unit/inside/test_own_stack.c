/* SPDX-License-Identifier: GPL-2.0 */
/* Every program that can be preempted keeps the stack of its own thread (bpf/own_stack.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "inside.skel.h"

static bool is_tail_call(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL) && !insn->src_reg && insn->imm == BPF_FUNC_tail_call;
}

/* Before it is loaded, a program has its own instructions alone: not those of the functions that it calls. */
static bool has_tail_call(const struct bpf_program *program)
{
	const struct bpf_insn *insns = bpf_program__insns(program);

	for (size_t i = 0; i < bpf_program__insn_cnt(program); i++)
		if (is_tail_call(&insns[i]))
			return true;
	return false;
}

static void test_probes(void **state)
{
	struct inside_bpf *inside = inside_bpf__open();
	struct bpf_program *program;
	int probes = 0;

	(void)state;
	assert_non_null(inside);
	bpf_object__for_each_program (program, inside->obj) {
		if (bpf_program__type(program) != BPF_PROG_TYPE_KPROBE)
			continue;
		probes++;
		if (!has_tail_call(program))
			fail_msg("%s lacks own_stack()", bpf_program__name(program));
	}
	assert_true(probes >= 9);
	inside_bpf__destroy(inside);
}

/* The check can fail: other programs have no such call. */
static void test_others(void **state)
{
	struct inside_bpf *inside = inside_bpf__open();

	(void)state;
	assert_non_null(inside);
	assert_false(has_tail_call(inside->progs.weir_inside_sweep));
	assert_true(has_tail_call(inside->progs.weir_inside_end));
	inside_bpf__destroy(inside);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probes),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
