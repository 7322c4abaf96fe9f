/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "golang/types.h"

#define METHODS 24 /* of an itab: behind interface, type and hash */
#define MAX_METHODS 4096
#define MAX_ITABS (1U << 20)

static unsigned int methods_of(struct golang *go, const struct type *interface)
{
	__u64 n;

	return image_u64(&go->image, interface->address + 64, &n) && n <= MAX_METHODS ? (unsigned int)n : 0;
}

static bool read_itab(struct golang *go, __u64 address, struct itab *out)
{
	struct itab itab = { .address = address };
	const void *hash = image_at(&go->image, address + 16, 4);
	__u64 interface, type;

	if (!hash || !image_u64(&go->image, address, &interface) || !image_u64(&go->image, address + 8, &type) ||
	    !type_read(go, interface, &itab.interface) || !type_read(go, type, &itab.type) ||
	    itab.interface.kind != TYPE_INTERFACE || memcmp(hash, &itab.type.hash, sizeof(itab.type.hash)) != 0)
		return false;
	*out = itab;
	return true;
}

bool itab_at(struct golang *go, unsigned int i, struct itab *out)
{
	return i < go->build.itabs && read_itab(go, go->itabs[i], out);
}

/* Go 1.27 has the itabs themselves one behind the other, each as long as its interface has methods. */
static int read_in_place(struct golang *go, struct error *err)
{
	__u64 at = go->module.itabs, end = at + go->module.n_itabs;
	unsigned int n = 0, max = (unsigned int)(go->module.n_itabs / 32);
	struct itab itab;

	go->itabs = calloc(max ? max : 1, sizeof(*go->itabs));
	if (!go->itabs)
		return error_set(err, -ENOMEM, "no memory");
	while (at + METHODS < end && n < max) {
		unsigned int methods;

		if (!read_itab(go, at, &itab))
			return error_set(err, -ENOEXEC, "its itabs are damaged, or of an unknown form");
		methods = methods_of(go, &itab.interface);
		go->itabs[n++] = at;
		at += METHODS + 8ULL * (methods ? methods : 1);
	}
	go->build.itabs = n;
	return 0;
}

int itabs_read(struct golang *go, struct error *err)
{
	if (go->module.n_itabs / (go->module.itabs_in_place ? 32 : 1) > MAX_ITABS)
		return error_set(err, -ENOEXEC, "its itabs are damaged");
	if (go->module.itabs_in_place)
		return read_in_place(go, err);
	go->itabs = calloc(go->module.n_itabs ? go->module.n_itabs : 1, sizeof(*go->itabs));
	if (!go->itabs)
		return error_set(err, -ENOMEM, "no memory");
	for (__u64 i = 0; i < go->module.n_itabs; i++)
		if (!image_u64(&go->image, go->module.itabs + 8 * i, &go->itabs[i]))
			return error_set(err, -ENOEXEC, "its itabs are damaged");
	go->build.itabs = (unsigned int)go->module.n_itabs;
	return 0;
}

int itab_find(struct golang *go, const char *package, const char *interface, const char *type, struct itab *out,
	      struct error *err)
{
	unsigned int found = 0;
	struct itab itab;

	for (unsigned int i = 0; i < go->build.itabs; i++) {
		if (!itab_at(go, i, &itab) || !type_is(&itab.interface, interface) || !type_is(&itab.type, type) ||
		    !type_is_of(go, &itab.interface, package) || !type_is_of(go, &itab.type, package))
			continue;
		if (found++)
			return error_set(err, -ENOTUNIQ, "%s as a %s of %s is there more than once", type, interface,
					 package);
		*out = itab;
	}
	return found ? 0 :
		       error_set(err, -ENOENT, "no %s as a %s of %s (there are %u itabs)", type, interface, package,
				 go->build.itabs);
}

__u16 itab_method_offset(unsigned int place)
{
	return (__u16)(METHODS + 8 * place);
}

bool itab_method(struct golang *go, const struct itab *itab, unsigned int place, __u64 *out)
{
	return place < methods_of(go, &itab->interface) &&
	       image_u64(&go->image, itab->address + itab_method_offset(place), out);
}
