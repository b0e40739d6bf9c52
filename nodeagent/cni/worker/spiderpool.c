// SPDX-License-Identifier: Apache-2.0
/* Keys of the configuration become a request's members, one for one. Pure; below attachment.c. */
#include "nodeagent/cni/worker/spiderpool.h"

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "reconcilers/core/cni_rules.h"

json_t *spiderpool_wish(const json_t *config, const char *ifname, bool *ret_match, struct err *err)
{
	static const struct {
		const char *key, *name;
	} lists[] = {{"default_ipv4_ippool", "ipv4"}, {"default_ipv6_ippool", "ipv6"}};
	json_auto_t *wish = json_object();
	json_auto_t *ipam = NULL;
	bool is_clean = false, matches = false;
	const json_t *written;

	if (json_get_object(config, "", "ipam", &written, err) < 0)
		return NULL;
	ipam = cni_rules_spiderpool(written);
	json_put_str(wish, "nic", ifname);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		const json_t *pools = NULL;

		if (json_get_strings(ipam, "ipam", lists[i].key, &pools, err) < 0)
			return NULL;
		if (json_array_size(pools) > 0)
			json_put(wish, lists[i].name, json_incref((json_t *)pools));
	}
	if (json_get_bool(ipam, "ipam", "clean_gateway", false, &is_clean, err) < 0 ||
	    json_get_bool(ipam, "ipam", "match_master_subnet", false, &matches, err) < 0)
		return NULL;
	if (is_clean)
		json_put_bool(wish, "cleanGateway", true);
	*ret_match = matches;
	return take_ptr(wish);
}
