/* SPDX-License-Identifier: GPL-2.0 */
/* What libbpf says when something fails, for people. It speaks through one global callback, so this is global, too. */
#ifndef WEIR_USER_SYS_LIBBPF_LOG_H
#define WEIR_USER_SYS_LIBBPF_LOG_H

/* From here on. With WEIR_DEBUG in the environment all of it goes to stderr as well. */
void libbpf_log_begin(void);

/* The first line since then that is about a failure: those after it tell of its consequences. Never NULL. */
const char *libbpf_log_failure(void);

/* The program that the kernel refused to load; NULL: none. */
const char *libbpf_log_refused(void);

/* Why, in the verifier's last words; "" when it has not said anything. */
const char *libbpf_log_verifier(void);

#endif
