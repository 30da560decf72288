// SPDX-License-Identifier: MIT
/*
 * Links to other chips of this process. The windows in the device address space are
 * public (V3_PCIE_B0_n_BASE in v3/address_map.h of AWS's public driver), and so are
 * the neighbours inside a server (fw_io_topology_v2() and _v3(), in the order of its
 * tables); which window leads to which neighbour is our definition.
 *
 * One lock for all links: connecting changes both ends.
 */
#include <errno.h>
#include <string.h>

#include "chip.h"

#define NS_TO_TICKS(ns)	((ns) * 168 / 5)	/* 33.6 ticks are a nanosecond */
#define TICKS_TO_NS(t)	((t) / 168 * 5 + (t) % 168 * 5 / 168)

static pthread_mutex_t links_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t links_cond = PTHREAD_COND_INITIALIZER;

/* --- who is next to whom --------------------------------------------------------------- */

/* Up, left, down, right in a square of four by four, in the order of the driver's table. */
static int torus(unsigned int place, unsigned int link)
{
	static const struct {
		unsigned int row, column;
	} step[] = { { 3, 0 }, { 0, 3 }, { 1, 0 }, { 0, 1 } };
	unsigned int row = (place / 4 + step[link].row) % 4;
	unsigned int column = (place % 4 + step[link].column) % 4;

	return (int)(4 * row + column);
}

static int ring(unsigned int place, unsigned int size, unsigned int link)
{
	if (link > 1)
		return -1;
	return (int)((place + (link ? 1 : size - 1)) % size);
}

/* Every chip of a small group; window n leads to its member n. */
static int all_to_all(unsigned int place, unsigned int size, unsigned int link)
{
	return link < size && link != place ? (int)link : -1;
}

int chip_link_neighbour(const struct chip_profile *p, unsigned int routing_id, unsigned int link)
{
	const struct chip_fabric *f = &p->fabric;
	unsigned int group = f->size ? routing_id / f->size : 0, place;
	int next = -1;

	if (!f->size || link >= CHIP_MAX_LINKS)
		return -1;
	/* The tables of the driver are in the order of its device numbers. */
	place = f->user[routing_id % f->size];
	switch (f->shape) {
	case CHIP_FABRIC_TORUS:
		next = torus(place, link);
		break;
	case CHIP_FABRIC_RING:
		next = ring(place, f->size, link);
		break;
	case CHIP_FABRIC_ALL:
		next = all_to_all(place, f->size, link);
		break;
	}
	if (next < 0)
		return -1;
	for (place = 0; f->user[place] != next; place++)
		;
	return (int)(group * f->size + place);
}

static int link_to(const struct neuron_chip *chip, uint64_t routing_id, unsigned int from)
{
	unsigned int i;

	for (i = from; i < CHIP_MAX_LINKS; i++) {
		if (chip_link_neighbour(&chip->profile, (unsigned int)chip->routing_id, i) == (int)routing_id)
			return (int)i;
	}
	return -1;
}

int neuron_chip_neighbour(const char *arch, unsigned int routing_id, unsigned int link)
{
	struct chip_profile p;

	if (!chip_profile_get(arch, 0, &p) || routing_id >= NEURON_CHIP_MAX_ROUTING_ID)
		return -EINVAL;
	if (link >= CHIP_MAX_LINKS)
		return -EINVAL;
	return chip_link_neighbour(&p, routing_id, link);
}

/* --- connecting -------------------------------------------------------------------------- */

int neuron_chip_connect(struct neuron_chip *a, struct neuron_chip *b)
{
	int la = -1, lb = -1, made = 0;

	if (a == b || a->profile.fabric.size != b->profile.fabric.size ||
	    a->profile.device_id != b->profile.device_id)
		return -EINVAL;
	pthread_mutex_lock(&links_lock);
	for (;;) {
		la = link_to(a, b->routing_id, (unsigned int)(la + 1));
		lb = link_to(b, a->routing_id, (unsigned int)(lb + 1));
		if (la < 0 || lb < 0)
			break;
		if (a->link[la].peer || b->link[lb].peer) {
			made = made ? made : -EEXIST;
			break;
		}
		a->link[la] = (struct chip_link){ .peer = b, .peer_link = (unsigned int)lb };
		b->link[lb] = (struct chip_link){ .peer = a, .peer_link = (unsigned int)la };
		made++;
	}
	pthread_mutex_unlock(&links_lock);
	return made ? made : -ENOTCONN;
}

void neuron_chip_disconnect(struct neuron_chip *chip)
{
	struct chip_link *l;
	unsigned int i;

	pthread_mutex_lock(&links_lock);
	for (i = 0; i < CHIP_MAX_LINKS; i++) {
		l = &chip->link[i];
		if (l->peer)
			l->peer->link[l->peer_link].peer = NULL;
		l->peer = NULL;
	}
	while (chip->link_users) {
		/* Who uses it may need a lock of the host that this thread holds. */
		pthread_mutex_unlock(&links_lock);
		chip_wait_begin(chip);
		pthread_mutex_lock(&links_lock);
		while (chip->link_users)
			pthread_cond_wait(&links_cond, &links_lock);
		pthread_mutex_unlock(&links_lock);
		chip_wait_end(chip);
		pthread_mutex_lock(&links_lock);
	}
	pthread_mutex_unlock(&links_lock);
}

/* --- using -------------------------------------------------------------------------------- */

uint64_t chip_link_ticks(const struct chip_profile *p, uint64_t bytes)
{
	return NS_TO_TICKS((uint64_t)p->fabric.latency_ns) + bytes * 168 / (5ull * p->fabric.rate);
}

struct neuron_chip *chip_link_get(struct neuron_chip *chip, unsigned int link)
{
	struct chip_link *l = &chip->link[link];
	struct neuron_chip *peer = NULL;

	pthread_mutex_lock(&links_lock);
	if (l->peer && neuron_chip_online(l->peer) && chip_link_up(chip, link) &&
	    chip_link_up(l->peer, l->peer_link)) {
		peer = l->peer;
		peer->link_users++;
	}
	pthread_mutex_unlock(&links_lock);
	return peer;
}

void chip_link_put(struct neuron_chip *chip, unsigned int link, struct neuron_chip *peer, uint64_t bytes)
{
	struct chip_link *l = &chip->link[link];

	pthread_mutex_lock(&links_lock);
	if (bytes) {
		l->bytes += bytes;
		l->transfers++;
		l->ticks += chip_link_ticks(&chip->profile, bytes);
	}
	if (!--peer->link_users)
		pthread_cond_broadcast(&links_cond);
	pthread_mutex_unlock(&links_lock);
}

int neuron_chip_link_info(struct neuron_chip *chip, unsigned int link, struct neuron_chip_link *info)
{
	struct chip_link *l;

	if (link >= CHIP_MAX_LINKS)
		return -EINVAL;
	l = &chip->link[link];
	pthread_mutex_lock(&links_lock);
	*info = (struct neuron_chip_link){
		.neighbour = chip_link_neighbour(&chip->profile, (unsigned int)chip->routing_id, link),
		.connected = l->peer,
		.bytes = l->bytes,
		.transfers = l->transfers,
		.modelled_ns = TICKS_TO_NS(l->ticks),
	};
	pthread_mutex_unlock(&links_lock);
	return 0;
}
