/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/channel.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define MAGIC 0x69636231u

struct header {
	uint32_t magic, id, kind, length;
};

static bool write_all(int fd, const uint8_t *bytes, size_t length)
{
	while (length) {
		ssize_t n = write(fd, bytes, length);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd room = {.fd = fd, .events = POLLOUT};

			if (poll(&room, 1, -1) > 0 && room.revents & (POLLHUP | POLLERR))
				return false;
		} else if (n < 0 && errno != EINTR) {
			return false;
		} else if (n > 0) {
			bytes += n;
			length -= (size_t)n;
		}
	}
	return true;
}

bool channel_send(struct channel *c, enum channel_kind kind, const void *bytes, size_t length)
{
	uint8_t all[sizeof(struct header) + CHANNEL_MAX];
	struct header head = {MAGIC, c->id, kind, (uint32_t)length};

	memcpy(all, &head, sizeof(head));
	if (length)
		memcpy(all + sizeof(head), bytes, length);
	return write_all(c->fd, all, sizeof(head) + length);
}

bool channel_fill(struct channel *c)
{
	ssize_t n = read(c->fd, c->in + c->used, sizeof(c->in) - c->used);

	if (n > 0)
		c->used += (size_t)n;
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void skip(struct channel *c, size_t bytes)
{
	c->used -= bytes;
	memmove(c->in, c->in + bytes, c->used);
}

bool channel_next(struct channel *c, struct message *m)
{
	struct header head;

	while (c->used >= sizeof(head)) {
		memcpy(&head, c->in, sizeof(head));
		if (head.magic != MAGIC || head.kind > CHANNEL_EXIT || head.length > CHANNEL_MAX) {
			skip(c, 1);
			continue;
		}
		if (c->used < sizeof(head) + head.length)
			return false;
		*m = (struct message){
		        (enum channel_kind)head.kind, head.id, head.length, c->in + sizeof(head)};
		return true;
	}
	return false;
}

void channel_drop(struct channel *c, const struct message *m)
{
	skip(c, sizeof(struct header) + m->length);
}
