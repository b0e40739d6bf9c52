// SPDX-License-Identifier: Apache-2.0
/* What the agent reads before a pod's plugins ask for it. */
#include "tests/support/test.h"

#include <sys/socket.h>
#include <unistd.h>

#include "lib/json/json.h"
#include "nodeagent/pod_networks/addresses.h"
#include "nodeagent/pod_networks/attachments.h"
#include "nodeagent/process/channel.h"
#include "tests/fakes/scripted.h"
#include "tests/support/yaml.h"

#define POD      "GET /api/v1/namespaces/ml/pods/p"
#define NAD      "GET /apis/k8s.cni.cncf.io/v1/namespaces/ml/network-attachment-definitions/rail"
#define ENDPOINT "GET /apis/spiderpool.spidernet.io/v2beta1/namespaces/ml/spiderendpoints/p"
#define POOLS    "/apis/spiderpool.spidernet.io/v2beta1/spiderippools"
#define LIST     "GET /apis/spiderpool.spidernet.io/v2beta1/spidercoordinators"
#define CONFIG   "GET /api/v1/namespaces/spiderpool/configmaps/spiderpool-conf"

#define THE_POD                                                                                    \
	"{\"metadata\": {\"namespace\": \"ml\", \"name\": \"p\", \"uid\": \"u-1\", "               \
	"\"annotations\": {\"k8s.v1.cni.cncf.io/networks\": \"rail\"}}, \"spec\": {}}"
#define NETWORK(PLUGINS)                                                                           \
	"{\"metadata\": {\"namespace\": \"ml\", \"name\": \"rail\"}, \"spec\": {\"config\": "      \
	"\"{\\\"cniVersion\\\": \\\"1.0.0\\\", \\\"name\\\": \\\"rail\\\", " PLUGINS "}\"}}"
#define MACVLAN(IPAM)                                                                              \
	"{\\\"type\\\": \\\"macvlan\\\", \\\"ipam\\\": {\\\"type\\\": \\\"" IPAM "\\\"}}"
#define COORDINATOR "{\\\"type\\\": \\\"coordinator\\\"}"

#define ANSWERS                                                                                    \
	"{\"metadata\": {\"namespace\": \"ml\", \"name\": \"p\"}, \"status\": {\"current\": "      \
	"{\"uid\": \"u-1\", \"ips\": [{\"interface\": \"net1\", \"ipv4\": \"10.6.0.10/24\", "      \
	"\"ipv4Pool\": \"a\"}]}}}"
#define TWO_NICS                                                                                   \
	"{\"metadata\": {\"namespace\": \"ml\", \"name\": \"p\"}, \"status\": {\"current\": "      \
	"{\"uid\": \"u-1\", \"ips\": [{\"interface\": \"net1\", \"ipv4\": \"10.6.0.10/24\", "      \
	"\"ipv4Pool\": \"a\"}, {\"interface\": \"net2\", \"ipv4\": \"10.7.0.10/24\", "             \
	"\"ipv4Pool\": \"b\"}]}}}"
#define SYNCED                                                                                     \
	"{\"items\": [{\"metadata\": {\"name\": \"default\"}, \"spec\": {\"mode\": "               \
	"\"underlay\"}, "                                                                          \
	"\"status\": {\"phase\": \"Synced\"}}]}"
#define NO_OBJECT "{\"kind\": \"Status\", \"reason\": \"NotFound\", \"details\": {\"name\": \"x\"}}"

static struct scripted s;
static struct addresses *addresses;
static struct attachments *attachments;
static struct channel *server;
static int line; /* the agent's end, until it takes it */
static int n_answers;
static json_t *answer;

static int give_line(void *arg)
{
	int given = line;

	line = -1;
	return given;
}

static void ignore(void *arg)
{
}

static void lost(void *arg, const struct err *err)
{
}

static void on_heard(void *arg, const json_t *message)
{
	n_answers++;
	json_decref(answer);
	answer = json_incref((json_t *)message);
}

/* Whatever the pools are asked for. */
static void admit(void)
{
	for (int i = 0; i < 2; i++)
		http_script_add(
			s.http, i ? "GET " POOLS "/b" : "GET " POOLS "/a",
			&(struct http_reply){
				.body = "{\"status\": {\"allocatedIPs\": \"{\\\"10.6.0.10\\\": "
					"{\\\"pod\\\": \\\"ml/p\\\", \\\"podUid\\\": "
					"\\\"u-1\\\"}, \\\"10.7.0.10\\\": {\\\"pod\\\": "
					"\\\"ml/p\\\", \\\"podUid\\\": \\\"u-1\\\"}}\"}}",
				.always = true});
}

static int set_up(void **state)
{
	int pair[2];

	scripted_open(&s);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
			 0);
	line = pair[0];
	n_answers = 0;
	answer = NULL;
	server = channel_new(&(struct channel_config){
		.loop = s.loop, .fd = pair[1], .heard = on_heard, .lost = lost});
	admit();
	addresses = addresses_new(&(struct addresses_config){
		.loop = s.loop,
		.client = s.client,
		.node = "n1",
		.ns = "orbweaver-system",
		.config_ns = "spiderpool",
	});
	attachments = attachments_new(&(struct attachments_config){
		.loop = s.loop,
		.client = s.client,
		.addresses = addresses,
		.connect = give_line,
		.changed = ignore,
	});
	return 0;
}

static int tear_down(void **state)
{
	attachments_free(attachments);
	addresses_free(addresses);
	channel_free(server);
	json_decref(answer);
	if (line >= 0)
		close(line);
	scripted_close(&s);
	return 0;
}

static void reply(const char *start, int status, const char *body)
{
	http_script_add(s.http, start, &(struct http_reply){.status = status, .body = body});
}

static void reply_settings(void)
{
	reply(POD, 404, NO_OBJECT);
	reply(LIST, 200, SYNCED);
	reply(CONFIG, 404, NO_OBJECT);
}

/* Has the answer, and lets what is read besides come in. */
static void ask(const char *text)
{
	json_auto_t *message = yaml(text);
	int before = n_answers;

	channel_send(server, message);
	scripted_until(&s, &n_answers, before + 1);
	assert_non_null(json_at(answer, "result"));
	scripted_for(&s, 100);
}

static void ask_networks(const char *network)
{
	reply(POD, 200, THE_POD);
	reply(NAD, 200, network);
	ask("{id: 1, kind: networks, container: c1, config: {},"
	    " pod: {namespace: ml, name: p, uid: u-1}}");
}

static void ask_addresses(void)
{
	ask("{id: 2, kind: addresses, container: c1, ifname: net1, version: 1.0.0,"
	    " wish: {nic: net1}, pod: {namespace: ml, name: p, uid: u-1}}");
}

static void ask_coordinator(void)
{
	ask("{id: 3, kind: coordinator, container: c1, ifname: net1,"
	    " pod: {namespace: ml, name: p, uid: u-1}}");
}

TEST_WITH(definitions_say_what_plugins_will_ask_for, set_up, tear_down)
{
	reply(ENDPOINT, 200, ANSWERS);
	reply(LIST, 200, SYNCED);
	reply(CONFIG, 404, NO_OBJECT);
	reply(POD, 200, THE_POD);
	ask_networks(NETWORK("\\\"plugins\\\": [" MACVLAN("spiderpool") ", " COORDINATOR "]"));
	assert_int_equal(http_script_unused(s.http), 0);
	/* All is there. */
	ask_addresses();
	ask_coordinator();
	assert_string_equal(json_str_at(answer, "result", "mode"), "underlay");
	assert_int_equal(http_script_unexpected(s.http), 0);
}

TEST_WITH(nothing_is_read_for_other_networks, set_up, tear_down)
{
	ask_networks(NETWORK("\\\"plugins\\\": [" MACVLAN("host-local") "]"));
	assert_int_equal(http_script_count(s.http, ""), 2);
}

TEST_WITH(where_coordinators_ask_one_is_expected_behind_an_address, set_up, tear_down)
{
	reply(ENDPOINT, 200, ANSWERS);
	ask_addresses();
	assert_int_equal(http_script_count(s.http, ""), 2);
	reply_settings();
	ask_coordinator();
	reply(ENDPOINT, 200, ANSWERS);
	reply_settings();
	ask("{id: 4, kind: addresses, container: c2, ifname: net1, version: 1.0.0,"
	    " wish: {nic: net1}, pod: {namespace: ml, name: p, uid: u-1}}");
	assert_int_equal(http_script_unused(s.http), 0);
	assert_int_equal(http_script_unexpected(s.http), 0);
}

TEST_WITH(one_answer_has_the_addresses_of_all_nics_that_ask, set_up, tear_down)
{
	const json_t *results;

	reply(ENDPOINT, 200, TWO_NICS);
	ask("{id: 2, kind: addresses, container: c1, ifname: net1, wishes: [{nic: net1}, {nic: "
	    "net2}], versions: {net1: 1.0.0, net2: 0.4.0}, pod: {namespace: ml, name: p, uid: "
	    "u-1}}");
	results = json_at(answer, "result", "results");
	assert_string_equal(
		json_str_at(json_array_get(json_at(results, "net1", "ips"), 0), "address"),
		"10.6.0.10/24");
	assert_string_equal(json_str_at(results, "net2", "cniVersion"), "0.4.0");
	assert_string_equal(
		json_str_at(json_array_get(json_at(results, "net2", "ips"), 0), "address"),
		"10.7.0.10/24");
	assert_int_equal(http_script_count(s.http, ENDPOINT), 1);
}
