/* SPDX-License-Identifier: GPL-2.0 */
#include "join/asked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "weir/http/identity.h"

#include "base/cleanup.h"
#include "base/output.h"
#include "base/utc.h"
#include "metrics/metrics.h"
#include "model/parse.h"

#define CUT "..." /* as trace_json() marks it */
#define ANONYMOUS "system:anonymous"

void asked_clear(struct asked *asked)
{
	for (int field = 0; field < ASKED_FIELDS; field++)
		free(asked->text[field]);
	*asked = (struct asked){ 0 };
}

static const char *text_of(json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* An empty text is none. */
static int set(struct asked *asked, enum asked_field field, const char *text)
{
	free(asked->text[field]);
	asked->text[field] = text && *text ? output_visible(text) : NULL;
	return text && *text && !asked->text[field] ? -ENOMEM : 0;
}

static int set_address(struct asked *asked, const char *text, struct error *err)
{
	struct datapath_cidr address;

	if (!text || parse_cidr(text, &address, err))
		return error_set(err, -EINVAL, "it has no address");
	memcpy(asked->address, address.address, sizeof(asked->address));
	return 0;
}

static int set_time(json_t *object, const char *key, __u64 *ns, struct error *err)
{
	const char *text = text_of(object, key);

	return text && !utc_parse(text, ns) ? 0 : error_set(err, -EINVAL, "its \"%s\" is not a time", key);
}

/* --- weir's */

static bool is_identified(const char *by, enum weir_identified_by which)
{
	return !strcmp(by, metrics_reasons[weir_identified_reason(which)].label);
}

/* What came by the wire has the user of a header or a token, or none: then the address stands for him, and no verb is known inside. */
int asked_of_request(json_t *request, struct asked *out, struct error *err)
{
	static const char *const keys[ASKED_FIELDS] = {
		"user", "verb", "target", "namespace", "group", "resource", "subresource",
	};
	const char *by = text_of(request, "identified_by");
	int ret;

	*out = (struct asked){ 0 };
	if (!by)
		return error_set(err, -EINVAL, "it has no \"identified_by\"");
	if (!is_identified(by, WEIR_IDENTIFIED_BY_SERVER) && !is_identified(by, WEIR_IDENTIFIED_BY_NOBODY))
		return 1;
	ret = set_time(request, "time", &out->from_ns, err) ?: set_address(out, text_of(request, "client"), err);
	for (int field = 0; field < ASKED_FIELDS && !ret; field++) {
		/* It is visible text already. */
		const char *text = text_of(request, keys[field]);

		out->text[field] = text ? strdup(text) : NULL;
		ret = text && !out->text[field] ? -ENOMEM : 0;
	}
	if (!ret && is_identified(by, WEIR_IDENTIFIED_BY_NOBODY))
		ret = set(out, ASKED_USER, ANONYMOUS);
	if (ret)
		return ret;
	out->to_ns = out->from_ns;
	out->status = json_integer_value(json_object_get(request, "status"));
	return 0;
}

/* --- the server's */

/* Behind proxies it lists whom they name, and last the peer. */
static const char *peer_of(json_t *event)
{
	json_t *addresses = json_object_get(event, "sourceIPs");
	size_t n = json_array_size(addresses);

	return n ? json_string_value(json_array_get(addresses, n - 1)) : NULL;
}

static const char *user_of(json_t *event)
{
	json_t *impersonated = json_object_get(event, "impersonatedUser");

	return text_of(impersonated ?: json_object_get(event, "user"), "username");
}

static int set_times(struct asked *asked, json_t *event, struct error *err)
{
	const char *stage = text_of(event, "stage") ?: "";
	int ret = set_time(event, "requestReceivedTimestamp", &asked->from_ns, err) ?:
			  set_time(event, "stageTimestamp", &asked->to_ns, err);

	asked->open = strcmp(stage, "ResponseComplete") && strcmp(stage, "Panic");
	return ret;
}

int asked_of_audit(json_t *event, struct asked *out, const char **id, struct error *err)
{
	json_t *about = json_object_get(event, "objectRef");
	const char *kind = text_of(event, "kind"), *of_event = text_of(event, "auditID");
	const char *const texts[ASKED_FIELDS] = {
		[ASKED_USER] = user_of(event),
		[ASKED_VERB] = text_of(event, "verb"),
		[ASKED_TARGET] = text_of(event, "requestURI"),
		[ASKED_NAMESPACE] = text_of(about, "namespace"),
		[ASKED_GROUP] = text_of(about, "apiGroup"),
		[ASKED_RESOURCE] = text_of(about, "resource"),
		[ASKED_SUBRESOURCE] = text_of(about, "subresource"),
	};
	int ret;

	*out = (struct asked){ 0 };
	if (!kind || strcmp(kind, "Event") || !of_event)
		return error_set(err, -EINVAL, "not an event of an audit log");
	ret = set_times(out, event, err) ?: set_address(out, peer_of(event), err);
	for (int field = 0; field < ASKED_FIELDS && !ret; field++)
		ret = set(out, field, texts[field]);
	if (ret)
		return ret;
	out->status = json_integer_value(json_object_get(json_object_get(event, "responseStatus"), "code"));
	*id = of_event;
	return 0;
}

/* --- both */

/* A name that weir does not know any more: # and 16 digits. */
static bool is_unknown(const char *text)
{
	return text[0] == '#' && strlen(text) == 17 && strspn(text + 1, "0123456789abcdef") == 16;
}

/* What weir has cut, or does not know, says as much as is there. */
static bool is_same_text(const char *seen, const char *audited)
{
	size_t length;

	if (!seen || !audited)
		return !seen && !audited;
	length = strlen(seen);
	if (is_unknown(seen) || !strcmp(seen, audited))
		return true;
	return length > strlen(CUT) && !strcmp(seen + length - strlen(CUT), CUT) &&
	       !strncmp(seen, audited, length - strlen(CUT));
}

/* The server's audit log takes what it did not know when it began from the body: namespace and name of what is made. */
static bool is_same_field(const struct asked *request, const struct asked *audited, enum asked_field field)
{
	const char *seen = request->text[field], *verb = request->text[ASKED_VERB];

	if (!seen && (field == ASKED_TARGET || (field == ASKED_NAMESPACE && verb && !strcmp(verb, "create"))))
		return true;
	return is_same_text(seen, audited->text[field]);
}

bool asked_alike(const struct asked *request, const struct asked *audited)
{
	if (memcmp(request->address, audited->address, sizeof(request->address)) != 0)
		return false;
	if (request->status && audited->status && request->status != audited->status)
		return false;
	for (int field = 0; field < ASKED_FIELDS; field++)
		if (!is_same_field(request, audited, field))
			return false;
	return true;
}
