// SPDX-License-Identifier: Apache-2.0
/* Files that pods were given, and whether they are still those of their devices. See pools.h. */

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools_internal.h"

/*
 * Files of one RDMA device, whose numbers the kernel chose when that arrived; an empty array when
 * the RDMA device is not there. New.
 */
static json_t *files_of(const json_t *device)
{
	json_t *files = json_array(), *node;
	size_t i;

	json_array_foreach (json_at(device, "nodes"), i, node)
		if (str_starts(json_str_or(node, ""), "/dev/infiniband/") &&
		    !str_eq(json_string_value(node), "/dev/infiniband/rdma_cm"))
			json_array_append(files, node);
	return files;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

/* The record of one device; NULL: it has no files of that kind. New. */
static json_t *record_of(const json_t *before, const char *pod, const json_t *device,
			 bool is_first_list)
{
	json_auto_t *files = NULL;

	if (str_eq(json_str_at(before, "pod"), pod))
		return json_incref((json_t *)before);
	/*
	 * Given shortly before the machine went down: whatever it was given, it is not written
	 * down.
	 */
	files = is_first_list ? json_array() : files_of(device);
	return is_first_list || json_array_size(files) > 0
		       ? json_pack("{s:s, s:O}", "pod", pod, "files", files)
		       : NULL;
}

json_t *pools_given(const json_t *before, const json_t *allocated, const json_t *pools,
		    const char *boot)
{
	const char *last = json_str_at(before, "boot");
	bool is_first_list = last && boot && !str_eq(last, boot);
	json_t *given = json_object(), *devices, *pod;
	const char *resource, *id;

	json_each (allocated, resource, devices) {
		const json_t *pool = json_find(json_at(pools, "resources"), "name", resource);
		json_t *records = json_object();

		json_each (devices, id, pod)
			json_put(records, id,
				 record_of(json_at(before, "devices", resource, id),
					   json_string_value(pod),
					   json_find(json_at(pool, "devices"), "id", id),
					   is_first_list));
		if (json_object_size(records) > 0)
			json_object_set(given, resource, records);
		json_decref(records);
	}
	devices = json_pack("{s:o}", "devices", given);
	json_put_str(devices, "boot", boot ? boot : last);
	return devices;
}

/* ---- what is wrong --------------------------------------------------------------------------- */

static const char *first_of(const json_t *list)
{
	return json_str_or(json_array_get(list, 0), "?");
}

/* The first item of a list that the other has, too, or has not. Borrowed; NULL: none. */
static const char *first_in(const json_t *list, const json_t *other, bool is_in)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		if (json_list_has(other, json_string_value(item)) == is_in)
			return json_string_value(item);
	return NULL;
}

static void withhold(json_t *resource, json_t *device, char *cause)
{
	auto_free char *text = cause;
	json_t *causes = json_at(resource, "causes");

	json_put_bool(device, "healthy", false);
	json_put_str(device, "cause", text);
	if (json_is_array(causes))
		json_array_append_new(
			causes, json_fmt("%s: %s", json_str_or(json_at(device, "id"), "?"), text));
}

/* Is its own pod right about it? */
static void check_own_pod(json_t *pools, json_t *resource, json_t *device, const json_t *record,
			  const json_t *files)
{
	const char *name = json_str_at(resource, "name"), *id = json_str_at(device, "id");
	const char *pod = json_str_or(json_at(record, "pod"), "a pod");
	const json_t *told = json_at(record, "files");
	const char *gone = json_array_size(told) > 0 ? first_in(told, files, false)
						     : "a file that nobody knows";
	auto_free char *message = NULL;
	json_t *problem;

	if (!gone)
		return;
	message = str_printf("pod %s was given %s for its device %s, which is %s since the last "
			     "boot: delete the pod, so that it is given what is right",
			     pod, gone, id, first_of(files));
	problem = json_pack("{s:s, s:s, s:s}", "resource", name, "reason", "DeviceFilesMoved",
			    "message", message);
	json_put_str(problem, "pod", pod);
	json_array_append_new(json_at(pools, "problems"), problem);
	withhold(resource, device,
		 str_printf("%s was given %s for it, and it is %s now; delete that pod", pod, gone,
			    first_of(files)));
}

/* Has a pod of another device a file of this one? */
static void check_other_pods(const json_t *given, json_t *resource, json_t *device,
			     const json_t *files)
{
	const char *name, *id, *own = json_str_at(device, "id");
	json_t *records, *record;

	json_each (given, name, records)
		json_each (records, id, record) {
			const char *file = first_in(json_at(record, "files"), files, true);

			if (!file || str_eq(id, own))
				continue;
			withhold(resource, device,
				 str_printf("its %s was given to %s with %s; delete that pod", file,
					    json_str_or(json_at(record, "pod"), "a pod"), id));
			return;
		}
}

void pools_check_given(json_t *pools, const json_t *given)
{
	const json_t *records = json_at(given, "devices");
	json_t *resource, *device;
	size_t i, k;

	if (json_object_size(records) == 0)
		return;
	json_array_foreach (json_at(pools, "resources"), i, resource)
		json_array_foreach (json_at(resource, "devices"), k, device) {
			const json_t *record = json_at(records, json_str_at(resource, "name"),
						       json_str_at(device, "id"));
			json_auto_t *files = files_of(device);

			if (json_array_size(files) == 0)
				continue;
			if (record)
				check_own_pod(pools, resource, device, record, files);
			else
				check_other_pods(records, resource, device, files);
		}
}
