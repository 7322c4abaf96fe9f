/* SPDX-License-Identifier: GPL-2.0 */
/* The agent's log: one line an event on stderr, "weir: LEVEL: ...". */
#ifndef WEIR_USER_AGENT_LOG_H
#define WEIR_USER_AGENT_LOG_H

void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
