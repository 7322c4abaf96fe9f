/* SPDX-License-Identifier: GPL-2.0 */
#include "cli/setter.h"

#include "base/choice.h"
#include "cli/cli.h"

void setter_mode(const struct argp_state *state, json_t *object, const struct setter *o, char *arg)
{
	struct error err;
	int ret = choice_parse(o->choice, arg, &err);

	cli_check(state, ret < 0 ? ret : 0, o->option, &err);
	json_object_set_new(object, o->member, json_string(arg));
}

void setter_count(const struct argp_state *state, json_t *object, const struct setter *o, char *arg)
{
	cli_set_count(state, object, o->member, o->option, o->most, arg);
}

void setter_true(const struct argp_state *state __attribute__((unused)), json_t *object, const struct setter *o,
		 char *arg __attribute__((unused)))
{
	json_object_set_new(object, o->member, json_true());
}

void setter_whole(const struct argp_state *state, json_t *object, const struct setter *o, char *arg)
{
	cli_set_whole(state, object, o->member, o->option, arg);
}

error_t setters_apply(const struct setter *setters, size_t n, const struct argp_state *state, json_t *object, int key,
		      char *arg)
{
	for (size_t i = 0; i < n; i++) {
		if (setters[i].key != key)
			continue;
		setters[i].set(state, object, &setters[i], arg);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}
