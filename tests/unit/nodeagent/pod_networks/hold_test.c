// SPDX-License-Identifier: Apache-2.0
/* Whether something of a pod is left on the node, as the agent believes it. */
#include "tests/support/test.h"

#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/pod_networks/attachments.h"
#include "nodeagent/process/channel.h"
#include "tests/support/yaml.h"

struct stand {
	struct loop *loop;
	struct attachments *attachments;
	struct channel *server;
	int line; /* the agent's end, until it takes it */
	bool has_changed;
	json_t *profile; /* that the server heard last */
};

static int give_line(void *arg)
{
	struct stand *s = arg;
	int line = s->line;

	s->line = -1;
	return line;
}

static void on_changed(void *arg)
{
	struct stand *s = arg;

	s->has_changed = true;
	loop_stop(s->loop);
}

static void on_server_heard(void *arg, const json_t *message)
{
	struct stand *s = arg;

	if (!json_object_get(message, "profile"))
		return;
	json_decref(s->profile);
	s->profile = json_incref(json_object_get(message, "profile"));
	loop_stop(s->loop);
}

static void lost(void *arg, const struct err *err)
{
}

static void open_line(struct stand *s)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
			 0);
	s->line = pair[0];
	s->server = channel_new(&(struct channel_config){
		.loop = s->loop, .fd = pair[1], .heard = on_server_heard, .lost = lost, .arg = s});
}

static void tell(struct stand *s, const char *list)
{
	json_auto_t *message = json_object();

	json_put(message, "attachments", yaml(list));
	s->has_changed = false;
	channel_send(s->server, message);
	loop_run(s->loop);
	assert_true(s->has_changed);
}

static int set_up(void **state)
{
	struct stand *s = mem_new(struct stand);

	s->loop = loop_new();
	s->line = -1;
	open_line(s);
	s->attachments = attachments_new(&(struct attachments_config){
		.loop = s->loop, .connect = give_line, .changed = on_changed, .arg = s});
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct stand *s = *state;

	attachments_free(s->attachments);
	channel_free(s->server);
	json_decref(s->profile);
	if (s->line >= 0)
		close(s->line);
	loop_free(s->loop);
	mem_free(s);
	return 0;
}

TEST_WITH(what_nobody_has_said_counts_as_held, set_up, tear_down)
{
	struct stand *s = *state;

	assert_true(attachments_hold(s->attachments, "u1"));
}

TEST_WITH(a_pod_is_held_while_something_of_it_is_attached, set_up, tear_down)
{
	struct stand *s = *state;

	tell(s, "[{pod: {uid: u1}, plugin: sriov}]");
	assert_true(attachments_hold(s->attachments, "u1"));
	assert_false(attachments_hold(s->attachments, "u2"));
	tell(s, "[]");
	assert_false(attachments_hold(s->attachments, "u1"));
}

/* Its address is taken, and its interface may be up before anything says so. */
TEST_WITH(so_is_one_that_gets_something_now, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *adding = yaml("{adding: [u1]}");

	tell(s, "[{pod: {uid: u2}, plugin: sriov}]");
	assert_false(attachments_hold(s->attachments, "u1"));
	channel_send(s->server, adding);
	tell(s, "[{pod: {uid: u3}, plugin: sriov}]");
	assert_true(attachments_hold(s->attachments, "u1"));
	json_put(adding, "adding", json_array());
	channel_send(s->server, adding);
	tell(s, "[]");
	assert_false(attachments_hold(s->attachments, "u1"));
}

TEST_WITH(each_server_is_told_the_profile, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *message = yaml("{attachments: [], podNetworks: {reason: PluginsOnly}}");

	attachments_set_profile(s->attachments, PROFILE_DELEGATE);
	loop_run(s->loop);
	assert_string_equal(json_string_value(s->profile), "delegate");
	assert_null(attachments_networks(s->attachments));
	channel_send(s->server, message);
	loop_run(s->loop);
	assert_string_equal(json_str_at(attachments_networks(s->attachments), "reason"),
			    "PluginsOnly");
	attachments_set_profile(s->attachments, PROFILE_DEVICES);
	loop_run(s->loop);
	assert_string_equal(json_string_value(s->profile), "devices");
}

TEST_WITH(another_server_has_to_speak_first, set_up, tear_down)
{
	struct stand *s = *state;

	tell(s, "[{pod: {uid: u1}, plugin: sriov}]");
	channel_free(take_ptr(s->server));
	open_line(s);
	/* The new line is taken a second after the old one was lost; the list says what it said. */
	tell(s, "[{pod: {uid: u2}, plugin: sriov}]");
	assert_false(attachments_hold(s->attachments, "u1"));
	assert_true(attachments_hold(s->attachments, "u2"));
}
