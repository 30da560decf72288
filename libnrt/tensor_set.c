// SPDX-License-Identifier: MIT
/* Tensor sets: maps of names to tensors. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct set_entry {
	char *name;
	struct nrt_tensor *tensor;
};

struct tensor_set {
	uint32_t magic;
	pthread_mutex_t lock;
	void *tree;	/* of struct set_entry, by name */
};

bool set_valid(const nrt_tensor_set_t *set)
{
	return set && ((const struct tensor_set *)set)->magic == SET_MAGIC;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct set_entry *)a)->name, ((const struct set_entry *)b)->name);
}

static struct set_entry *find(struct tensor_set *set, const char *name)
{
	struct set_entry key = { .name = (char *)name };
	struct set_entry **node = tfind(&key, &set->tree, compare);

	return node ? *node : NULL;
}

static void entry_free(void *node)
{
	struct set_entry *entry = node;

	tensor_unref(entry->tensor);
	free(entry->name);
	free(entry);
}

NRT_STATUS nrt_allocate_tensor_set(nrt_tensor_set_t **result)
{
	struct tensor_set *set;
	NRT_STATUS status;

	if (!result)
		return NRT_INVALID;
	*result = NULL;
	status = api_enter();
	if (status)
		return status;
	set = calloc(1, sizeof(*set));
	if (set) {
		set->magic = SET_MAGIC;
		pthread_mutex_init(&set->lock, NULL);
	}
	*result = set;
	api_leave();
	return set ? NRT_SUCCESS : NRT_RESOURCE;
}

void nrt_destroy_tensor_set(nrt_tensor_set_t **tensor_set)
{
	struct tensor_set *set;

	if (!tensor_set || !set_valid(*tensor_set))
		return;
	set = *tensor_set;
	pthread_rwlock_rdlock(&nrt_state.lock);
	set->magic = 0;
	tdestroy(set->tree, entry_free);
	pthread_mutex_destroy(&set->lock);
	free(set);
	pthread_rwlock_unlock(&nrt_state.lock);
	*tensor_set = NULL;
}

static struct set_entry *entry_new(const char *name)
{
	struct set_entry *entry = calloc(1, sizeof(*entry));

	if (entry)
		entry->name = strdup(name);
	if (entry && !entry->name) {
		free(entry);
		entry = NULL;
	}
	return entry;
}

static NRT_STATUS add(struct tensor_set *set, const char *name, struct nrt_tensor *tensor)
{
	struct set_entry *entry = find(set, name);

	if (entry) {
		struct nrt_tensor *old = entry->tensor;

		entry->tensor = tensor_ref(tensor);
		tensor_unref(old);
		return NRT_SUCCESS;
	}
	entry = entry_new(name);
	if (!entry || !tsearch(entry, &set->tree, compare)) {
		if (entry)
			free(entry->name);
		free(entry);
		return NRT_RESOURCE;
	}
	entry->tensor = tensor_ref(tensor);
	return NRT_SUCCESS;
}

NRT_STATUS nrt_add_tensor_to_tensor_set(nrt_tensor_set_t *tensor_set, const char *tensor_name,
					nrt_tensor_t *tensor)
{
	struct tensor_set *set = tensor_set;
	NRT_STATUS status;

	if (!set_valid(set) || !tensor_valid(tensor))
		return NRT_INVALID_HANDLE;
	if (!tensor_name || !*tensor_name || strlen(tensor_name) >= NRT_TENSOR_NAME_MAX) {
		log_err("NRT", "tensor name must have 1 to %d bytes", NRT_TENSOR_NAME_MAX - 1);
		return NRT_INVALID;
	}
	status = api_enter();
	if (status)
		return status;
	pthread_mutex_lock(&set->lock);
	status = add(set, tensor_name, tensor);
	pthread_mutex_unlock(&set->lock);
	api_leave();
	return status;
}

NRT_STATUS nrt_get_tensor_from_tensor_set(nrt_tensor_set_t *tensor_set, const char *tensor_name,
					  nrt_tensor_t **tensor)
{
	struct tensor_set *set = tensor_set;
	struct set_entry *entry;
	NRT_STATUS status;

	if (!tensor || !tensor_name)
		return NRT_INVALID;
	*tensor = NULL;
	if (!set_valid(set))
		return NRT_INVALID_HANDLE;
	status = api_enter();
	if (status)
		return status;
	pthread_mutex_lock(&set->lock);
	entry = find(set, tensor_name);
	if (entry)
		*tensor = entry->tensor;
	pthread_mutex_unlock(&set->lock);
	api_leave();
	return entry ? NRT_SUCCESS : NRT_FAILURE;
}

struct nrt_tensor *set_lookup(const nrt_tensor_set_t *tensor_set, const char *name)
{
	struct tensor_set *set = (struct tensor_set *)tensor_set;
	struct set_entry *entry;
	struct nrt_tensor *tensor = NULL;

	pthread_mutex_lock(&set->lock);
	entry = find(set, name);
	if (entry)
		tensor = tensor_ref(entry->tensor);
	pthread_mutex_unlock(&set->lock);
	return tensor;
}
