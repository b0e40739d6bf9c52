// SPDX-License-Identifier: Apache-2.0
/*
 * A child takes key, mode and number of its parent from how the parent looks now. ipoib_run.c
 * looks, calls once, and carries out; the child is made on the node under a spare name, since the
 * kernel makes it in its parent's namespace.
 */
#include "nodeagent/cni/plan/ipoib.h"

#include <assert.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/steps.h"
#include "reconcilers/core/cni_rules.h"

/*
 * The high bit is full membership, which the child gets by itself (drivers/infiniband/ulp/ipoib).
 */
#define PKEY_NUMBER 0x7fff

static int check_master(const json_t *config, const json_t *master, int64_t mtu, struct err *err)
{
	const char *name = json_str_or(json_at(config, "master"), "");

	if (str_empty(name))
		return err_set(err, ERR_INVALID, "BadField",
			       "ipoib: master must name an IPoIB interface of the node");
	if (!master || !str_eq(json_str_at(master, "kind"), "ipoib"))
		return err_set(err, ERR_INVALID, "BadField",
			       "ipoib: master \"%.32s\" must be an IPoIB interface of the node, %s",
			       name, master ? "it is another kind" : "which has none of this name");
	if (mtu < 0 || mtu > look_number(master, "mtu"))
		return err_set(err, ERR_INVALID, "BadField",
			       "ipoib: mtu must be from 0 to %lld, which %s has",
			       (long long)look_number(master, "mtu"), name);
	if (cni_rules_no_dhcp("ipoib", config, NULL, err))
		return -1;
	if ((look_number(master, "pkey") & PKEY_NUMBER) == 0)
		return err_set(
			err, ERR_INVALID, "BadField",
			"ipoib: master \"%.32s\" must have a partition key, it has none yet; is "
			"the subnet manager running?",
			name);
	return 0;
}

int ipoib_plan(const json_t *config, const json_t *master, const char *spare, const char *ifname,
	       json_t *steps, struct err *err)
{
	json_auto_t *folded = NULL;
	int64_t mtu;
	json_t *step;

	assert(spare[0] && ifname && json_is_array(steps));
	if (config_keys_read(config, "ipoib", &folded, err) < 0)
		return -1;
	mtu = (int64_t)json_number_value(json_at(folded, "mtu"));
	if (check_master(folded, master, mtu, err))
		return -1;
	step = steps_add(steps, "host", "ipoib", spare);
	json_put_int(step, "lower", look_number(master, "index"));
	json_put_int(step, "pkey", look_number(master, "pkey") & PKEY_NUMBER);
	json_put_int(step, "mode", look_number(master, "mode"));
	json_put_str(steps_add(steps, "host", "move", spare), "as", ifname);
	if (mtu)
		json_put_int(steps_add(steps, "pod", "link", ifname), "mtu", mtu);
	for (int i = 0; i < 2; i++) {
		step = steps_add(steps, "pod", "sysctl", NULL);
		json_put(step, "path",
			 json_fmt("net/ipv4/conf/%s/%s", ifname, i ? "arp_notify" : "proxy_arp"));
		json_put_str(step, "value", "1");
	}
	return 0;
}
