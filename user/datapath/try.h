/* SPDX-License-Identifier: GPL-2.0 */
/* What this kernel takes of weir: asked without a datapath. */
#ifndef WEIR_USER_DATAPATH_TRY_H
#define WEIR_USER_DATAPATH_TRY_H

#include "base/error.h"

#define DATAPATH_KERNEL_BTF "/sys/kernel/btf/vmlinux"

/* -EOPNOTSUPP: this kernel is too old, or does not describe its types. */
int datapath_kernel_check(struct error *err);
/* -EPERM: this process may not load programs; the error says what it lacks, and what to do. */
int datapath_permission_check(struct error *err);
/* Can anything be pinned there? Mounts the usual bpffs if it is not there. */
int datapath_pins_check(const char *pin_dir, struct error *err);

/*
 * Loads the programs, and lets them go. no_hold: why the kernel refuses the one that holds what cannot be read; "": it takes it.
 * -EPERM: whoever asks may not load programs.
 */
int datapath_try(struct error *no_hold, struct error *err);
/* Does the kernel make SYN cookies for XDP? 1: it does. A negative errno: it cannot be told. */
int datapath_try_cookies(void);

#endif
