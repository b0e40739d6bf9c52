// SPDX-License-Identifier: Apache-2.0
/* A treap of address ranges with the highest end per subtree; see ip_index.h. */
#include "reconcilers/ipam/ip_index.h"

#include <assert.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

struct owner;

struct node {
	struct ip_range range;
	ip_number highest; /* of range.last in this subtree */
	uint64_t id;       /* order of insertion; decides between equal ranges */
	uint64_t priority; /* heap order; from the id, so that equal histories give equal trees */
	struct node *left, *right;
	struct owner *owner;
};

struct owner {
	char *key;
	struct node **nodes;
	size_t len;
	uint64_t seen; /* the find that reported it last */
};

struct ip_index {
	struct node *root;
	struct map owners; /* key to struct owner, owned */
	uint64_t next_id;
	uint64_t finds;
};

static void owner_free(void *p)
{
	struct owner *owner = p;

	for (size_t i = 0; i < owner->len; i++)
		mem_free(owner->nodes[i]);
	mem_free(owner->nodes);
	mem_free(owner->key);
	mem_free(owner);
}

struct ip_index *ip_index_new(void)
{
	struct ip_index *index = mem_new(struct ip_index);

	index->owners.free_value = owner_free;
	return index;
}

void ip_index_free(struct ip_index *index)
{
	if (!index)
		return;
	map_done(&index->owners);
	mem_free(index);
}

static bool node_precedes(const struct node *a, const struct node *b)
{
	if (a->range.first != b->range.first)
		return a->range.first < b->range.first;
	return a->id < b->id;
}

static void node_update(struct node *node)
{
	node->highest = node->range.last;
	if (node->left && node->left->highest > node->highest)
		node->highest = node->left->highest;
	if (node->right && node->right->highest > node->highest)
		node->highest = node->right->highest;
}

/*
 * All nodes before `pivot` go left, the others right. Depth: O(log n) expected, as everywhere
 * below.
 */
static void tree_split(struct node *tree, const struct node *pivot, struct node **ret_left,
		       struct node **ret_right)
{
	if (!tree) {
		*ret_left = *ret_right = NULL;
		return;
	}
	if (node_precedes(tree, pivot)) {
		tree_split(tree->right, pivot, &tree->right, ret_right);
		*ret_left = tree;
	} else {
		tree_split(tree->left, pivot, ret_left, &tree->left);
		*ret_right = tree;
	}
	node_update(tree);
}

/* All nodes of a come before all of b. */
static struct node *tree_join(struct node *a, struct node *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->priority > b->priority) {
		a->right = tree_join(a->right, b);
		node_update(a);
		return a;
	}
	b->left = tree_join(a, b->left);
	node_update(b);
	return b;
}

static struct node *tree_insert(struct node *tree, struct node *node)
{
	if (!tree || node->priority > tree->priority) {
		tree_split(tree, node, &node->left, &node->right);
		node_update(node);
		return node;
	}
	if (node_precedes(node, tree))
		tree->left = tree_insert(tree->left, node);
	else
		tree->right = tree_insert(tree->right, node);
	node_update(tree);
	return tree;
}

/* Unlink, not free. */
static struct node *tree_remove(struct node *tree, const struct node *node)
{
	if (tree == node)
		return tree_join(tree->left, tree->right);
	if (node_precedes(node, tree))
		tree->left = tree_remove(tree->left, node);
	else
		tree->right = tree_remove(tree->right, node);
	node_update(tree);
	return tree;
}

void ip_index_remove(struct ip_index *index, const char *owner_key)
{
	struct owner *owner = map_get(&index->owners, owner_key);

	if (!owner)
		return;
	for (size_t i = 0; i < owner->len; i++)
		index->root = tree_remove(index->root, owner->nodes[i]);
	map_del(&index->owners, owner_key);
}

void ip_index_put(struct ip_index *index, const char *owner_key, const struct ip_set *ranges)
{
	struct owner *owner;

	assert(owner_key);
	ip_index_remove(index, owner_key);
	if (ranges->len == 0)
		return;
	owner = mem_new(struct owner);
	owner->key = str_dup(owner_key);
	owner->nodes = mem_calloc(ranges->len, sizeof(struct node *));
	owner->len = ranges->len;
	for (size_t i = 0; i < ranges->len; i++) {
		struct node *made = mem_new(struct node);

		made->range = ranges->items[i];
		made->id = index->next_id++;
		made->priority = str_hash(&made->id, sizeof(made->id));
		made->owner = owner;
		owner->nodes[i] = made;
		index->root = tree_insert(index->root, owner->nodes[i]);
	}
	map_set(&index->owners, owner_key, owner);
}

struct find {
	struct ip_range range;
	uint64_t number;
	void (*hit)(void *ctx, const char *owner);
	void *ctx;
};

static void tree_find(const struct node *tree, const struct find *find)
{
	if (!tree || tree->highest < find->range.first)
		return;
	tree_find(tree->left, find);
	if (tree->range.first > find->range.last)
		return;
	if (tree->range.last >= find->range.first && tree->owner->seen != find->number) {
		tree->owner->seen = find->number;
		find->hit(find->ctx, tree->owner->key);
	}
	tree_find(tree->right, find);
}

void ip_index_find(struct ip_index *index, const struct ip_set *ranges,
		   void (*hit)(void *ctx, const char *owner), void *ctx)
{
	struct find find = {.number = ++index->finds, .hit = hit, .ctx = ctx};

	assert(hit);
	for (size_t i = 0; i < ranges->len; i++) {
		find.range = ranges->items[i];
		tree_find(index->root, &find);
	}
}
