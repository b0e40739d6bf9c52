// SPDX-License-Identifier: Apache-2.0
/*
 * A reader of wire types and a table of messages: the table says which field is which member, and
 * what it is made of. Called where a request's body is read.
 */
#include "cli/simulate/api/protobuf.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

enum field_type {
	FIELD_STRING,
	FIELD_INT,
	FIELD_BOOL,
	FIELD_MESSAGE,
	FIELD_MAP,       /* of strings */
	FIELD_MAP_BYTES, /* of bytes, which are base64 in JSON */
	FIELD_IGNORED,   /* what the server sets itself */
};

struct message;

struct field {
	unsigned int number;
	const char *name;
	enum field_type type;
	const struct message *message;
	bool repeated;
};

struct message {
	const struct field *fields;
	size_t len;
};

#define MESSAGE(name_, ...)                                                                        \
	static const struct field name_##_fields[] = {__VA_ARGS__};                                \
	static const struct message name_ = {name_##_fields, ARRAY_LEN(name_##_fields)}

#define STR(n_, name_)                                                                             \
	{                                                                                          \
		n_, name_, FIELD_STRING, NULL, false                                               \
	}
#define STRS(n_, name_)                                                                            \
	{                                                                                          \
		n_, name_, FIELD_STRING, NULL, true                                                \
	}
#define INT(n_, name_)                                                                             \
	{                                                                                          \
		n_, name_, FIELD_INT, NULL, false                                                  \
	}
#define BOOL(n_, name_)                                                                            \
	{                                                                                          \
		n_, name_, FIELD_BOOL, NULL, false                                                 \
	}
#define MAP(n_, name_)                                                                             \
	{                                                                                          \
		n_, name_, FIELD_MAP, NULL, false                                                  \
	}
#define BYTES(n_, name_)                                                                           \
	{                                                                                          \
		n_, name_, FIELD_MAP_BYTES, NULL, false                                            \
	}
#define MSG(n_, name_, m_)                                                                         \
	{                                                                                          \
		n_, name_, FIELD_MESSAGE, &(m_), false                                             \
	}
#define MSGS(n_, name_, m_)                                                                        \
	{                                                                                          \
		n_, name_, FIELD_MESSAGE, &(m_), true                                              \
	}
#define IGNORED(n_)                                                                                \
	{                                                                                          \
		n_, "", FIELD_IGNORED, NULL, false                                                 \
	}

/* ---- messages -------------------------------------------------------------------------------- */

MESSAGE(owner, STR(1, "kind"), STR(3, "name"), STR(4, "uid"), STR(5, "apiVersion"),
	BOOL(6, "controller"), BOOL(7, "blockOwnerDeletion"));
MESSAGE(meta, STR(1, "name"), STR(2, "generateName"), STR(3, "namespace"), IGNORED(4),
	STR(5, "uid"), STR(6, "resourceVersion"), IGNORED(7), IGNORED(8), IGNORED(9), IGNORED(10),
	MAP(11, "labels"), MAP(12, "annotations"), MSGS(13, "ownerReferences", owner),
	STRS(14, "finalizers"), IGNORED(17));
MESSAGE(namespace_spec, STRS(1, "finalizers"));
MESSAGE(namespace, MSG(1, "metadata", meta), MSG(2, "spec", namespace_spec), IGNORED(3));
MESSAGE(config_map, MSG(1, "metadata", meta), MAP(2, "data"), BYTES(3, "binaryData"),
	BOOL(4, "immutable"));
MESSAGE(secret, MSG(1, "metadata", meta), BYTES(2, "data"), STR(3, "type"), MAP(4, "stringData"),
	BOOL(5, "immutable"));
MESSAGE(account, MSG(1, "metadata", meta), BOOL(4, "automountServiceAccountToken"));
MESSAGE(preconditions, STR(1, "uid"), STR(2, "resourceVersion"));
MESSAGE(delete_options, INT(1, "gracePeriodSeconds"), MSG(2, "preconditions", preconditions),
	BOOL(3, "orphanDependents"), STR(4, "propagationPolicy"), STRS(5, "dryRun"));
MESSAGE(eviction, MSG(1, "metadata", meta), MSG(2, "deleteOptions", delete_options));
MESSAGE(attributes, STR(1, "namespace"), STR(2, "verb"), STR(3, "group"), STR(4, "version"),
	STR(5, "resource"), STR(6, "subresource"), STR(7, "name"));
MESSAGE(other_attributes, STR(1, "path"), STR(2, "verb"));
MESSAGE(access_spec, MSG(1, "resourceAttributes", attributes),
	MSG(2, "nonResourceAttributes", other_attributes));
MESSAGE(access, MSG(1, "metadata", meta), MSG(2, "spec", access_spec), IGNORED(3));
MESSAGE(token_spec, STRS(1, "audiences"), INT(4, "expirationSeconds"));
MESSAGE(token_request, MSG(1, "metadata", meta), MSG(2, "spec", token_spec), IGNORED(3));
MESSAGE(rule, STRS(1, "verbs"), STRS(2, "apiGroups"), STRS(3, "resources"),
	STRS(4, "resourceNames"), STRS(5, "nonResourceURLs"));
MESSAGE(role, MSG(1, "metadata", meta), MSGS(2, "rules", rule));
MESSAGE(subject, STR(1, "kind"), STR(2, "apiGroup"), STR(3, "name"), STR(4, "namespace"));
MESSAGE(role_ref, STR(1, "apiGroup"), STR(2, "kind"), STR(3, "name"));
MESSAGE(binding, MSG(1, "metadata", meta), MSGS(2, "subjects", subject),
	MSG(3, "roleRef", role_ref));
/* What `kubectl create deployment` fills in. */
MESSAGE(port, STR(1, "name"), INT(2, "hostPort"), INT(3, "containerPort"), STR(4, "protocol"),
	STR(5, "hostIP"));
MESSAGE(resources, IGNORED(0));
MESSAGE(container, STR(1, "name"), STR(2, "image"), STRS(3, "command"), STRS(4, "args"),
	STR(5, "workingDir"), MSGS(6, "ports", port), MSG(8, "resources", resources),
	STR(13, "terminationMessagePath"), STR(14, "imagePullPolicy"), BOOL(16, "stdin"),
	BOOL(17, "stdinOnce"), BOOL(18, "tty"), STR(20, "terminationMessagePolicy"));
MESSAGE(pod_spec, MSGS(2, "containers", container), STR(3, "restartPolicy"), STR(6, "dnsPolicy"),
	MAP(7, "nodeSelector"), STR(8, "serviceAccountName"), STR(9, "serviceAccount"),
	STR(10, "nodeName"), BOOL(11, "hostNetwork"), BOOL(12, "hostPID"), BOOL(13, "hostIPC"),
	STR(16, "hostname"), STR(17, "subdomain"), STR(19, "schedulerName"),
	STR(24, "priorityClassName"));
MESSAGE(template, MSG(1, "metadata", meta), MSG(2, "spec", pod_spec));
MESSAGE(selector, MAP(1, "matchLabels"));
MESSAGE(strategy, STR(1, "type"));
MESSAGE(deployment_spec, INT(1, "replicas"), MSG(2, "selector", selector),
	MSG(3, "template", template), MSG(4, "strategy", strategy), INT(5, "minReadySeconds"),
	INT(6, "revisionHistoryLimit"), BOOL(7, "paused"), INT(9, "progressDeadlineSeconds"));
MESSAGE(deployment, MSG(1, "metadata", meta), MSG(2, "spec", deployment_spec), IGNORED(3));

static const struct {
	const char *kind;
	const struct message *message;
} kinds[] = {
	{"Namespace", &namespace},
	{"ConfigMap", &config_map},
	{"Secret", &secret},
	{"ServiceAccount", &account},
	{"DeleteOptions", &delete_options},
	{"Eviction", &eviction},
	{"SelfSubjectAccessReview", &access},
	{"TokenRequest", &token_request},
	{"Role", &role},
	{"ClusterRole", &role},
	{"RoleBinding", &binding},
	{"ClusterRoleBinding", &binding},
	{"Deployment", &deployment},
};

/* ---- the wire -------------------------------------------------------------------------------- */

enum wire_type {
	WIRE_VARINT = 0,
	WIRE_LENGTH = 2,
};

struct wire {
	const unsigned char *at, *end;
};

/* One field of the wire. */
struct piece {
	uint64_t number;
	unsigned int type;
	uint64_t value;    /* WIRE_VARINT */
	struct wire bytes; /* WIRE_LENGTH */
};

static int bad(struct err *err)
{
	return err_set(err, ERR_INVALID, "BadProtobuf", "the body is not a protobuf message");
}

static bool read_varint(struct wire *wire, uint64_t *ret)
{
	*ret = 0;
	for (unsigned int shift = 0; shift < 64 && wire->at < wire->end; shift += 7) {
		unsigned char byte = *wire->at++;

		*ret |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static int read_piece(struct wire *wire, struct piece *ret, struct err *err)
{
	uint64_t tag, len;

	if (!read_varint(wire, &tag))
		return bad(err);
	*ret = (struct piece){.number = tag >> 3, .type = tag & 7};
	if (ret->type == WIRE_VARINT)
		return read_varint(wire, &ret->value) ? 0 : bad(err);
	if (ret->type != WIRE_LENGTH || !read_varint(wire, &len) ||
	    len > (uint64_t)(wire->end - wire->at))
		return bad(err);
	ret->bytes = (struct wire){wire->at, wire->at + len};
	wire->at += len;
	return 0;
}

static size_t len_of(const struct wire *wire)
{
	return (size_t)(wire->end - wire->at);
}

/* Foreign bytes: what is not UTF-8 becomes U+FFFD. */
static json_t *text_of(const struct wire *wire)
{
	auto_strbuf struct strbuf text = {0};

	strbuf_add_utf8(&text, (const char *)wire->at, len_of(wire));
	return json_stringn(strbuf_str(&text), text.len);
}

static json_t *base64_of(const struct wire *wire)
{
	auto_strbuf struct strbuf text = {0};

	base64_encode(wire->at, len_of(wire), &text);
	return json_string(strbuf_str(&text));
}

/* ---- to JSON --------------------------------------------------------------------------------- */

static int read_message(const struct message *message, struct wire wire, const char *where,
			json_t *ret, struct err *err);

/* An entry of a map is a message of key and value. */
static int read_entry(struct wire wire, bool is_bytes, json_t *map, struct err *err)
{
	struct wire empty = {wire.at, wire.at}, value = empty;
	json_auto_t *key = json_string("");
	struct piece piece;

	while (wire.at < wire.end) {
		if (read_piece(&wire, &piece, err) < 0)
			return -1;
		if (piece.type != WIRE_LENGTH)
			return bad(err);
		if (piece.number == 1) {
			json_replace(&key, text_of(&piece.bytes));
		} else if (piece.number == 2) {
			value = piece.bytes;
		}
	}
	if (strlen(json_string_value(key)) != json_string_length(key))
		return bad(err);
	json_put(map, json_string_value(key), is_bytes ? base64_of(&value) : text_of(&value));
	return 0;
}

static const struct field *find_field(const struct message *message, uint64_t number)
{
	for (size_t i = 0; i < message->len; i++)
		if (message->fields[i].number == number)
			return &message->fields[i];
	return NULL;
}

/* The value of one piece; maps are added to what is there. */
static int read_value(const struct field *field, const struct piece *piece, const char *where,
		      json_t *object, json_t **ret, struct err *err)
{
	*ret = NULL;
	switch (field->type) {
	case FIELD_STRING:
		*ret = text_of(&piece->bytes);
		return 0;
	case FIELD_INT:
		*ret = json_integer((json_int_t)piece->value);
		return 0;
	case FIELD_BOOL:
		*ret = json_boolean(piece->value != 0);
		return 0;
	case FIELD_MAP:
	case FIELD_MAP_BYTES:
		return read_entry(piece->bytes, field->type == FIELD_MAP_BYTES,
				  json_need_object(object, field->name), err);
	case FIELD_MESSAGE:
		*ret = json_object();
		if (read_message(field->message, piece->bytes, where, *ret, err) == 0)
			return 0;
		json_decref(*ret);
		*ret = NULL;
		return -1;
	case FIELD_IGNORED:
		return 0;
	}
	return 0;
}

/* Zero values of gogo/protobuf are on the wire: an empty string is an absent one. */
static bool is_absent(const json_t *value)
{
	return json_is_string(value) && json_string_length(value) == 0;
}

static int read_message(const struct message *message, struct wire wire, const char *where,
			json_t *ret, struct err *err)
{
	while (wire.at < wire.end) {
		const struct field *field;
		auto_free char *path = NULL;
		struct piece piece;
		json_t *value;

		if (read_piece(&wire, &piece, err) < 0)
			return -1;
		field = find_field(message, piece.number);
		if (!field)
			return err_set(err, ERR_INVALID, "UnsupportedMediaType",
				       "%s: field %llu of the protobuf message is not known here; "
				       "send JSON: kubectl apply, or kubectl create -f",
				       where, (unsigned long long)piece.number);
		if (field->type == FIELD_IGNORED)
			continue;
		if ((piece.type == WIRE_VARINT) !=
		    (field->type == FIELD_INT || field->type == FIELD_BOOL))
			return bad(err);
		path = str_printf("%s.%s", where, field->name);
		if (read_value(field, &piece, path, ret, &value, err) < 0)
			return -1;
		if (!value)
			continue;
		if (field->repeated) {
			json_t *list = json_object_get(ret, field->name);

			if (!list) {
				list = json_array();
				json_put(ret, field->name, list);
			}
			json_array_append_new(list, value);
		} else if (is_absent(value)) {
			json_decref(value);
		} else {
			json_put(ret, field->name, value);
		}
	}
	return 0;
}

/* ---- the envelope ---------------------------------------------------------------------------- */

MESSAGE(type_meta, STR(1, "apiVersion"), STR(2, "kind"));

static const struct message *message_of(const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kinds[i].kind, kind))
			return kinds[i].message;
	return NULL;
}

json_t *protobuf_object(const void *data, size_t len, struct err *err)
{
	static const char magic[4] = "k8s";
	struct wire wire, raw = {0};
	json_auto_t *object = json_object();
	const struct message *message;
	struct piece piece;
	const char *kind;

	if (len < sizeof(magic) || memcmp(data, magic, sizeof(magic)) != 0) {
		(void)bad(err);
		return NULL;
	}
	wire = (struct wire){(const unsigned char *)data + sizeof(magic),
			     (const unsigned char *)data + len};
	while (wire.at < wire.end) {
		if (read_piece(&wire, &piece, err) < 0)
			return NULL;
		if (piece.number == 1 && piece.type == WIRE_LENGTH &&
		    read_message(&type_meta, piece.bytes, "typeMeta", object, err) < 0)
			return NULL;
		if (piece.number == 2 && piece.type == WIRE_LENGTH)
			raw = piece.bytes;
	}
	kind = json_str_or(json_at(object, "kind"), "");
	message = message_of(kind);
	if (!message) {
		(void)err_set(err, ERR_INVALID, "UnsupportedMediaType",
			      "%.64s as protobuf is not known here; send JSON: kubectl apply, or "
			      "kubectl create -f",
			      kind[0] ? kind : "an object without a kind");
		return NULL;
	}
	if (raw.at && read_message(message, raw, kind, object, err) < 0)
		return NULL;
	return json_incref(object);
}
