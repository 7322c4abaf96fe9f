/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What was read of a client's stream and the server has not acknowledged yet. A segment may be lost between here and
 * the server's socket, or be dropped there for a reason that cannot be seen here. Then the same place of the stream comes
 * again, and need not say the same.
 *
 * A read is a piece of the stream from the first byte that the machine was fed to the last, or to a body at its end that
 * was passed over. A segment that goes on where a read ended makes it longer, unless it begins with a request. All numbers
 * are the client's.
 */
#ifndef WEIR_TCP_UNCONFIRMED_H
#define WEIR_TCP_UNCONFIRMED_H

#include "weir/base/seq.h"

#define WEIR_READS 8
#define WEIR_UNDER_WAY_NS (WEIR_NS_PER_S / 10) /* after that no segment is still on its way to the socket */

struct weir_read {
	__u32 start, end;
	__u32 requests; /* of the connection before it */
};

struct weir_unconfirmed {
	__u64 read_ns; /* when something was read last */
	__u64 passed_ns; /* when something passed last that was not read, or was before; what came before read_ns is not noted */
	__u32 end; /* of the latest read */
	__u8 n;
	__u8 boundaries; /* bit i: read i began with a request */
	__u8 pad[2];
	struct weir_read read[WEIR_READS];
};

/* The mask is for the verifier. The barrier keeps the compiler, which may know that it is not needed, from leaving it out. */
WEIR_INLINE struct weir_read *weir_unconfirmed_read(struct weir_unconfirmed *u, __u32 i)
{
	__asm__ volatile("" : "+r"(i));
	return &u->read[i & (WEIR_READS - 1)];
}

/* The server has everything before `acked`. That nothing is noted is asked for the verifier, which then follows 9,000 instructions less. */
WEIR_INLINE void weir_unconfirmed_settle(struct weir_unconfirmed *u, __u32 acked)
{
	if (u->n && !seq_after(u->end, acked))
		u->n = 0;
}

/*
 * A segment passes that is not read, or was read before. The time is noted only while some read is not confirmed: whoever asks for it
 * waits until the latest read is old enough, and what passed before that read is older still.
 */
WEIR_INLINE void weir_unconfirmed_pass(struct weir_unconfirmed *u, __u64 now_ns)
{
	if (u->n)
		u->passed_ns = now_ns;
}

/* Does a segment continue what was read last? */
WEIR_INLINE bool weir_unconfirmed_continues(const struct weir_unconfirmed *u, __u32 seq)
{
	return u->n && !seq_after(seq, u->end);
}

/* Can a read be kept that does not continue the latest one? */
WEIR_INLINE bool weir_unconfirmed_full(struct weir_unconfirmed *u, __u32 acked)
{
	if (u->n < WEIR_READS)
		return false;
	if (seq_after(u->read[0].end, acked))
		return true;
	for (int i = 1; i < WEIR_READS; i++)
		u->read[i - 1] = u->read[i];
	u->boundaries >>= 1;
	u->n--;
	return false;
}

/* Notes that [start, end) was read, of a segment that began at seq. Where there is no room the latest read grows. */
WEIR_INLINE void weir_unconfirmed_note(struct weir_unconfirmed *u, __u32 seq, const struct weir_read *read,
				       bool boundary, __u64 now_ns)
{
	bool grows = u->n >= WEIR_READS || (!boundary && weir_unconfirmed_continues(u, seq));
	__u32 at = grows ? u->n - 1 : u->n++;

	u->read_ns = now_ns;
	u->end = read->end;
	if (grows) {
		weir_unconfirmed_read(u, at)->end = read->end;
		return;
	}
	*weir_unconfirmed_read(u, at) = *read;
	u->boundaries = (u->boundaries & ~(1U << at)) | boundary << at;
}

/* Forgets what was read from `at` on. */
WEIR_INLINE void weir_unconfirmed_trim(struct weir_unconfirmed *u, __u32 at)
{
	for (int i = 0; i < WEIR_READS; i++) {
		if (i < u->n && !seq_before(u->read[i].start, at))
			u->n = i;
	}
	if (!u->n || !seq_after(u->end, at))
		return;
	u->end = seq_before(weir_unconfirmed_read(u, u->n - 1)->end, at) ? weir_unconfirmed_read(u, u->n - 1)->end : at;
	weir_unconfirmed_read(u, u->n - 1)->end = u->end;
}

/* The first read of which something lies in [from, end); WEIR_READS: none was read. */
WEIR_INLINE __u32 weir_unconfirmed_find(const struct weir_unconfirmed *u, __u32 from, __u32 end)
{
	if (!u->n || !seq_before(from, u->end) || !seq_before(from, end))
		return WEIR_READS;
	for (int i = 0; i < WEIR_READS; i++) {
		if (i < u->n && seq_before(from, u->read[i].end))
			return seq_after(end, u->read[i].start) ? i : WEIR_READS;
	}
	return WEIR_READS;
}

#endif
