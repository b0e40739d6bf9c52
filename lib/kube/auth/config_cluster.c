// SPDX-License-Identifier: Apache-2.0
/* A kubeconfig's cluster: where the server is and how we know that it is the one. */
#include <string.h>

#include "lib/base/str.h"
#include "lib/kube/auth/config_internal.h"
#include "lib/kube/auth/endpoint.h"
#include "lib/kube/auth/pem.h"

void config_set_server(struct kube_config *config, const struct endpoint *server)
{
	config->server = endpoint_url(server);
	config->host = str_dup(server->host);
	config->port = server->port;
	config->path = str_dup(server->path);
	config->tls = str_eq(server->scheme, "https");
}

static int read_server(const struct kubeconfig_entry *cluster, struct kube_config *config,
		       struct err *err)
{
	auto_endpoint struct endpoint server = {0};
	const char *url = NULL;

	if (kubeconfig_str(cluster, "server", &url, err) < 0)
		return -1;
	if (!url)
		return kubeconfig_bad(cluster, err, "server is missing, must be https://HOST:PORT");
	if (endpoint_parse_server(url, &server, err) < 0)
		return kubeconfig_in(cluster, "server", err);
	config_set_server(config, &server);
	return 0;
}

static int read_trust(const struct kubeconfig_entry *cluster, struct kube_config *config,
		      struct err *err)
{
	const char *name = NULL;

	if (kubeconfig_bool(cluster, "insecure-skip-tls-verify", &config->insecure, err) < 0 ||
	    kubeconfig_str(cluster, "tls-server-name", &name, err) < 0 ||
	    kubeconfig_pem(cluster, "certificate-authority", PEM_CERTIFICATES, &config->ca_pem,
			   &config->ca_file, err) < 0)
		return -1;
	config->tls_server_name = str_dup(name);
	if (config->insecure && config->ca_pem)
		return kubeconfig_bad(
			cluster, err,
			"insecure-skip-tls-verify is true although a certificate-authority is "
			"given; remove one of them");
	if (!config->tls && (config->ca_pem || name))
		return kubeconfig_bad(
			cluster, err, "%s is given, but server %s is without TLS; use https://",
			name ? "tls-server-name" : "certificate-authority", config->server);
	return 0;
}

/*
 * Go resolves names at a socks5:// proxy, libcurl only at a socks5h:// one; kubeconfigs are written
 * for the former. https://curl.se/libcurl/c/CURLOPT_PROXY.html
 */
static char *proxy_for_curl(const char *url, const struct endpoint *proxy)
{
	if (str_eq(proxy->scheme, "socks5"))
		return str_printf("socks5h%s", url + strlen("socks5"));
	return str_dup(url);
}

int config_read_cluster(const struct kubeconfig_entry *cluster, struct kube_config *config,
			struct err *err)
{
	auto_endpoint struct endpoint proxy = {0};
	const char *url = NULL;

	if (read_server(cluster, config, err) < 0 || read_trust(cluster, config, err) < 0)
		return -1;
	if (kubeconfig_str(cluster, "proxy-url", &url, err) < 0)
		return -1;
	if (!url)
		return 0;
	if (endpoint_parse_proxy(url, &proxy, err) < 0)
		return kubeconfig_in(cluster, "proxy-url", err);
	config->proxy = proxy_for_curl(url, &proxy);
	return 0;
}
