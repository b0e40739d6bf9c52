// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/handle.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/kube/auth/secret.h"

enum {
	/* The default of 64 KiB would be kept for each call in flight; our bodies are a few KiB. */
	UPLOAD_BUFFER = 16 * 1024,
};

static struct curl_blob blob_of(const char *pem)
{
	return (struct curl_blob){.data = (void *)pem, .len = strlen(pem), .flags = CURL_BLOB_COPY};
}

static void add_header(struct curl_slist **headers, const char *name, const char *value)
{
	auto_secret char *line = str_printf("%s: %s", name, value); /* it may be the token */

	*headers = curl_slist_append(*headers, line);
}

static void set_request(const struct handle_pool *pool, const struct kube_request *request,
			const struct kube_secret *secret, struct handle *handle)
{
	CURL *easy = handle->easy;
	auto_free char *url = str_printf("%s%s", pool->base_url, request->path);
	struct curl_blob cert, key;

	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
	if (request->body) {
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
		add_header(&handle->headers, "Content-Type", request->content_type);
	}
	add_header(&handle->headers, "Accept", "application/json");
	add_header(&handle->headers, "Expect", "");
	if (pool->host_header)
		add_header(&handle->headers, "Host", pool->host_header);
	if (secret->authorization)
		add_header(&handle->headers, "Authorization", secret->authorization);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, handle->headers);
	if (pool->config->insecure) {
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (secret->ca_pem) {
		struct curl_blob ca = blob_of(secret->ca_pem);

		/*
		 * These and no others: without this the system's folder would be trusted as well.
		 */
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
		curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
		curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &ca);
	}
	if (!secret->client_cert_pem)
		return;
	cert = blob_of(secret->client_cert_pem);
	key = blob_of(secret->client_key_pem);
	curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
	curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &cert);
	curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
	curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
}

/*
 * With a tls-server-name the URL carries that name, and connections for it go to the real address.
 */
static void set_addresses(struct handle_pool *pool)
{
	const struct kube_config *config = pool->config;
	const char *format = strchr(config->host, ':') ? "[%s]" : "%s";
	auto_free char *line = NULL;
	char host[300];

	if (!config->tls_server_name) {
		pool->base_url = str_dup(config->server);
		return;
	}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(host, sizeof(host), format, config->host);
#pragma GCC diagnostic pop
	line = str_printf("%s:%u:%s:%u", config->tls_server_name, config->port, host, config->port);
	pool->connect_to = curl_slist_append(NULL, line);
	pool->host_header = str_printf("%s:%u", host, config->port);
	pool->base_url =
		str_printf("https://%s:%u%s", config->tls_server_name, config->port, config->path);
}

/*
 * libcurl brings libgnutls along, for LDAP and RTMP, which our programs do not use; its constructor
 * would read in tables and ciphers at each start. A program that has this symbol says that it does
 * not want that (gnutls.h, GNUTLS_SKIP_GLOBAL_INIT).
 */
int _gnutls_global_init_skip(void);
int _gnutls_global_init_skip(void)
{
	return 1;
}

static void init_curl_once(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	curl_global_init_mem(CURL_GLOBAL_DEFAULT, mem_alloc, mem_free, mem_realloc, str_dup,
			     mem_calloc);
	/*
	 * Writing to a connection that the other side closed is an error like others, not a reason
	 * to die.
	 */
	(void)signal(SIGPIPE, SIG_IGN);
}

void handle_pool_init(struct handle_pool *pool, const struct kube_config *config)
{
	init_curl_once();
	*pool = (struct handle_pool){.config = config};
	set_addresses(pool);
}

void handle_pool_done(struct handle_pool *pool)
{
	while (pool->n_spare)
		curl_easy_cleanup(pool->spare[--pool->n_spare]);
	curl_slist_free_all(pool->connect_to);
	mem_free(pool->base_url);
	mem_free(pool->host_header);
}

void handle_take(struct handle_pool *pool, const struct kube_request *request,
		 const struct kube_secret *secret, struct handle *ret)
{
	assert(!ret->easy && !ret->headers);
	ret->easy = pool->n_spare ? pool->spare[--pool->n_spare] : curl_easy_init();
	if (!ret->easy)
		abort(); /* out of memory */
	/* What all calls share. A reset forgets it. */
	curl_easy_setopt(ret->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(ret->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(ret->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(ret->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)KUBE_CONNECT_TIMEOUT_MS);
	curl_easy_setopt(ret->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS,
			 1L); /* a proxy's are not the server's */
	curl_easy_setopt(ret->easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BUFFER);
	curl_easy_setopt(ret->easy, CURLOPT_USERAGENT, "orbweaver/" ORBWEAVER_VERSION);
	if (pool->config->proxy)
		curl_easy_setopt(ret->easy, CURLOPT_PROXY, pool->config->proxy);
	if (pool->connect_to)
		curl_easy_setopt(ret->easy, CURLOPT_CONNECT_TO, pool->connect_to);
	set_request(pool, request, secret, ret);
}

void handle_give_back(struct handle_pool *pool, struct handle *handle)
{
	if (!handle->easy)
		return;
	if (pool->n_spare < HANDLES_SPARE) {
		curl_easy_reset(handle->easy);
		pool->spare[pool->n_spare++] = handle->easy;
	} else {
		curl_easy_cleanup(handle->easy);
	}
	for (struct curl_slist *h = handle->headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(handle->headers);
	*handle = (struct handle){0};
}
