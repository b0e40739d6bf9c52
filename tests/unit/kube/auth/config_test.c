// SPDX-License-Identifier: Apache-2.0
/*
 * Where the API server is: sources in their order, merging, every field, and the exact line for
 * what is wrong.
 */
#include "tests/support/test.h"

#include "lib/base/base64.h"
#include "lib/json/json.h"
#include "lib/kube/auth/config.h"
#include "lib/kube/auth/pem.h"
#include "tests/unit/kube/tree.h"

#define auto_config auto_call(kube_config_done)

#define SA KUBE_SERVICE_ACCOUNT_DIR

/* One context "prod" with the given flow mappings as cluster and user. */
#define KUBECONFIG_TEXT(cluster, user)                                                             \
	"apiVersion: v1\nkind: Config\ncurrent-context: prod\n"                                    \
	"clusters: [{name: c, cluster: {" cluster "}}]\nusers: [{name: bob, user: {" user          \
	"}}]\ncontexts: [{name: prod, context: {cluster: c, user: bob}}]\n"
#define SERVER "server: 'https://h:6443'"

static int load(const struct tree *t, const char *kubeconfig, const char *context,
		const char *const *envp, struct kube_config *ret, struct err *err)
{
	struct kube_config_source src = {
		.kubeconfig = kubeconfig, .context = context, .envp = envp, .root = t->root};

	return kube_config_load(&src, ret, err);
}

static int load_text(const struct tree *t, const char *text, struct kube_config *ret,
		     struct err *err)
{
	tree_write(t, "/k/config", text);
	return load(t, "/k/config", NULL, NULL, ret, err);
}

static char *b64(const char *text)
{
	struct strbuf b = {0};

	base64_encode(text, strlen(text), &b);
	return strbuf_take(&b);
}

/* ---- what is right --------------------------------------------------------------------------- */

TEST(reads_every_field)
{
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};
	auto_free char *ca = b64(CERT_PEM), *key = b64(KEY_PEM);
	auto_free char *text = str_printf(
		"current-context: other\n"
		"clusters:\n- name: c\n  cluster:\n    server: HTTPS://Api.Example.com/prefix/\n"
		"    certificate-authority-data: %s\n    tls-server-name: kube\n"
		"    proxy-url: http://u:pw@proxy:3128\n"
		"contexts:\n- {name: prod, context: {cluster: c, user: bob, namespace: net}}\n"
		"users:\n- name: bob\n  user:\n    token: abc.def\n    client-certificate: "
		"pki/c.pem\n"
		"    client-key-data: %s\n",
		ca, key);
	auto_free char *cert_file = NULL;
	struct err err = {0};

	tree_init(&t);
	cert_file = tree_path(&t, "/k/pki/c.pem");
	tree_write(&t, "/k/pki/c.pem", CERT_PEM);
	tree_write(&t, "/k/config", text);
	assert_int_equal(load(&t, "/k/config", "prod", NULL, &c, &err), 0);
	assert_string_equal(c.origin, "kubeconfig /k/config, context \"prod\"");
	assert_string_equal(c.server, "https://Api.Example.com:443/prefix");
	assert_string_equal(c.host, "Api.Example.com");
	assert_int_equal(c.port, 443);
	assert_string_equal(c.path, "/prefix");
	assert_true(c.tls);
	assert_string_equal(c.ca_pem, CERT_PEM);
	assert_string_equal(c.tls_server_name, "kube");
	assert_string_equal(c.proxy, "http://u:pw@proxy:3128");
	assert_string_equal(c.namespace, "net");
	assert_int_equal(c.auth.kind, KUBE_AUTH_TOKEN);
	assert_string_equal(c.auth.token, "abc.def");
	assert_string_equal(c.auth.client_cert_pem, CERT_PEM);
	assert_string_equal(c.auth.client_cert_file, cert_file);
	assert_string_equal(c.auth.client_key_pem, KEY_PEM);
	assert_null(c.auth.client_key_file);
}

TEST(what_is_not_said_stays_empty)
{
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};

	tree_init(&t);
	assert_int_equal(load_text(&t, KUBECONFIG_TEXT(SERVER, ""), &c, NULL), 0);
	assert_null(c.ca_pem);
	assert_null(c.tls_server_name);
	assert_null(c.proxy);
	assert_null(c.namespace);
	assert_false(c.insecure);
	assert_int_equal(c.auth.kind, KUBE_AUTH_NONE);
	assert_null(c.auth.client_cert_pem);
}

TEST(an_empty_field_is_an_absent_one)
{
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};

	tree_init(&t);
	assert_int_equal(
		load_text(&t,
			  KUBECONFIG_TEXT(SERVER ", certificate-authority: '', proxy-url: ''",
					  "token: '', username: null, client-key-data: ''"),
			  &c, NULL),
		0);
	assert_int_equal(c.auth.kind, KUBE_AUTH_NONE);
	assert_null(c.proxy);
}

TEST(servers_are_taken_apart)
{
	static const struct {
		const char *url, *server, *host;
		uint16_t port;
		const char *path;
		bool tls;
	} cases[] = {
		{"https://h", "https://h:443", "h", 443, "", true},
		{"http://h", "http://h:80", "h", 80, "", false},
		{"https://10.0.0.1:6443/", "https://10.0.0.1:6443", "10.0.0.1", 6443, "", true},
		{"https://[fd00::1]", "https://[fd00::1]:443", "fd00::1", 443, "", true},
		{"https://[::1]:6443/a/b//", "https://[::1]:6443/a/b", "::1", 6443, "/a/b", true},
		{"https://h/k8s/clusters/c-1", "https://h:443/k8s/clusters/c-1", "h", 443,
		 "/k8s/clusters/c-1", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_tree struct tree t = {0};
		auto_config struct kube_config c = {0};
		auto_free char *text = NULL;

		tree_init(&t);
		text = str_printf(KUBECONFIG_TEXT("server: '%s'", ""), cases[i].url);
		assert_int_equal(load_text(&t, text, &c, NULL), 0);
		assert_string_equal(c.server, cases[i].server);
		assert_string_equal(c.host, cases[i].host);
		assert_int_equal(c.port, cases[i].port);
		assert_string_equal(c.path, cases[i].path);
		assert_int_equal(c.tls, cases[i].tls);
	}
}

TEST(a_socks5_proxy_resolves_names_itself)
{
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};

	tree_init(&t);
	assert_int_equal(load_text(&t, KUBECONFIG_TEXT(SERVER ", proxy-url: 'socks5://p:1080'", ""),
				   &c, NULL),
			 0);
	assert_string_equal(c.proxy, "socks5h://p:1080");
}

TEST(insecure_only_when_it_says_so)
{
	auto_tree struct tree t = {0};
	auto_config struct kube_config no = {0};
	auto_config struct kube_config yes = {0};

	tree_init(&t);
	assert_int_equal(load_text(&t,
				   KUBECONFIG_TEXT(SERVER ", insecure-skip-tls-verify: false", ""),
				   &no, NULL),
			 0);
	assert_false(no.insecure);
	assert_int_equal(load_text(&t,
				   KUBECONFIG_TEXT(SERVER ", insecure-skip-tls-verify: true", ""),
				   &yes, NULL),
			 0);
	assert_true(yes.insecure);
}

TEST(base64_may_be_folded)
{
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};
	auto_free char *ca = b64(CERT_PEM);
	auto_free char *text = str_printf(
		"current-context: prod\nclusters:\n- name: c\n  cluster:\n    server: https://h\n"
		"    certificate-authority-data: |\n      %.20s\n      %s\n"
		"users: [{name: bob}]\ncontexts: [{name: prod, context: {cluster: c, user: "
		"bob}}]\n",
		ca, ca + 20);

	tree_init(&t);
	assert_int_equal(load_text(&t, text, &c, NULL), 0);
	assert_string_equal(c.ca_pem, CERT_PEM);
}

TEST(token_files_are_read_at_once)
{
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};
	auto_free char *file = NULL;

	tree_init(&t);
	file = tree_path(&t, "/k/sub/token");
	tree_write(&t, "/k/sub/token", "  abc\n");
	assert_int_equal(load_text(&t, KUBECONFIG_TEXT(SERVER, "tokenFile: sub/token"), &c, NULL),
			 0);
	assert_int_equal(c.auth.kind, KUBE_AUTH_TOKEN_FILE);
	assert_string_equal(c.auth.token_file, file);
	assert_string_equal(c.auth.token, "abc");
}

TEST(a_token_serves_until_its_file_comes)
{
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};

	tree_init(&t);
	assert_int_equal(
		load_text(&t, KUBECONFIG_TEXT(SERVER, "token: first, tokenFile: /later"), &c, NULL),
		0);
	assert_int_equal(c.auth.kind, KUBE_AUTH_TOKEN_FILE);
	assert_string_equal(c.auth.token, "first");
}

TEST(plain_text_stays_on_this_machine)
{
	static const char *const hosts[] = {"127.0.0.1:8001", "localhost:8001", "[::1]:8001",
					    "127.1.2.3"};

	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		auto_tree struct tree t = {0};
		auto_config struct kube_config c = {0};
		auto_free char *text =
			str_printf(KUBECONFIG_TEXT("server: 'http://%s'", "token: x"), hosts[i]);

		tree_init(&t);
		assert_int_equal(load_text(&t, text, &c, NULL), 0);
		assert_false(c.tls);
	}
}

TEST(exec_plugins_get_our_environment_theirs_and_the_cluster)
{
	static const char *const envp[] = {"PATH=/bin", "AWS_PROFILE=old",
					   "KUBERNETES_EXEC_INFO=old", NULL};
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};
	auto_free char *command = NULL, *ca = b64(CERT_PEM);
	auto_free char *text = str_printf(
		"current-context: prod\nclusters:\n- name: c\n  cluster:\n    server: https://h\n"
		"    certificate-authority-data: %s\n    proxy-url: socks5://p\n    extensions:\n"
		"    - {name: other, extension: {no: 1}}\n"
		"    - {name: client.authentication.k8s.io/exec, extension: {audience: x}}\n"
		"contexts: [{name: prod, context: {cluster: c, user: bob}}]\nusers:\n- name: bob\n "
		" user:\n"
		"    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: "
		"./bin/get-token\n"
		"      args: [--cluster, 'my one']\n      env: [{name: AWS_PROFILE, value: new}]\n"
		"      installHint: install it\n      provideClusterInfo: true\n"
		"      interactiveMode: IfAvailable\n",
		ca);
	auto_free char *info = str_printf(
		"KUBERNETES_EXEC_INFO={\"apiVersion\":\"client.authentication.k8s.io/v1\","
		"\"kind\":\"ExecCredential\",\"spec\":{\"cluster\":{\"certificate-authority-data\":"
		"\"%s\","
		"\"config\":{\"audience\":\"x\"},\"proxy-url\":\"socks5://p\",\"server\":\"https://"
		"h:443\"},"
		"\"interactive\":false}}",
		ca);

	tree_init(&t);
	command = tree_path(&t, "/k/./bin/get-token");
	tree_write(&t, "/k/config", text);
	assert_int_equal(load(&t, "/k/config", NULL, envp, &c, NULL), 0);
	assert_int_equal(c.auth.kind, KUBE_AUTH_EXEC);
	assert_string_equal(c.auth.exec.command, command);
	assert_string_equal(c.auth.exec.args[0], "--cluster");
	assert_string_equal(c.auth.exec.args[1], "my one");
	assert_null(c.auth.exec.args[2]);
	assert_string_equal(c.auth.exec.env[0], "PATH=/bin");
	assert_string_equal(c.auth.exec.env[1], "AWS_PROFILE=new");
	assert_string_equal(c.auth.exec.env[2], info);
	assert_null(c.auth.exec.env[3]);
	assert_string_equal(c.auth.exec.install_hint, "install it");
}

TEST(a_bare_exec_command_is_looked_up_in_path)
{
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};

	tree_init(&t);
	assert_int_equal(
		load_text(&t,
			  KUBECONFIG_TEXT(SERVER,
					  "exec: {apiVersion: "
					  "client.authentication.k8s.io/v1beta1, command: aws}"),
			  &c, NULL),
		0);
	assert_string_equal(c.auth.exec.command, "aws");
	assert_null(c.auth.exec.args[0]);
	assert_string_equal(
		c.auth.exec.env[0],
		"KUBERNETES_EXEC_INFO={\"apiVersion\":\"client.authentication.k8s.io/v1beta1\","
		"\"kind\":\"ExecCredential\",\"spec\":{\"interactive\":false}}");
}

/* ---- sources --------------------------------------------------------------------------------- */

static void add_service_account(const struct tree *t)
{
	tree_write(t, SA "/token", "sa-token\n");
	tree_write(t, SA "/ca.crt", CERT_PEM);
	tree_write(t, SA "/namespace", "orbweaver-system");
}

#define IN_POD "KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443"

TEST(sources_come_in_their_order)
{
	static const char *const all[] = {IN_POD, "KUBECONFIG=/env", "HOME=/home/u", NULL};
	static const char *const no_pod[] = {"KUBECONFIG=/env", "HOME=/home/u", NULL};
	static const char *const home_only[] = {"KUBECONFIG=", "HOME=/home/u", NULL};
	static const struct {
		const char *flag, *context;
		const char *const *envp;
		const char *origin;
	} cases[] = {
		{"/flag", NULL, all, "kubeconfig /flag, context \"prod\""},
		{NULL, NULL, all, "the pod's service account"},
		{NULL, "prod", all, "kubeconfig /env, context \"prod\""},
		{NULL, NULL, no_pod, "kubeconfig /env, context \"prod\""},
		{NULL, NULL, home_only, "kubeconfig /home/u/.kube/config, context \"prod\""},
	};
	auto_tree struct tree t = {0};

	tree_init(&t);
	add_service_account(&t);
	tree_write(&t, "/flag", KUBECONFIG_TEXT(SERVER, ""));
	tree_write(&t, "/env", KUBECONFIG_TEXT(SERVER, ""));
	tree_write(&t, "/home/u/.kube/config", KUBECONFIG_TEXT(SERVER, ""));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_config struct kube_config c = {0};

		assert_int_equal(load(&t, cases[i].flag, cases[i].context, cases[i].envp, &c, NULL),
				 0);
		assert_string_equal(c.origin, cases[i].origin);
	}
}

TEST(the_service_account_is_complete)
{
	static const char *const envp[] = {"KUBERNETES_SERVICE_HOST=fd00::1",
					   "KUBERNETES_SERVICE_PORT=6443", NULL};
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};
	auto_free char *file = NULL;

	tree_init(&t);
	file = tree_path(&t, SA "/token");
	add_service_account(&t);
	assert_int_equal(load(&t, NULL, NULL, envp, &c, NULL), 0);
	assert_string_equal(c.server, "https://[fd00::1]:6443");
	assert_string_equal(c.ca_pem, CERT_PEM);
	assert_string_equal(c.namespace, "orbweaver-system");
	assert_int_equal(c.auth.kind, KUBE_AUTH_TOKEN_FILE);
	assert_string_equal(c.auth.token_file, file);
	assert_string_equal(c.auth.token, "sa-token");
}

TEST(a_pod_without_a_token_may_have_a_kubeconfig)
{
	static const char *const envp[] = {IN_POD, "KUBECONFIG=/env", NULL};
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};

	tree_init(&t);
	tree_write(&t, "/env", KUBECONFIG_TEXT(SERVER, ""));
	assert_int_equal(load(&t, NULL, NULL, envp, &c, NULL), 0);
	assert_string_equal(c.host, "h");
}

TEST(of_several_files_the_first_wins)
{
	static const char *const envp[] = {"KUBECONFIG=/missing:/a::/b", NULL};
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};

	tree_init(&t);
	tree_write(&t, "/a",
		   "clusters: [{name: c, cluster: {server: 'https://first'}}]\n"
		   "contexts: [{name: prod, context: {cluster: c, user: bob}}]\n");
	tree_write(
		&t, "/b",
		"current-context: prod\nclusters: [{name: c, cluster: {server: 'https://second', "
		"tls-server-name: x}}]\nusers: [{name: bob, user: {token: x}}]\n"
		"contexts: [{name: prod, context: {cluster: none, user: none}}]\n");
	assert_int_equal(load(&t, NULL, NULL, envp, &c, NULL), 0);
	assert_string_equal(c.origin, "kubeconfig /a:/b, context \"prod\"");
	assert_string_equal(c.host, "first");
	/* Whole entries: nothing of the second file's cluster comes through. */
	assert_null(c.tls_server_name);
	assert_string_equal(c.auth.token, "x");
}

TEST(broken_neighbours_do_not_matter)
{
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};

	tree_init(&t);
	assert_int_equal(
		load_text(
			&t,
			"current-context: prod\n"
			"clusters: [{name: c, cluster: {server: 'https://h'}}, {name: d, cluster: "
			"{server: 7, certificate-authority: /nowhere}}]\n"
			"users: [{name: bob}, {name: eve, user: {token: [1]}}]\n"
			"contexts: [{name: prod, context: {cluster: c, user: bob}}]\n",
			&c, NULL),
		0);
}

TEST(one_text_can_be_read_without_files)
{
	static const char text[] = KUBECONFIG_TEXT(SERVER, "token: x");
	struct kube_config_source src = {.kubeconfig = "inline"};
	auto_config struct kube_config c = {0};

	assert_int_equal(kube_config_parse(&src, text, strlen(text), &c, NULL), 0);
	assert_string_equal(c.origin, "kubeconfig inline, context \"prod\"");
}

/* ---- what is wrong --------------------------------------------------------------------------- */

#define EXEC(fields)                                                                               \
	"exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, " fields "}"
#define BOB "kubeconfig /k/config: user \"bob\": "
#define C   "kubeconfig /k/config: cluster \"c\": "

static const struct bad_case {
	const char *text, *want;
} bad_cases[] = {
	/* the file */
	{"[1]", "kubeconfig /k/config: the file is an array, must be an object with clusters, "
		"contexts, users"},
	{"a: 1\n---\nb: 2\n", "kubeconfig /k/config: holds 2 YAML documents, must hold one"},
	{"kind: Pod", "kubeconfig /k/config: kind is \"Pod\", must be Config"},
	{"apiVersion: 1", "kubeconfig /k/config: apiVersion is an integer, must be v1"},
	{"clusters: {a: b}", "kubeconfig /k/config: clusters is an object, must be a list"},
	{"users: [7]",
	 "kubeconfig /k/config: users[0] is an integer, must be an object with name and user"},
	{"users: [{name: 7}]",
	 "kubeconfig /k/config: users[0].name is an integer, must be a string that is not empty"},
	{"contexts: [{context: {}}]",
	 "kubeconfig /k/config: contexts[0].name is missing, must be a string that is not empty"},
	{"contexts: [{name: a, context: b}]",
	 "kubeconfig /k/config: context \"a\": context is a string, must be an object"},
	{"users: [{name: a}, {name: a}]",
	 "kubeconfig /k/config: two users are named \"a\"; remove one"},
	{"users: [{name: \"a\\nb\"}]",
	 "kubeconfig /k/config: users[0].name holds a line break or another control character"},
	/* the context */
	{"", "kubeconfig /k/config: has no current-context; choose one of its contexts (none) with "
	     "--context"},
	{"contexts: [{name: a}, {name: b}]", "kubeconfig /k/config: has no current-context; choose "
					     "one of its contexts (a, b) with --context"},
	{"current-context: x\ncontexts: [{name: a}, {name: b}]",
	 "kubeconfig /k/config: current-context \"x\" is not among its contexts (a, b)"},
	{"current-context: 3",
	 "kubeconfig /k/config: current-context is an integer, must be a string (put it in "
	 "quotes)"},
	{"current-context: a\ncontexts: [{name: a}]\nclusters: [{name: c}]",
	 "kubeconfig /k/config: context \"a\": names no cluster; choose one of clusters (c)"},
	{"current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c}]",
	 "kubeconfig /k/config: context \"a\": names no user; choose one of users (none)"},
	{"current-context: prod\ncontexts: [{name: prod, context: {cluster: c, user: bob}}]\n"
	 "clusters: [{name: c}]\nusers: [{name: alice}]",
	 "kubeconfig /k/config: context \"prod\" names user \"bob\", which is not among its users "
	 "(alice)"},
	{"current-context: prod\ncontexts: [{name: prod, context: {cluster: x, user: "
	 "bob}}]\nclusters: "
	 "[{name: a}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}, {name: g}, {name: h}, "
	 "{name: i}]",
	 "kubeconfig /k/config: context \"prod\" names cluster \"x\", which is not among its "
	 "clusters (a, b, c, "
	 "d, e, f, g, h and 1 more)"},
	{"current-context: p\ncontexts: [{name: p, context: {cluster: c, user: u, namespace: "
	 "Net}}]\n"
	 "clusters: [{name: c}]\nusers: [{name: u}]",
	 "kubeconfig /k/config: context \"p\": namespace \"Net\" is no name of a namespace, must "
	 "be up to 63 of "
	 "a-z, 0-9 and \"-\""},
	/* the cluster */
	{KUBECONFIG_TEXT("", ""), C "server is missing, must be https://HOST:PORT"},
	{KUBECONFIG_TEXT("server: 7", ""),
	 C "server is an integer, must be a string (put it in quotes)"},
	{KUBECONFIG_TEXT("server: 'h:6443'", ""),
	 C "server: \"h:6443\" has no scheme, must be like https://h:6443"},
	{KUBECONFIG_TEXT("server: 'ftp://h'", ""),
	 C "server: \"ftp://h\" is neither https:// nor http://, must be https://HOST:PORT"},
	{KUBECONFIG_TEXT("server: 'https://h:0'", ""),
	 C "server: \"https://h:0\" is no URL of a server, must be https://HOST[:PORT][/PATH] with "
	   "a port from 1 "
	   "to 65535"},
	{KUBECONFIG_TEXT("server: 'https://h?x=1'", ""),
	 C "server: \"https://h?x=1\" is no URL of a server, must be https://HOST[:PORT][/PATH] "
	   "with a port from "
	   "1 to 65535"},
	{KUBECONFIG_TEXT("server: 'https://[fd00::1'", ""),
	 C "server: \"https://[fd00::1\" is no URL of a server, must be https://HOST[:PORT][/PATH] "
	   "with a port "
	   "from 1 to 65535"},
	{KUBECONFIG_TEXT("server: 'https://fd00::1'", ""),
	 C "server: \"https://fd00::1\" is no URL of a server, must be https://HOST[:PORT][/PATH] "
	   "with a port "
	   "from 1 to 65535"},
	{KUBECONFIG_TEXT("server: 'https://admin:S3CRET@h'", ""),
	 C "server: carries a user name or an \"@\"; credentials belong to the user, not the URL"},
	{KUBECONFIG_TEXT(SERVER ", insecure-skip-tls-verify: 'true'", ""),
	 C "insecure-skip-tls-verify is a string, must be true or false"},
	{KUBECONFIG_TEXT(SERVER ", insecure-skip-tls-verify: true, certificate-authority: ca.pem",
			 ""),
	 C "insecure-skip-tls-verify is true although a certificate-authority is given; remove one "
	   "of them"},
	{KUBECONFIG_TEXT("server: 'http://localhost', certificate-authority: ca.pem", ""),
	 C "certificate-authority is given, but server http://localhost:80 is without TLS; use "
	   "https://"},
	{KUBECONFIG_TEXT(SERVER ", certificate-authority: ca.pem, certificate-authority-data: eA==",
			 ""),
	 C "certificate-authority and certificate-authority-data are both given; remove one"},
	{KUBECONFIG_TEXT(SERVER ", certificate-authority-data: '***'", ""),
	 C "certificate-authority-data: not base64: byte 1 is outside the alphabet"},
	{KUBECONFIG_TEXT(SERVER ", certificate-authority-data: eHl6", ""),
	 C "certificate-authority-data: holds no certificate (no \"-----BEGIN CERTIFICATE-----\" "
	   "line)"},
	{KUBECONFIG_TEXT(SERVER ", proxy-url: 'ftp://p'", ""),
	 C "proxy-url: \"ftp://p\" has no scheme that we can use, must be http://, https:// or "
	   "socks5://"},
	{KUBECONFIG_TEXT(SERVER ", proxy-url: 'http://u:S3CRET@p:x'", ""),
	 C "proxy-url: the URL is no URL of a proxy, must be like http://HOST:PORT"},
	/* the user */
	{KUBECONFIG_TEXT(SERVER, "token: 5327"),
	 BOB "token is an integer, must be a string (put it in quotes)"},
	{KUBECONFIG_TEXT(SERVER, "token: \"S3CRET\\nX: y\""),
	 BOB "token holds a line break or another control character"},
	{KUBECONFIG_TEXT(SERVER, "token: S3CRET two"),
	 BOB "token holds characters that no token has (blanks or non-ASCII)"},
	{KUBECONFIG_TEXT(SERVER, "username: u, token: S3CRET"),
	 BOB "has both token and username, only one is allowed"},
	{KUBECONFIG_TEXT(SERVER, "password: S3CRET"),
	 BOB "has a password without a username; give both"},
	{KUBECONFIG_TEXT(SERVER, "username: 'a:b'"),
	 BOB "username holds a \":\", which HTTP basic authentication cannot carry"},
	{KUBECONFIG_TEXT(SERVER, "as: admin"),
	 BOB "as: impersonation is not supported; use a user that needs none"},
	{KUBECONFIG_TEXT(SERVER, "auth-provider: {name: gcp}"),
	 BOB "auth-provider is not supported; use an exec plugin"},
	{KUBECONFIG_TEXT(SERVER, "client-certificate: cert.pem"),
	 BOB "has a client-certificate without a client-key; give both or neither"},
	{KUBECONFIG_TEXT(SERVER, "client-key: key.pem"),
	 BOB "has a client-key without a client-certificate; give both or neither"},
	{KUBECONFIG_TEXT("server: 'http://h'", "token: S3CRET"),
	 BOB "its credentials would go to http://h:80 in clear text; use https://"},
	{KUBECONFIG_TEXT("server: 'http://localhost'",
			 "client-certificate: cert.pem, client-key: key.pem"),
	 BOB
	 "has a client certificate, but http://localhost:80 is without TLS; use https:// or remove "
	 "client-certificate"},
	/* exec */
	{KUBECONFIG_TEXT(SERVER, "exec: x"), BOB "exec is a string, must be an object"},
	{KUBECONFIG_TEXT(SERVER, "exec: {command: x}"),
	 BOB "exec.apiVersion is missing, must be client.authentication.k8s.io/v1"},
	{KUBECONFIG_TEXT(SERVER, "exec: {apiVersion: client.authentication.k8s.io/v1alpha1}"),
	 BOB "exec.apiVersion \"client.authentication.k8s.io/v1alpha1\" is not known, must be "
	     "client.authentication.k8s.io/v1 or …/v1beta1"},
	{KUBECONFIG_TEXT(SERVER, "exec: {apiVersion: client.authentication.k8s.io/v1, command: x}"),
	 BOB "exec.interactiveMode is missing, must be Never or IfAvailable"},
	{KUBECONFIG_TEXT(
		 SERVER,
		 "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always}"),
	 BOB "exec.interactiveMode is Always, but a plugin has no terminal here; use a plugin that "
	     "works without"},
	{KUBECONFIG_TEXT(
		 SERVER,
		 "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: never}"),
	 BOB "exec.interactiveMode \"never\" is not known, must be Never or IfAvailable"},
	{KUBECONFIG_TEXT(SERVER, EXEC("args: []")),
	 BOB "exec.command is missing, must name the plugin's program"},
	{KUBECONFIG_TEXT(SERVER, EXEC("command: x, args: [a, 1]")),
	 BOB "exec.args[1] is an integer, must be a list of strings"},
	{KUBECONFIG_TEXT(SERVER, EXEC("command: x, args: z")),
	 BOB "exec.args is a string, must be a list of strings"},
	{KUBECONFIG_TEXT(SERVER, EXEC("command: x, env: [{value: y}]")),
	 BOB "exec.env[0].name is missing, must be the name of a variable"},
	{KUBECONFIG_TEXT(SERVER, EXEC("command: x, env: [{name: 'a=b', value: y}]")),
	 BOB "exec.env[0].name is with a \"=\", must be the name of a variable"},
	{KUBECONFIG_TEXT(SERVER, EXEC("command: x, env: [{name: a, value: 1}]")),
	 BOB "exec.env[0].value is an integer, must be a string (put it in quotes)"},
	{KUBECONFIG_TEXT(SERVER, EXEC("command: x") ", token: S3CRET"),
	 BOB "has both token and exec, only one is allowed"},
	{KUBECONFIG_TEXT(SERVER,
			 EXEC("command: x") ", client-certificate: cert.pem, client-key: key.pem"),
	 BOB "has both client-certificate and exec, only one is allowed"},
};

TEST(each_mistake_gets_one_line_that_helps)
{
	json_auto_t *reasons = json_object();

	for (size_t i = 0; i < ARRAY_LEN(bad_cases); i++) {
		auto_tree struct tree t = {0};
		auto_config struct kube_config c = {0};
		struct err err = {0};

		tree_init(&t);
		tree_write(&t, "/k/ca.pem", CERT_PEM);
		tree_write(&t, "/k/cert.pem", CERT_PEM);
		tree_write(&t, "/k/key.pem", KEY_PEM);
		assert_int_equal(load_text(&t, bad_cases[i].text, &c, &err), -1);
		assert_string_equal(err.text, bad_cases[i].want);
		assert_int_equal(err.class, ERR_INVALID);
		if (str_starts(bad_cases[i].text, "kind: "))
			assert_string_equal(err.reason, "BadKubeconfig");
		assert_null(strstr(err.text, "S3CRET"));
		assert_null(c.server);
		json_put_bool(reasons, err.reason, true);
	}
	assert_non_null(json_at(reasons, "BadPem"));
	assert_non_null(json_at(reasons, "BadUrl"));
}

/* A file in the tree that a field names, and what is said about it; %s is the tree's root. */
static const struct bad_file {
	const char *user, *content, *want;
} bad_files[] = {
	{"tokenFile: f", "", BOB "tokenFile: %s/k/f is empty, must hold a token"},
	{"tokenFile: f", "S3CRET two",
	 BOB "tokenFile: %s/k/f holds blanks or control characters inside the token, must hold a "
	     "token only"},
	{"tokenFile: .", "", BOB "tokenFile: %s/k/. is a directory, must be a regular file"},
	{"tokenFile: none", "", BOB "tokenFile: %s/k/none: No such file or directory"},
	{"client-certificate: f", "",
	 BOB "client-certificate: %s/k/f: is empty, must hold a PEM certificate"},
	{"client-certificate: f", KEY_PEM,
	 BOB "client-certificate: %s/k/f: holds a private key but no certificate"},
	{"client-certificate: f", "-----BEGIN CERTIFICATE-----\nMAMC\n",
	 BOB
	 "client-certificate: %s/k/f: is cut off: no end line follows one of its -----BEGIN lines"},
	{"client-certificate: f",
	 CERT_PEM "-----BEGIN CERTIFICATE-----\nMAMC\n-----END CERTIFICATE-----\n",
	 BOB "client-certificate: %s/k/f: is damaged: what is inside \"CERTIFICATE\" block 2 "
	     "cannot be decoded"},
	{"client-key: f", CERT_PEM,
	 BOB "client-key: %s/k/f: holds a certificate but no private key"},
	{"client-key: f", KEY_PEM KEY_PEM,
	 BOB "client-key: %s/k/f: holds 2 private keys, must hold one"},
	{"client-key: f",
	 "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAMCAQE=\n-----END ENCRYPTED PRIVATE KEY-----\n",
	 BOB
	 "client-key: %s/k/f: needs a passphrase; give a key without one (openssl pkey -in FILE)"},
	{"client-key: f",
	 "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMAMCAQE=\n-----END RSA "
	 "PRIVATE KEY-----\n",
	 BOB
	 "client-key: %s/k/f: needs a passphrase; give a key without one (openssl pkey -in FILE)"},
	{"client-key: f", "0\x03\x02\x01\x01",
	 BOB "client-key: %s/k/f: is DER, must be PEM (openssl pkey -inform DER)"},
};

TEST(each_bad_file_gets_one_line_that_helps)
{
	for (size_t i = 0; i < ARRAY_LEN(bad_files); i++) {
		auto_tree struct tree t = {0};
		auto_config struct kube_config c = {0};
		auto_free char *text = str_printf(KUBECONFIG_TEXT(SERVER, "%s"), bad_files[i].user);
		auto_strbuf struct strbuf want = {0};
		const char *mark = strstr(bad_files[i].want, "%s");
		struct err err = {0};

		tree_init(&t);
		strbuf_add(&want, bad_files[i].want, (size_t)(mark - bad_files[i].want));
		strbuf_addf(&want, "%s%s", t.root, mark + 2);
		tree_write(&t, "/k/f", bad_files[i].content);
		assert_int_equal(load_text(&t, text, &c, &err), -1);
		assert_string_equal(err.text, strbuf_str(&want));
		if (strstr(err.text, "must hold a token"))
			assert_string_equal(err.reason, "BadToken");
	}
}

TEST(a_pipe_in_place_of_a_token_is_never_waited_for)
{
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};
	auto_free char *pipe = NULL;
	struct err err = {0};

	tree_init(&t);
	tree_write(&t, "/k/x", "");
	pipe = tree_path(&t, "/k/pipe");
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(load_text(&t, KUBECONFIG_TEXT(SERVER, "tokenFile: pipe"), &c, &err), -1);
	assert_true(str_ends(err.text, "/k/pipe is a device or a pipe, must be a regular file"));
}

TEST(broken_yaml_names_the_file)
{
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};
	struct err err = {0};

	tree_init(&t);
	assert_int_equal(load_text(&t, "clusters: [", &c, &err), -1);
	assert_string_equal(
		err.text, "kubeconfig /k/config: line 2, column 1 is not valid YAML; quote values "
			  "that hold special characters");
	assert_string_equal(err.reason, "BadYaml");
}

/*
 * What a parser would quote: a number that fits no integer, a tag that nobody knows, a value
 * against its tag.
 */
TEST(not_even_broken_yaml_shows_a_secret)
{
	static const char *const users[] = {
		"token: 73219999999999999999999999",
		"password: !7321 x",
		"password: !!int s7321",
		"password: '7321",
	};

	for (size_t i = 0; i < ARRAY_LEN(users); i++) {
		auto_tree struct tree t = {0};
		auto_config struct kube_config c = {0};
		auto_free char *text = str_printf(KUBECONFIG_TEXT(SERVER, "%s"), users[i]);
		struct err err = {0};

		tree_init(&t);
		assert_int_equal(load_text(&t, text, &c, &err), -1);
		assert_string_equal(err.reason, "BadYaml");
		assert_null(strstr(err.text, "7321"));
	}
}

TEST(a_missing_file_is_named)
{
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};
	struct err err = {0};

	tree_init(&t);
	assert_int_equal(load(&t, "/nowhere", NULL, NULL, &c, &err), -1);
	assert_true(str_starts(err.text, "kubeconfig: "));
	assert_true(str_ends(err.text, "/nowhere: No such file or directory"));
}

TEST(nothing_found_says_where_we_looked)
{
	static const char *const with_home[] = {"HOME=/home/u", NULL};
	static const char *const with_list[] = {"KUBECONFIG=/a:/b", "HOME=/home/u", IN_POD, NULL};
	static const struct {
		const char *context;
		const char *const *envp;
		const char *want;
	} cases[] = {
		{NULL, NULL,
		 "nothing says where the API server is: this is no pod, neither KUBECONFIG nor "
		 "HOME is set; use "
		 "--kubeconfig FILE"},
		{NULL, with_home,
		 "nothing says where the API server is: this is no pod, KUBECONFIG is not set, "
		 "/home/u/.kube/config does not exist; use --kubeconfig FILE"},
		{NULL, with_list,
		 "nothing says where the API server is: no token is in " SA
		 ", none of KUBECONFIG's files (/a:/b) exists; use --kubeconfig FILE"},
		{"prod", with_list,
		 "nothing says where the API server is: a context was asked for, none of "
		 "KUBECONFIG's files "
		 "(/a:/b) exists; use --kubeconfig FILE"},
	};
	auto_tree struct tree t = {0};

	tree_init(&t);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_config struct kube_config c = {0};
		struct err err = {0};

		assert_int_equal(load(&t, NULL, cases[i].context, cases[i].envp, &c, &err), -1);
		assert_string_equal(err.text, cases[i].want);
		assert_string_equal(err.reason, "NoKubeconfig");
	}
}

TEST(a_broken_service_account_is_not_passed_over)
{
	static const char *const envp[] = {IN_POD, NULL};
	static const char *const bad_port[] = {"KUBERNETES_SERVICE_HOST=h",
					       "KUBERNETES_SERVICE_PORT=x", NULL};
	auto_tree struct tree t = {0};
	auto_config struct kube_config c = {0};
	auto_free char *want = NULL;
	struct err err = {0};

	tree_init(&t);
	add_service_account(&t);
	assert_int_equal(load(&t, NULL, NULL, bad_port, &c, &err), -1);
	assert_string_equal(err.text, "the environment's KUBERNETES_SERVICE_HOST \"h\" and "
				      "KUBERNETES_SERVICE_PORT \"x\" are no address and port");

	tree_write(&t, SA "/ca.crt", "hello");
	want = str_printf("the pod's service account: %s" SA
			  "/ca.crt: holds no certificate (no \"-----BEGIN CERTIFICATE-----\" line)",
			  t.root);
	assert_int_equal(load(&t, NULL, NULL, envp, &c, &err), -1);
	assert_string_equal(err.text, want);
}

TEST(pem_may_have_company)
{
	static const char both[] = "subject=kubelet\r\n" CERT_PEM OTHER_CERT_PEM "\n" KEY_PEM;
	static const char ec[] =
		"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
		"-----BEGIN EC PRIVATE KEY-----\r\nMAMC \r\nAQE=\t\r\n"
		"-----END EC PRIVATE KEY-----\r\n";

	assert_int_equal(pem_check(both, strlen(both), PEM_CERTIFICATES, NULL), 0);
	assert_int_equal(pem_check(both, strlen(both), PEM_PRIVATE_KEY, NULL), 0);
	assert_int_equal(pem_check(ec, strlen(ec), PEM_PRIVATE_KEY, NULL), 0);
	assert_int_equal(pem_check(ec, strlen(ec), PEM_CERTIFICATES, NULL), -1);
}
