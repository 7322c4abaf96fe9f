/* SPDX-License-Identifier: GPL-2.0 */
/* The version of this build. Alone in its object, so that a commit makes one object anew and not all. */
#ifndef WEIR_USER_BASE_VERSION_H
#define WEIR_USER_BASE_VERSION_H

extern const char weir_version[];
/* With the program's name in front, as --version prints it. */
extern const char weir_version_line[];

#endif
