/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/offload.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/cleanup.h"

#define FEATURES_MAX 256
#define BLOCKS (FEATURES_MAX / 32)

static const struct {
	const char *name, *feature;
} offloads[OFFLOAD_COUNT] = {
	[OFFLOAD_GRO] = { "gro", "rx-gro" },
	[OFFLOAD_GRO_HW] = { "gro-hw", "rx-gro-hw" },
	[OFFLOAD_LRO] = { "lro", "rx-lro" },
	[OFFLOAD_TSO] = { "tso", "tx-tcp-segmentation" },
	[OFFLOAD_GSO] = { "gso", "tx-generic-segmentation" },
	[OFFLOAD_TC] = { "hw-tc", "hw-tc-offload" },
};

const char *offload_name(enum offload offload)
{
	return offloads[offload].name;
}

static int ask(int fd, const char *device, void *command)
{
	struct ifreq request = { .ifr_data = command };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
	return ioctl(fd, SIOCETHTOOL, &request) ? -errno : 0;
}

/* What the kernel answers stands behind each head. */
union set {
	__u8 room[sizeof(struct ethtool_sset_info) + sizeof(__u32)];
	struct ethtool_sset_info head;
};

union names {
	__u8 room[sizeof(struct ethtool_gstrings) + FEATURES_MAX * ETH_GSTRING_LEN];
	struct ethtool_gstrings head;
};

union features {
	__u8 room[sizeof(struct ethtool_gfeatures) + BLOCKS * sizeof(struct ethtool_get_features_block)];
	struct ethtool_gfeatures head;
};

int offload_read(const char *device, bool on[static OFFLOAD_COUNT])
{
	CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union features features = {};
	union names names = {};
	union set set = {};
	__u32 length;
	int ret;

	set.head.cmd = ETHTOOL_GSSET_INFO;
	set.head.sset_mask = 1ULL << ETH_SS_FEATURES;
	names.head.cmd = ETHTOOL_GSTRINGS;
	names.head.string_set = ETH_SS_FEATURES;
	features.head.cmd = ETHTOOL_GFEATURES;
	features.head.size = BLOCKS;
	ret = fd < 0 ? -errno : ask(fd, device, &set);
	length = set.head.data[0];
	if (!ret && length > FEATURES_MAX)
		ret = -E2BIG;
	names.head.len = length; /* or newer kernels give no names */
	ret = ret ?: ask(fd, device, &names) ?: ask(fd, device, &features);
	if (ret)
		return ret;
	memset(on, 0, OFFLOAD_COUNT * sizeof(*on));
	for (__u32 i = 0; i < length; i++)
		for (int offload = 0; offload < OFFLOAD_COUNT; offload++)
			if (!strncmp((const char *)names.head.data + i * ETH_GSTRING_LEN, offloads[offload].feature,
				     ETH_GSTRING_LEN))
				on[offload] = features.head.features[i / 32].active >> i % 32 & 1;
	return 0;
}
