// SPDX-License-Identifier: Apache-2.0
/*
 * The network and the runtime may both name addresses; what becomes of them is the plugin's matter.
 */
#include "nodeagent/cni/plan/ipam_wish.h"

#include <assert.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/result.h"

static int read_list(const char *type, const json_t *config, const char *outer, const char *inner,
		     const json_t **ret, struct err *err)
{
	const json_t *of = inner ? json_at(config, outer, inner) : json_at(config, outer);
	const json_t *list = json_at(of, "ips"), *item;
	size_t i;

	*ret = NULL;
	if (!list || json_is_null(list))
		return 0;
	if (!json_is_array(list) || json_array_size(list) > RESULT_LIST_MAX)
		return err_set(err, ERR_INVALID, "BadField",
			       "%s: %s%s%s.ips must be a list of at most %d addresses", type, outer,
			       inner ? "." : "", inner ? inner : "", RESULT_LIST_MAX);
	json_array_foreach ((json_t *)list, i, item)
		if (!json_is_string(item))
			return err_set(err, ERR_INVALID, "BadField",
				       "%s: %s%s%s.ips[%zu] must be a string", type, outer,
				       inner ? "." : "", inner ? inner : "", i);
	if (json_array_size(list))
		*ret = list;
	return 0;
}

int ipam_wish_lists(const char *type, const json_t *config, const json_t **ret_network,
		    const json_t **ret_runtime, struct err *err)
{
	assert(ret_network && ret_runtime);
	return read_list(type, config, "args", "cni", ret_network, err) ||
			       read_list(type, config, "runtimeConfig", NULL, ret_runtime, err)
		       ? -1
		       : 0;
}

int ipam_wish_check_version(const char *type, const json_t *config, size_t n_v4, size_t n_v6,
			    struct err *err)
{
	const char *version = result_version_of(config);

	if ((n_v4 <= 1 && n_v6 <= 1) ||
	    (result_version_is_known(version) && result_version_is_at_least(version, "0.3.0")))
		return 0;
	return err_set(err, ERR_INVALID, "BadField",
		       "%s: cniVersion %.32s has one address of each family, the network asks for "
		       "more; write 0.3.0 or newer",
		       type, version);
}
