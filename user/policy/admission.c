/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Files of kube-apiserver's admission plugins, as it reads them: EventRateLimit (eventratelimit.admission.k8s.io/v1alpha1) and
 * AdmissionConfiguration (apiserver.config.k8s.io/v1).
 */
#include "weir/limit/rate.h"

#include "model/parse.h"
#include "policy/kinds.h"

/* --- EventRateLimit */

static const char *const event_types[] = { "Server", "Namespace", "User", "SourceAndObject", NULL };
static const char *const covers[] = { "events", "all", NULL };

static const struct field event_limit_fields[] = {
	{ .name = "type",
	  .type = FIELD_TEXT,
	  .required = true,
	  .words = event_types,
	  .help = "One limit for the server, or one for each namespace, user, or source and object." },
	{ .name = "qps",
	  .type = FIELD_NUMBER,
	  .required = true,
	  .min = 1,
	  .max = WEIR_QPS_MAX,
	  .help = "Events a second." },
	{ .name = "burst",
	  .type = FIELD_NUMBER,
	  .required = true,
	  .min = 1,
	  .max = WEIR_BURST_MAX,
	  .help = "Size of the bucket." },
	{ .name = "cacheSize",
	  .type = FIELD_NUMBER,
	  .max = PARSE_KEYS_MAX,
	  .help = "Number of buckets, except for Server. Default: 4096." },
	FIELDS_END,
};
static const struct shape event_limit_shape = { .fields = event_limit_fields };

static const struct field event_fields[] = {
	FIELDS_HEAD,
	{ .name = "limits",
	  .type = FIELD_OBJECT,
	  .list = true,
	  .required = true,
	  .most = WEIR_SERVER_LIMITS,
	  .shape = &event_limit_shape,
	  .help = "Limits. An Event must be within all of them." },
	{ .name = "covers",
	  .type = FIELD_TEXT,
	  .words = covers,
	  .help = "weir's own field: events (the default) or all requests." },
	FIELDS_END,
};
const struct shape policy_event_rate_limit_shape = { .fields = event_fields };

/* --- AdmissionConfiguration: what the other plugins have in it is theirs */

static const struct field plugin_fields[] = {
	{ .name = "name", .type = FIELD_TEXT, .required = true, .help = "EventRateLimit. Other plugins are ignored." },
	{ .name = "path", .type = FIELD_TEXT, .help = "The plugin's file, relative to the directory of this one." },
	FIELDS_IGNORED("configuration"),
	FIELDS_END,
};
static const struct shape plugin_shape = { .fields = plugin_fields };

static const struct field admission_fields[] = {
	FIELDS_HEAD,
	{ .name = "plugins", .type = FIELD_OBJECT, .list = true, .shape = &plugin_shape },
	FIELDS_END,
};
const struct shape policy_admission_shape = { .fields = admission_fields };
