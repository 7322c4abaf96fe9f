/* SPDX-License-Identifier: GPL-2.0 */
/* The agent's log: one line an event on stderr, "weir: LEVEL: ...". */
#ifndef WEIR_USER_AGENT_LOG_H
#define WEIR_USER_AGENT_LOG_H

void log_event(const char *level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_info(...) log_event("info", __VA_ARGS__)
#define log_warning(...) log_event("warning", __VA_ARGS__)
#define log_error(...) log_event("error", __VA_ARGS__)

#endif
