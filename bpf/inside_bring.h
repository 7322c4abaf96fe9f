/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who brings memory that is not there. Only what the kernel brings by itself is waited for: a process (userfaultfd, a file system in user
 * space) or another host may never bring it. The thread would wait for good, where the server itself may never have looked. Nor would the
 * probe go meanwhile: the kernel waits for programs that sleep, and on Linux 6.1 all other threads then wait at the probe.
 */
#ifndef WEIR_BPF_INSIDE_BRING_H
#define WEIR_BPF_INSIDE_BRING_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* EBUSY: somebody changes the process's mappings at this moment, as who makes a huge page of others does. */
#define INSIDE_BUSY (-16)
#define INSIDE_LOOKS 4096 /* at mappings that are busy, at most: some 0.2 ms */

struct inside_mapping {
	__u64 at;
	bool kernel_brings;
};

/* The file systems of mount_type_is_served(). */
static __always_inline bool inside_is_served(const struct file *file)
{
	switch (file->f_inode->i_sb->s_magic) {
	case 0x65735546: /* fuse */
	case 0x6969:	 /* nfs */
	case 0xff534d42: /* cifs */
	case 0xfe534d42: /* smb3 */
	case 0x517b:	 /* smbfs */
	case 0x00c36400: /* ceph */
	case 0x01021997: /* 9p */
	case 0x5346414f: /* afs */
	case 0x6b414653: /* kafs */
		return true;
	default:
		return false;
	}
}

static long inside_look(struct task_struct *task, struct vm_area_struct *vma, struct inside_mapping *mapping)
{
	const struct file *file = vma->vm_file;

	(void)task;
	if (bpf_core_field_exists(vma->vm_userfaultfd_ctx.ctx) && vma->vm_userfaultfd_ctx.ctx)
		return 0;
	mapping->kernel_brings = !file || !inside_is_served(file);
	return 0;
}

static long inside_look_step(__u32 i, struct inside_mapping *mapping)
{
	(void)i;
	return bpf_find_vma(bpf_get_current_task_btf(), mapping->at, inside_look, mapping, 0) != INSIDE_BUSY;
}

/* May this process's memory be waited for, there? */
__noinline bool inside_may_wait(__u64 at)
{
	struct inside_mapping mapping = { .at = at };

	bpf_loop(INSIDE_LOOKS, inside_look_step, &mapping, 0);
	return mapping.kernel_brings;
}

#endif
