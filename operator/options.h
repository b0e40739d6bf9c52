/*
 * The command line of the operator.
 */
#ifndef ORBWEAVER_OPERATOR_OPTIONS_H
#define ORBWEAVER_OPERATOR_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

/* Strings are borrowed from argv and the environment. */
struct options {
	const char *kubeconfig; /* NULL: in-cluster, else $KUBECONFIG, else ~/.kube/config */
	const char *context;
	const char *ns;
	const char *metrics_addr;
	const char *resource_prefix;
	const char *lease_name;
	const char *config_ns;    /* of the ConfigMap spiderpool-conf */
	const char *webhook_addr; /* NULL: no webhooks */
	const char *webhook_service;
	const char *webhook_url; /* NULL: by the Service */
	int64_t webhook_certificate_s;
	bool leader_elect;
	bool help, version;
};

/* As lib/base/flags.h says. Errors: ERR_INVALID "BadFlag" naming the flag, its value and what would be right. */
int options_parse(int argc, char *const *argv, const char *(*env)(const char *name),
		  struct options *ret, struct err *err);

/* What --help prints. */
extern const char options_help[];

#endif
