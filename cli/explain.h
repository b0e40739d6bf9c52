// SPDX-License-Identifier: Apache-2.0
/*
 * The commands `orbweaver explain …`: from YAML to allocatable, with the first link that is broken.
 */
#pragma once

#include "cli/command.h"

extern const char *const explain_kinds[], *const explain_chain_kinds[];
extern const struct cli_field explain_policy_fields[], explain_resource_fields[],
	explain_chain_fields[], explain_pod_fields[];

cli_run_fn explain_policy;
cli_run_fn explain_resource;
cli_run_fn explain_node;
cli_run_fn explain_network;
cli_run_fn explain_config;
cli_run_fn explain_pool;
cli_run_fn explain_pod;
cli_run_fn explain_reason;
