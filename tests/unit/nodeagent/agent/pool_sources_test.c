// SPDX-License-Identifier: Apache-2.0
/* A ConfigMap with a configuration of devices, by way of an informer that is made up here. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/cache.h"
#include "lib/kube/informer.h"
#include "nodeagent/agent/pool_sources.h"

struct informer {
	struct informer_config config;
	bool is_synced;
};

static struct informer informer;

struct informer *informer_new(struct loop *loop, struct kube_client *client,
			      const struct informer_config *config)
{
	informer = (struct informer){.config = *config};
	return &informer;
}

void informer_free(struct informer *given)
{
}

bool informer_is_synced(const struct informer *given)
{
	return given->is_synced;
}

struct stand {
	struct loop *loop;
	struct pool_sources *sources;
	struct strbuf told;
	struct strbuf wrong; /* events on the ConfigMap */
	int changed;
};

static void on_changed(void *arg)
{
	((struct stand *)arg)->changed++;
}

static void on_told(void *arg, bool warning, const char *reason, const char *message)
{
	strbuf_addf(&((struct stand *)arg)->told, "%s: %s\n", reason, message);
}

static void on_wrong(void *arg, const struct event_object *config_map, const char *reason,
		     const char *message)
{
	strbuf_addf(&((struct stand *)arg)->wrong, "%s/%s of version %s: %s: %s\n", config_map->ns,
		    config_map->name, config_map->once, reason, message);
}

static int set_up(void **state)
{
	struct stand *s = mem_new(struct stand);

	s->loop = loop_new();
	s->sources = pool_sources_new(&(struct pool_sources_config){
		.loop = s->loop,
		.ns = "orbweaver-system",
		.from[POOL_SOURCE_SHARED] = "shared",
		.changed = on_changed,
		.emit = on_told,
		.wrong = on_wrong,
		.arg = s,
	});
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct stand *s = *state;

	pool_sources_free(s->sources);
	loop_free(s->loop);
	strbuf_done(&s->told);
	strbuf_done(&s->wrong);
	mem_free(s);
	return 0;
}

static void trouble(struct stand *s, const char *reason, const char *text)
{
	struct err err = {0};

	if (reason)
		(void)err_set(&err, ERR_TRANSIENT, reason, "%s", text);
	informer.config.trouble(informer.config.arg, reason ? &err : NULL);
	for (int i = 0; i < 5; i++)
		loop_turn(s->loop, false);
}

static void has_failures(const struct stand *s, const char *want)
{
	json_auto_t *list = pool_sources_failures(s->sources);
	auto_strbuf struct strbuf text = {0};
	json_t *entry;
	size_t i;

	json_array_foreach (list, i, entry)
		strbuf_addf(&text, "%s: %s\n", json_str_at(entry, "reason"),
			    json_str_at(entry, "message"));
	assert_string_equal(strbuf_str(&text), want);
}

#define REFUSED                                                                                    \
	"ConfigMapUnreadable: ConfigMap orbweaver-system/shared cannot be read, let the agent "    \
	"list and watch it (manifests/base/rbac.yaml): 403: no\n"

TEST_WITH(a_config_map_that_the_server_refuses_to_show_is_told, set_up, tear_down)
{
	struct stand *s = *state;

	has_failures(s, "");
	trouble(s, "Forbidden", "403: no");
	has_failures(s, REFUSED);
	assert_string_equal(strbuf_str(&s->told), REFUSED);
	assert_int_equal(s->changed, 1);
	/* The server goes, and comes back: nothing new. */
	trouble(s, "ServerUnreachable", "gone");
	trouble(s, "Forbidden", "403: no");
	has_failures(s, REFUSED);
	assert_string_equal(strbuf_str(&s->told), REFUSED);
	assert_int_equal(s->changed, 1);
	trouble(s, NULL, "");
	has_failures(s, "");
	assert_int_equal(s->changed, 2);
}

TEST_WITH(a_server_that_is_away_is_no_failure_of_the_configuration, set_up, tear_down)
{
	struct stand *s = *state;

	trouble(s, "ServerUnreachable", "gone");
	has_failures(s, "");
	assert_string_equal(strbuf_str(&s->told), "");
	assert_int_equal(s->changed, 0);
}

TEST_WITH(a_config_map_is_known_when_it_was_looked_for, set_up, tear_down)
{
	struct stand *s = *state;

	assert_false(pool_sources_are_known(s->sources));
	informer.is_synced = true;
	informer.config.synced(informer.config.arg);
	loop_turn(s->loop, false);
	assert_true(pool_sources_are_known(s->sources));
	has_failures(s, "");
}

static void config_map(struct stand *s, const char *version, const char *text)
{
	json_t *object = json_pack("{s:{s:s, s:s, s:s, s:s}, s:{s:s}}", "metadata", "name",
				   "shared", "namespace", "orbweaver-system", "uid", "u",
				   "resourceVersion", version, "data", "config.json", text);

	strbuf_reset(&s->wrong);
	cache_put(informer.config.cache, object);
	loop_turn(s->loop, false);
}

TEST_WITH(what_is_wrong_with_a_text_is_an_event_on_its_config_map, set_up, tear_down)
{
	static const char good[] = "{\"configList\": [{\"resourceName\": \"a\", \"rdmaHcaMax\": 2, "
				   "\"selectors\": {\"vendors\": [\"15b3\"]}}]}";
	static const char bad[] = "{\"configList\": [{\"resourceName\": \"a\", \"rdmaHcaMax\": -5, "
				  "\"selectors\": {\"vendors\": [\"15b3\"]}}]}";
	struct stand *s = *state;

	config_map(s, "1", good);
	assert_string_equal(strbuf_str(&s->wrong), "");
	config_map(s, "2", bad);
	if (!strstr(strbuf_str(&s->wrong), "orbweaver-system/shared of version 2: ") ||
	    !strstr(strbuf_str(&s->wrong), "configList[0]") ||
	    !strstr(strbuf_str(&s->wrong), "rdmaHcaMax"))
		fail_msg("%s", strbuf_str(&s->wrong));
	config_map(s, "3", "{ garbage");
	if (!strstr(strbuf_str(&s->wrong), "shared of version 3: BadSharedConfig: "))
		fail_msg("%s", strbuf_str(&s->wrong));
	strbuf_reset(&s->wrong);
	cache_put(informer.config.cache,
		  json_pack("{s:{s:s, s:s, s:s}}", "metadata", "name", "shared", "namespace",
			    "orbweaver-system", "resourceVersion", "4"));
	loop_turn(s->loop, false);
	if (!strstr(strbuf_str(&s->wrong),
		    "BadConfigMap: ConfigMap orbweaver-system/shared has no key config.json"))
		fail_msg("%s", strbuf_str(&s->wrong));
	config_map(s, "5", "{\"colour\": 1, \"configList\": []}");
	if (!strstr(strbuf_str(&s->wrong), "UnknownField: colour: no such field"))
		fail_msg("%s", strbuf_str(&s->wrong));
	config_map(s, "6", good);
	assert_string_equal(strbuf_str(&s->wrong), "");
	config_map(s, "7",
		   "{\"configList\": [{\"resourceName\": \"a\", \"rdmaHcaMaxx\": 2, "
		   "\"selectors\": {\"vendors\": [\"15b3\"]}}]}");
	if (!strstr(strbuf_str(&s->wrong), "shared of version 7: UnknownField: "
					   "configList[0].rdmaHcaMaxx: no such field, the nearest "
					   "is rdmaHcaMax; there are "))
		fail_msg("%s", strbuf_str(&s->wrong));
}

TEST_WITH(a_name_that_others_have_is_an_event_on_the_config_map, set_up, tear_down)
{
	struct stand *s = *state;

	/* There is no such text (any more). */
	pool_sources_tell(s->sources, POOL_SOURCE_SHARED, "DuplicateResource", "r comes from x");
	pool_sources_tell(s->sources, POOL_SOURCE_LIST, "DuplicateResource", "r comes from x");
	assert_string_equal(strbuf_str(&s->wrong), "");
	config_map(s, "1", "{\"configList\": []}");
	pool_sources_tell(s->sources, POOL_SOURCE_SHARED, "DuplicateResource", "r comes from x");
	assert_string_equal(
		strbuf_str(&s->wrong),
		"orbweaver-system/shared of version 1: DuplicateResource: r comes from x\n");
}
