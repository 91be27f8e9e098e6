/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that cannot be read or written, and what a killed writer leaves; the rest is in test_pcap.py. */
#include "pcap/pcap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "pcap/replay.h"

static char path[] = "/tmp/icbench-pcap-XXXXXX";
static char err[256];
static const uint8_t FRAME[1500] = {1, 2, 3};

static void unreadable(void)
{
	struct pcap p;

	CHECK(!pcap_read(&p, "/nowhere/x.pcap", err, sizeof(err)));
	CHECK_CONTAINS(err, "/nowhere/x.pcap: No such file");
	CHECK(!pcap_read(&p, "/tmp", err, sizeof(err)));
	CHECK_CONTAINS(err, "/tmp: Is a directory");
	pcap_free(&p);
	pcap_free(&p);
}

static void unwritable(void)
{
	struct pcap_writer w;

	CHECK(!pcap_writer_open(&w, "/nowhere/x.pcap", 1500, err, sizeof(err)));
	CHECK_CONTAINS(err, "/nowhere/x.pcap: No such file");
	CHECK(!pcap_writer_open(&w, "/dev/full", 1500, err, sizeof(err)));
	CHECK_CONTAINS(err, "/dev/full: No space left");
}

static off_t size_of_file(void)
{
	struct stat st;

	CHECK(stat(path, &st) == 0);
	return st.st_size;
}

/* A full file ends with a whole record. */
static void full(void)
{
	struct rlimit old, low;
	struct pcap_writer w;
	struct pcap p;
	size_t added = 0;

	signal(SIGXFSZ, SIG_IGN);
	CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
	low = (struct rlimit){100000, old.rlim_max};
	CHECK(pcap_writer_open(&w, path, sizeof(FRAME), err, sizeof(err)));
	CHECK(setrlimit(RLIMIT_FSIZE, &low) == 0);
	while (pcap_writer_add(&w, added, FRAME, sizeof(FRAME), sizeof(FRAME)))
		CHECK(++added < 1000);
	CHECK_EQUAL(errno, EFBIG);
	CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
	CHECK_EQUAL(w.written, size_of_file());
	CHECK(pcap_writer_close(&w));
	CHECK(pcap_read(&p, path, err, sizeof(err)));
	CHECK(p.count > 30 && p.count <= added);
	pcap_free(&p);
}

/* A writer killed at any moment after a flush leaves every frame added before. */
static void killed(void)
{
	int ready[2], status;
	struct pcap p;
	pid_t pid;
	char c;

	CHECK(pipe(ready) == 0);
	pid = fork();
	if (pid == 0) {
		struct pcap_writer w;

		CHECK(pcap_writer_open(&w, path, sizeof(FRAME), err, sizeof(err)));
		for (unsigned i = 0; i < 200; i++)
			CHECK(pcap_writer_add(&w, i, FRAME, 60 + i, 60 + i));
		CHECK(pcap_writer_flush(&w));
		for (unsigned i = 0; i < 5; i++) /* these are lost */
			CHECK(pcap_writer_add(&w, i, FRAME, 60, 60));
		CHECK(write(ready[1], "x", 1) == 1);
		pause();
	}
	CHECK(read(ready[0], &c, 1) == 1);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(pcap_read(&p, path, err, sizeof(err)));
	CHECK_EQUAL(p.count, 200);
	CHECK_EQUAL(p.frames[199].length, 259);
	CHECK_EQUAL(p.frames[199].time_ns, 199);
	pcap_free(&p);
	close(ready[0]);
	close(ready[1]);
}

/* A VLAN tag does not count against a port's largest frame, a second one does. */
static void sizes(void)
{
	uint8_t plain[60] = {0}, tagged[64] = {0}, twice[66] = {0};
	struct pcap_frame frames[] = {{0, plain, sizeof(plain)}, {0, tagged, sizeof(tagged)}};
	struct pcap p = {.frames = frames, .count = 2};

	tagged[12] = twice[12] = 0x81;
	twice[16] = 0x81;
	CHECK_EQUAL(replay_packet_size(&frames[0]), 64);
	CHECK_EQUAL(replay_packet_size(&frames[1]), 64);
	CHECK(replay_largest(&p) == &frames[0]);
	frames[1] = (struct pcap_frame){0, twice, sizeof(twice)};
	CHECK_EQUAL(replay_packet_size(&frames[1]), 66);
	CHECK(replay_largest(&p) == &frames[1]);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	unreadable();
	unwritable();
	full();
	killed();
	sizes();
	unlink(path);
	return 0;
}
