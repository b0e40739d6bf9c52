// SPDX-License-Identifier: Apache-2.0
/* What a network's configuration asks the agent for, as Spiderpool's plugin reads it. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/worker/spiderpool.h"
#include "tests/support/yaml.h"

TEST(keys_may_be_in_any_case)
{
	json_auto_t *config = yaml("{ipam: {type: spiderpool, Default_IPv4_IPPool: [mine],"
				   " DEFAULT_IPV6_IPPOOL: [q], default_ipv6_ippool: [six],"
				   " Clean_Gateway: true, Match_Master_Subnet: true}}");
	json_auto_t *want = yaml("{nic: net1, ipv4: [mine], ipv6: [six], cleanGateway: true}");
	bool matches = false;
	json_auto_t *wish = spiderpool_wish(config, "net1", &matches, NULL);

	assert_true(json_same(wish, want));
	assert_true(matches);
}

TEST(a_value_of_another_type_is_refused)
{
	json_auto_t *config = yaml("{ipam: {type: spiderpool, Default_IPv4_IPPool: mine}}");
	struct err err = {0};
	bool matches = false;
	json_auto_t *wish = spiderpool_wish(config, "net1", &matches, &err);

	assert_null(wish);
	assert_int_equal(err.class, ERR_INVALID);
	assert_non_null(strstr(err.text, "default_ipv4_ippool"));
}
