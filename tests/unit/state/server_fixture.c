/* SPDX-License-Identifier: GPL-2.0 */
#include "server_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/cleanup.h"

const char server_with_all[] =
	"{\"name\":\"api\",\"listen\":[\"*:80\",\"[2001:db8::1]:443\"],\"netns\":\"/run/netns/a\",\"netns_cookie\":17,"
	"\"cgroup\":\"/sys/fs/cgroup\",\"trusted_proxies\":[\"10.0.0.0/8\"],\"proxy_protocol\":[\"192.0.2.0/24\"],\"interfaces\":[\"eth0\",\"lo\"],"
	"\"loopback\":\"close\",\"framing\":\"pass\",\"bodies\":\"unread\",\"paths\":\"nginx\",\"namespace_from\":\"prefix=/t/u/\","
	"\"hold\":\"drop\",\"when_full\":\"closed\",\"inside\":\"see\",\"inside_share\":5,\"write_memory\":true,\"hold_max\":7,\"refusals\":\"plain\",\"xdp\":\"native\",\"syn_cookies\":\"xdp\",\"max_retry_after\":60,\"keys\":100,\"dry_run\":true,\"paused\":true,\"draining\":true,"
	"\"identity\":{\"user_header\":\"x-user\",\"group_header\":\"x-group\",\"exempt_groups\":[\"ops\",\"dev\"],"
	"\"exempt_users\":[\"root\",\"2001:db8::/64\"],\"token_file\":\"/etc/t\",\"address_file\":null,"
	"\"addresses\":[\"10.0.0.0/8,ann\"],\"new_subjects\":\"0.5:7\"},\"limits\":["
	"{\"name\":\"user\",\"qps\":\"0.5\",\"burst\":10,"
	"\"overrides\":[{\"subject\":\"2001:db8::/64\",\"qps\":\"1000000000\",\"burst\":0}],"
	"\"mode\":\"enforce\",\"keys\":5},"
	"{\"name\":\"slow\",\"key\":\"namespace,user\",\"number\":17,\"in_flight\":2,"
	"\"rules\":[{\"groups\":[\"qa\"],\"verbs\":[\"list\"]}],\"mode\":\"dry-run\",\"keys\":0}],"
	"\"last_number\":18,\"priority_levels\":[{\"name\":\"free\",\"exempt\":true},"
	"{\"name\":\"low\",\"shares\":30,\"number\":18}],"
	"\"flow_schemas\":[{\"name\":\"s\",\"level\":\"low\",\"precedence\":7,\"distinguisher\":\"ByUser\","
	"\"rules\":[{\"resources\":[\"pods\"]}]}],\"concurrency\":50,\"list_width\":4,\"list_object_bytes\":250,"
	"\"exempt\":[{\"paths\":[\"/metrics\"]}],\"groups\":[\"\",\"qa\"]}";

int read_server(const char *text, struct server **server, struct error *err)
{
	json_error_t why;
	CLEANUP_JSON json_t *json = json_loads(text, 0, &why);

	assert_non_null(json);
	return server_from_json(json, server, err);
}

struct server *make_server(const char *text)
{
	struct server *server = NULL;

	assert_int_equal(read_server(text, &server, NULL), 0);
	return server;
}

struct server *server_at(const char *name, __u64 cookie, const char *listens)
{
	char text[256];

	snprintf(text, sizeof(text), "{\"name\":\"%s\",\"netns_cookie\":%llu,\"listen\":%s}", name, cookie, listens);
	return make_server(text);
}
