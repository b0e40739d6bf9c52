// SPDX-License-Identifier: Apache-2.0
/* The command line of the operator. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/kube/lease.h"

/* Strings are borrowed from argv and the environment. */
struct options {
	const char *kubeconfig; /* NULL: in-cluster, else $KUBECONFIG, else ~/.kube/config */
	const char *context;
	const char *ns;
	/* $POD_NAME, else the Deployment's: events about the operator itself */
	const char *pod_name;
	const char *pod_uid; /* $POD_UID; may be NULL */
	struct {
		const char *addr;
		bool secure;           /* HTTPS, and whoever asks shows a token that may */
		const char *cert_path; /* a folder; NULL: our own certificate */
	} metrics;
	const char *health_addr;
	const char *debug_addr; /* on loopback; "0": none */
	const char *log_level;
	const char *resource_prefix;
	const char *lease_name;
	struct lease_timing lease_timing;
	const char *config_ns;         /* of the ConfigMap spiderpool-conf */
	const char *cilium_config;     /* "namespace/name" of Cilium's ConfigMap */
	const char *policy_namespaces; /* NULL or names with commas between */
	struct {
		const char *addr; /* NULL: no webhooks */
		const char *service;
		const char *url; /* NULL: by the Service */
		int64_t certificate_s;
		const char *client_ca; /* a file; NULL: clients show no certificate */
	} webhook;
	struct {
		const char *min_version; /* as in http_tls_policy */
		const char *cipher_suites;
	} tls;
	int64_t api_max_in_flight;
	bool leader_elect;
	bool help, version;
};

/*
 * As lib/base/flags.h says. Errors: ERR_INVALID "BadFlag" naming the flag, its value and what would
 * be right.
 */
int options_parse(int argc, char *const *argv, const char *(*env)(const char *name),
		  struct options *ret, struct err *err);

/*
 * The value of --policy-namespaces (NULL: none) as an array of names. Returns new; NULL with err
 * set as options_parse does, which has checked it already.
 */
json_t *options_policy_namespaces(const char *list, struct err *err);

/* What --help prints. */
extern const char options_help[];
