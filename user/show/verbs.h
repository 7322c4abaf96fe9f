/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_SHOW_VERBS_H
#define WEIR_USER_SHOW_VERBS_H

/* What Kubernetes calls it; "" where there is none. verb: enum weir_verb */
const char *verb_name(unsigned int verb);

#endif
