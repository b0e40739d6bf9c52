// SPDX-License-Identifier: Apache-2.0
/*
 * Settings of an InfiniBand VF: a GUID from the runtime, ib-kubernetes or nobody. ib_sriov_run.c
 * reads the configuration here first, then plans with sriov_plan_settings(), which both kinds of
 * VFs share.
 */
#include "nodeagent/cni/plan/ib_sriov.h"

#include <assert.h>
#include <string.h>

#include "lib/base/pci_address.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/sriov.h"
#include "reconcilers/core/cni_rules.h"

#define ADDRESS_TEXT (20 * 3 - 1)

void ib_sriov_config_done(struct ib_sriov_config *config)
{
	json_decref(config->folded);
	json_decref(config->wanted);
	*config = (struct ib_sriov_config){0};
}

bool ib_sriov_guid_is_set(const char *guid)
{
	uint64_t number;

	return guid && text_to_guid(guid, &number) && number != 0 && number != UINT64_MAX;
}

bool ib_sriov_guid_of(const char *address, char ret[TEXT_GUID_SIZE])
{
	uint64_t number;

	assert(ret);
	if (!address || strlen(address) != ADDRESS_TEXT ||
	    !text_to_guid(address + ADDRESS_TEXT - (TEXT_GUID_SIZE - 1), &number))
		return false;
	text_from_guid(number, ret);
	return true;
}

static int read_guid(const json_t *config, struct ib_sriov_config *ret, struct err *err)
{
	const char *guid = json_str_at(config, "runtimeConfig", "infinibandGUID");
	uint64_t number;

	guid = str_empty(guid) ? json_str_at(config, "args", "cni", "guid") : guid;
	if (str_empty(guid))
		return 0;
	if (!ib_sriov_guid_is_set(guid) || !text_to_guid(guid, &number))
		return err_set(err, ERR_INVALID, "BadField",
			       "ib-sriov: guid \"%.64s\" must be eight octets like "
			       "02:00:00:00:00:00:00:01, not all 0 and not all f",
			       guid);
	text_from_guid(number, ret->guid);
	json_put_str(ret->wanted, "nodeGuid", ret->guid);
	json_put_str(ret->wanted, "portGuid", ret->guid);
	return 0;
}

/* ib-kubernetes annotates the pod when the subnet manager knows it. */
static int check_managed(const json_t *config, const struct ib_sriov_config *read, struct err *err)
{
	if (!json_is_true(json_at(config, "ibKubernetesEnabled")))
		return 0;
	if (!str_eq(json_str_at(config, "args", "cni", "mellanox.infiniband.app"), "configured"))
		return err_set(
			err, ERR_TRANSIENT, "GuidNotReady",
			"ib-sriov: ib-kubernetes has not configured this pod yet; see its log if "
			"this lasts");
	if (!read->guid[0])
		return err_set(err, ERR_TRANSIENT, "GuidNotReady",
			       "ib-sriov: ib-kubernetes has given this pod no GUID; see its pool");
	return 0;
}

int ib_sriov_config_read(const json_t *config, struct ib_sriov_config *ret, struct err *err)
{
	auto_ib_sriov_config struct ib_sriov_config read = {.wanted = json_object()};

	if (config_keys_read(config, "ib-sriov", &read.folded, err) < 0)
		return -1;
	config = read.folded;
	read.device = json_str_at(config, "deviceID");
	read.isolated = json_is_true(json_at(config, "rdmaIsolation"));
	if (!pci_address_is_valid(str_empty(read.device) ? "" : read.device))
		return err_set(
			err, ERR_INVALID, "BadField",
			"ib-sriov: deviceID must be the PCI address of a VF; the network's NAD "
			"needs the annotation k8s.v1.cni.cncf.io/resourceName");
	if (cni_rules_no_dhcp("ib-sriov", config, NULL, err) ||
	    cni_rules_vf_settings("ib-sriov", config, read.wanted, NULL, err) ||
	    read_guid(config, &read, err) || check_managed(config, &read, err))
		return -1;
	*ret = read;
	read = (struct ib_sriov_config){0};
	return 0;
}
