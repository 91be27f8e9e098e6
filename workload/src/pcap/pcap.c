/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcap/pcap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/frame.h"

#define MAGIC_MICROSECONDS 0xa1b2c3d4u
#define MAGIC_NANOSECONDS 0xa1b23c4du
#define MAGIC_PCAPNG 0x0a0d0d0au
/* Kuznetzov's, whose records have a longer header. */
#define MAGIC_MODIFIED 0xa1b2cd34u
#define VERSION_MAJOR 2u
#define VERSION_MINOR 4u
#define LINK_ETHERNET 1u
/* The upper bits of the link type can state that frames end with an FCS, and its number of 16-bit words. */
#define LINK_TYPE_MASK 0x03ffffffu
#define LINK_FCS_PRESENT 0x04000000u
#define LINK_FCS_SHIFT 28
#define HEADER_BYTES 24u
#define RECORD_BYTES 16u
/* A frame of the largest packet size, with two VLAN tags. */
#define FRAME_BYTES_MAX (FRAME_PACKET_MAX - FRAME_FCS_BYTES + FRAME_TAGS_BYTES)
#define BUFFER_BYTES ((size_t)1 << 16)

struct reader {
	const uint8_t *data;
	size_t size;
	bool swapped, nanoseconds;
	uint32_t fcs_bytes;
	char *err;
	size_t err_len;
};

static bool fail(const struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool fail(const struct reader *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->err, r->err_len, format, args);
	va_end(args);
	return false;
}

static uint32_t word(const struct reader *r, size_t at)
{
	uint32_t value;

	memcpy(&value, r->data + at, sizeof(value));
	return r->swapped ? __builtin_bswap32(value) : value;
}

static uint16_t half_word(const struct reader *r, size_t at)
{
	uint16_t value;

	memcpy(&value, r->data + at, sizeof(value));
	return r->swapped ? __builtin_bswap16(value) : value;
}

/* Returns the program that compressed a file, or NULL. */
static const char *compressed_by(const struct reader *r)
{
	static const struct {
		const char *magic, *program;
	} known[] = {{"\x1f\x8b", "gzip"}, {"\x28\xb5\x2f\xfd", "zstd"},
	        {"\xfd"
	         "7zXZ",
	                "xz"},
	        {"BZh", "bzip2"}, {"\x04\x22\x4d\x18", "lz4"}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t length = strlen(known[i].magic);

		if (r->size >= length && memcmp(r->data, known[i].magic, length) == 0)
			return known[i].program;
	}
	return NULL;
}

static bool read_magic(struct reader *r)
{
	const char *program = compressed_by(r);
	uint32_t magic;

	if (program)
		return fail(r, "it is compressed: unpack it with '%s -dk'", program);
	if (r->size < HEADER_BYTES)
		return fail(
		        r, "it has %zu bytes, less than a pcap file's header of %u", r->size, HEADER_BYTES);
	magic = word(r, 0);
	r->swapped = magic == __builtin_bswap32(MAGIC_MICROSECONDS) ||
	             magic == __builtin_bswap32(MAGIC_NANOSECONDS);
	magic = word(r, 0);
	r->nanoseconds = magic == MAGIC_NANOSECONDS;
	if (magic == MAGIC_PCAPNG || magic == MAGIC_MODIFIED || magic == __builtin_bswap32(MAGIC_MODIFIED))
		return fail(r, "it is a %s file: convert it with 'editcap -F pcap'",
		        magic == MAGIC_PCAPNG ? "pcapng" : "modified pcap");
	if (magic != MAGIC_MICROSECONDS && magic != MAGIC_NANOSECONDS)
		return fail(r, "it is no pcap file: it begins with 0x%08x", magic);
	return true;
}

static bool read_header(struct reader *r)
{
	uint32_t link;

	if (!read_magic(r))
		return false;
	if (half_word(r, 4) != VERSION_MAJOR || half_word(r, 6) != VERSION_MINOR)
		return fail(r, "it is of pcap version %u.%u, and %u.%u is what can be read", half_word(r, 4),
		        half_word(r, 6), VERSION_MAJOR, VERSION_MINOR);
	link = word(r, 20);
	if ((link & LINK_TYPE_MASK) != LINK_ETHERNET)
		return fail(r, "its link type is %u, and only Ethernet (%u) can be sent",
		        link & LINK_TYPE_MASK, LINK_ETHERNET);
	if (link & LINK_FCS_PRESENT)
		r->fcs_bytes = (link >> LINK_FCS_SHIFT) * 2;
	return true;
}

/* Reads the record at `at`, which is frame `number`. *next is where the following one begins. */
static bool read_record(const struct reader *r, size_t at, size_t number, struct pcap_frame *f, size_t *next)
{
	uint32_t fraction, fraction_end = r->nanoseconds ? 1000000000u : 1000000u, kept, length;

	if (r->size - at < RECORD_BYTES)
		return fail(r, "it is cut short within the header of frame %zu", number);
	fraction = word(r, at + 4);
	kept = word(r, at + 8);
	length = word(r, at + 12);
	if (kept > r->size - at - RECORD_BYTES)
		return fail(r, "it is cut short, or damaged: frame %zu has %u bytes, and %zu are left",
		        number, kept, r->size - at - RECORD_BYTES);
	if (kept > length)
		return fail(r, "frame %zu has %u bytes in a record of a frame of %u: the file is damaged",
		        number, kept, length);
	if (kept != length)
		return fail(r, "frame %zu was captured in part, %u of %u bytes, and cannot be sent whole",
		        number, kept, length);
	if (fraction >= fraction_end)
		return fail(r, "frame %zu has %u in the place of %s, which must be less than %u", number,
		        fraction, r->nanoseconds ? "nanoseconds" : "microseconds", fraction_end);
	if (kept < FRAME_ETH_BYTES + r->fcs_bytes)
		return fail(r, "frame %zu has %u bytes, less than an Ethernet header", number, kept);
	length -= r->fcs_bytes;
	if (length > FRAME_BYTES_MAX)
		return fail(r, "frame %zu has %u bytes, more than the largest frame of %u", number, length,
		        FRAME_BYTES_MAX);
	f->time_ns = word(r, at) * UINT64_C(1000000000) + fraction * UINT64_C(1000000000) / fraction_end;
	f->bytes = r->data + at + RECORD_BYTES;
	f->length = length;
	*next = at + RECORD_BYTES + kept;
	return true;
}

bool pcap_parse(struct pcap *p, const uint8_t *data, size_t size, char *err, size_t err_len)
{
	struct reader r = {.data = data, .size = size, .err = err, .err_len = err_len};
	struct pcap_frame frame;
	size_t next = HEADER_BYTES;

	*p = (struct pcap){0};
	if (!read_header(&r))
		return false;
	for (size_t at = HEADER_BYTES; at < size; at = next)
		if (!read_record(&r, at, ++p->count, &frame, &next))
			return false;
	if (!p->count)
		return fail(&r, "it holds no frame");
	p->frames = calloc(p->count, sizeof(*p->frames));
	if (!p->frames)
		return fail(&r, "there is no memory for its %zu frames", p->count);
	next = HEADER_BYTES;
	for (size_t i = 0; i < p->count; i++)
		read_record(&r, next, i + 1, &p->frames[i], &next);
	return true;
}

/* Reads a whole file into a buffer of exactly its size (or one byte), so that sanitizers detect reads past
 * its end. */
static uint8_t *slurp(int fd, size_t *size, char *err, size_t err_len)
{
	size_t room = BUFFER_BYTES, used = 0;
	uint8_t *data = malloc(room), *grown;
	ssize_t n = 0;

	while (data && (n = read(fd, data + used, room - used)) > 0) {
		used += (size_t)n;
		if (used > PCAP_FILE_MAX) {
			snprintf(err, err_len, "it is larger than %zu MiB", PCAP_FILE_MAX >> 20);
			free(data);
			return NULL;
		}
		if (used < room)
			continue;
		room *= 2;
		grown = realloc(data, room);
		if (!grown)
			free(data);
		data = grown;
	}
	if (!data || n < 0) {
		snprintf(err, err_len, "%s", data ? strerror(errno) : "out of memory");
		free(data);
		return NULL;
	}
	*size = used;
	grown = realloc(data, used ? used : 1);
	return grown ? grown : data;
}

bool pcap_read(struct pcap *p, const char *path, char *err, size_t err_len)
{
	char why[160];
	uint8_t *data = NULL;
	size_t size = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*p = (struct pcap){0};
	if (fd < 0) {
		snprintf(err, err_len, "%.80s: %s", path, strerror(errno));
		return false;
	}
	data = slurp(fd, &size, why, sizeof(why));
	close(fd);
	if (data && pcap_parse(p, data, size, why, sizeof(why))) {
		p->data = data;
		return true;
	}
	snprintf(err, err_len, "%.80s: %s", path, why);
	free(data);
	return false;
}

void pcap_free(struct pcap *p)
{
	free(p->frames);
	free(p->data);
	*p = (struct pcap){0};
}

/* Writes what is buffered. A partial write is undone, because readers expect whole records. */
bool pcap_writer_flush(struct pcap_writer *w)
{
	size_t done = 0;

	while (done < w->used) {
		ssize_t n = write(w->fd, w->buffer + done, w->used - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int error = errno;

			w->used = 0;
			if (ftruncate(w->fd, (off_t)w->written) == 0)
				lseek(w->fd, (off_t)w->written, SEEK_SET);
			errno = error;
			return false;
		}
		done += (size_t)n;
	}
	w->written += w->used;
	w->used = 0;
	return true;
}

bool pcap_writer_open(struct pcap_writer *w, const char *path, uint32_t snap_bytes, char *err, size_t err_len)
{
	const uint32_t header[] = {
	        MAGIC_NANOSECONDS, VERSION_MINOR << 16 | VERSION_MAJOR, 0, 0, snap_bytes, LINK_ETHERNET};

	_Static_assert(sizeof(header) == HEADER_BYTES, "a pcap file's header");
	*w = (struct pcap_writer){
	        .fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), .path = path};
	if (w->fd < 0) {
		snprintf(err, err_len, "%.80s: %s", path, strerror(errno));
		return false;
	}
	/* Room for a batch and the record that completes it. */
	w->buffer = malloc(BUFFER_BYTES + RECORD_BYTES + snap_bytes);
	if (w->buffer) {
		memcpy(w->buffer, header, sizeof(header));
		w->used = sizeof(header);
		if (pcap_writer_flush(w))
			return true;
	}
	snprintf(err, err_len, "%.80s: %s", path, w->buffer ? strerror(errno) : "out of memory");
	close(w->fd);
	free(w->buffer);
	w->buffer = NULL;
	return false;
}

bool pcap_writer_add(
        struct pcap_writer *w, uint64_t time_ns, const uint8_t *bytes, uint32_t kept, uint32_t length)
{
	const uint32_t record[] = {
	        (uint32_t)(time_ns / 1000000000u), (uint32_t)(time_ns % 1000000000u), kept, length};

	memcpy(w->buffer + w->used, record, sizeof(record));
	memcpy(w->buffer + w->used + sizeof(record), bytes, kept);
	w->used += sizeof(record) + kept;
	return w->used < BUFFER_BYTES || pcap_writer_flush(w);
}

bool pcap_writer_close(struct pcap_writer *w)
{
	bool whole = pcap_writer_flush(w);

	free(w->buffer);
	w->buffer = NULL;
	return close(w->fd) == 0 && whole;
}
