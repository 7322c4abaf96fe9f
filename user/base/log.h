/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The agent's log: one line an event on stderr, "weir: LEVEL: ...", or {time, level, message} as JSON. To the journal each line
 * begins with its priority.
 */
#ifndef WEIR_USER_BASE_LOG_H
#define WEIR_USER_BASE_LOG_H

#include <stdbool.h>

/* Before any thread is started. */
void log_json(bool wanted);

void log_event(const char *level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_info(...) log_event("info", __VA_ARGS__)
#define log_warning(...) log_event("warning", __VA_ARGS__)
#define log_error(...) log_event("error", __VA_ARGS__)

#endif
