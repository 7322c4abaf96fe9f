/* SPDX-License-Identifier: GPL-2.0 */
/* Texts that do not change and that several have: each has a reference, and the last one to let go frees it. From any thread. */
#ifndef WEIR_USER_BASE_SHARED_TEXT_H
#define WEIR_USER_BASE_SHARED_TEXT_H

/* A copy, with a reference; NULL without memory. */
const char *shared_text(const char *text);
/* One more reference to what shared_text() has made. */
const char *shared_text_again(const char *shared);
/* shared: or NULL */
void shared_text_free(const char *shared);

#endif
