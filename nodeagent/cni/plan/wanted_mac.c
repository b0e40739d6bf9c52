// SPDX-License-Identifier: Apache-2.0
/*
 * Three places may have a MAC address: the network, the pod's annotation by CNI_ARGS, and the same
 * by the capability "mac".
 */
#include "nodeagent/cni/plan/wanted_mac.h"

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/cni_args.h"
#include "nodeagent/model/text.h"

bool wanted_mac_parse(const char *text, char ret[18])
{
	unsigned char mac[6];

	if (!text || !text_to_mac(text, mac) || mac[0] & 1 || text_mac_is_zero(mac))
		return false;
	text_from_octets(mac, sizeof(mac), ret);
	return true;
}

int wanted_mac_last(const char *type, const char *const *texts, size_t n, char ret[18],
		    struct err *err)
{
	const char *last = NULL;

	for (size_t i = 0; i < n; i++)
		last = str_empty(texts[i]) ? last : texts[i];
	if (last && !wanted_mac_parse(last, ret))
		return err_set(err, ERR_INVALID, "BadField",
			       "%s: mac \"%.64s\" must be six octets of one station's address",
			       type, last);
	return 0;
}

int wanted_mac_read(const char *type, const json_t *config, const char *args, char ret[18],
		    struct err *err)
{
	auto_free char *of_args = cni_args_value(args, "MAC");
	const char *const texts[] = {json_str_at(config, "mac"), of_args,
				     json_str_at(config, "runtimeConfig", "mac")};

	return wanted_mac_last(type, texts, ARRAY_LEN(texts), ret, err);
}
