// SPDX-License-Identifier: Apache-2.0
/*
 * SpiderCoordinator → status on any world: see reconcile_fuzz.h; and what it calls a network is
 * one.
 */
#include "tests/fuzz/reconcile_fuzz.h"

#include "reconcilers/ipam/ip_range.h"
#include "reconcilers/spider/coordinator.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static void check_networks(const json_t *networks)
{
	json_t *network;
	size_t i;

	json_array_foreach (networks, i, network) {
		struct ip_subnet subnet;
		int rc = ip_subnet_parse(json_string_value(network), &subnet, NULL);

		fuzz_check(rc == 0 && !subnet.has_host_bits,
			   "a network in the status is a network");
	}
}

static void check_status(const struct plan *plan)
{
	json_t *op;
	size_t i;

	fuzz_check_conditions(plan);
	json_array_foreach (plan->ops, i, op) {
		check_networks(json_at(op, "status", "overlayPodCIDR"));
		check_networks(json_at(op, "status", "serviceCIDR"));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_reconcile(data, size, coordinator_reconcile, check_status);
	return 0;
}
