/* SPDX-License-Identifier: GPL-2.0 */
/* A packet's payload, a window of it at a time. */
#ifndef WEIR_BPF_WINDOW_H
#define WEIR_BPF_WINDOW_H

#include "weir/http/run.h"

#include "work.h"

/* Is the packet read to its end, where number `next` is the next byte? */
static __always_inline bool is_read_whole(const struct work *w, __u32 next)
{
	return next - w->packet.segment.seq >= w->packet.segment.len;
}

/* Has the window begin at offset `at` of the payload, which is longer. false: that cannot be had. */
static __always_inline bool window_fill(struct __sk_buff *skb, struct work *w, __u32 at)
{
	__u32 n = size_up_to(WEIR_WINDOW, w->packet.segment.len - at);

	if (bpf_skb_load_bytes(skb, w->packet.payload + at, w->window.bytes, n))
		return false;
	w->window.at = at;
	w->window.length = n;
	return true;
}

static __always_inline bool window_has(const struct work *w, __u32 at)
{
	return at - w->window.at < w->window.length;
}

/* Of n bytes the first and the last `half`, a power of 2, to where they stand in the window; n: above half, at most twice that. */
static __always_inline bool window_copy(struct work *w, const __u8 *first, const __u8 *last, const __u8 *end, __u32 n,
					__u32 half)
{
	__u8 *to = w->window.bytes, *to_last;
	__u32 behind = n - half - 1;

	WEIR_BARRIER(behind); /* else clang leaves out the bound, which verifiers want */
	to_last = to + (behind & (half - 1)) + 1;
	if (first + half > end || last + half > end)
		return false;
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < half; i += 8)
		*(__u64 *)(to + i) = *(const __u64 *)(first + i);
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < half; i += 8)
		*(__u64 *)(to_last + i) = *(const __u64 *)(last + i);
	return true;
}

/* Copies n bytes that stand at data + from, 9 at least, if they are there. */
static __always_inline bool window_copy_any(struct work *w, const __u8 *data, const __u8 *end, __u32 from, __u32 n)
{
#define COPY(half) window_copy(w, data + from, data + ((from + n - (half)) & (2 * HEADERS_MAX - 1)), end, n, half)
	if (n > 128)
		return COPY(128);
	if (n > 64)
		return COPY(64);
	if (n > 32)
		return COPY(32);
	return n > 16 ? COPY(16) : COPY(8);
#undef COPY
}

/*
 * Has the window begin at offset `at` of the payload, if what it has room for stands in memory of one piece behind the headers: no call is
 * needed then, and no loop. Else nothing changes.
 */
static __always_inline void window_open(struct __sk_buff *skb, struct work *w, __u32 at)
{
	const __u8 *data = (const __u8 *)(long)skb->data, *end = (const __u8 *)(long)skb->data_end;
	__u32 from = w->packet.payload + at, n;

	if (window_has(w, at) || at > HEADERS_MAX || at + 8 >= w->packet.segment.len || from > HEADERS_MAX)
		return;
	n = size_up_to(WEIR_WINDOW, w->packet.segment.len - at);
	if (!window_copy_any(w, data, end, from, n))
		return;
	w->window.at = at;
	w->window.length = n;
}

__noinline int window_load(struct __sk_buff *skb, struct work *w, __u32 at)
{
	return w && window_fill(skb, w, at);
}

/* Nothing of a packet has been read to it yet. */
static __always_inline void window_none(struct work *w)
{
	w->window.at = 0;
	w->window.length = 0;
}

/* All of it, whatever was read to it. */
static __always_inline void window_clear(struct work *w)
{
	__builtin_memset(w->window.bytes, 0, WEIR_WINDOW);
	w->window.length = 0;
}

#define WIPED_PART 64 /* what is wiped at once */

/* What was read is nobody's business afterwards: it may be a token. Of `room` bytes, which the compiler knows, the first `used` are in use. */
static __always_inline void wipe(__u8 *bytes, __u32 room, __u32 used)
{
#pragma clang loop unroll(full)
	for (__u32 at = 0; at < room; at += WIPED_PART)
		if (used > at)
			__builtin_memset(__builtin_assume_aligned(bytes + at, 8), 0, WIPED_PART);
}

/* Of a window at the payload's begin all that was read is before its length: it is the only one, or full. */
static __always_inline void window_wipe(struct work *w)
{
	wipe(w->window.bytes, WEIR_WINDOW, w->window.at ? WEIR_WINDOW : w->window.length);
	w->window.length = 0;
}

/* window_fill(), or what stands in its place for requests (payload.h). */
typedef bool window_filler(struct __sk_buff *skb, struct work *w, __u32 at);

/* Has the window begin at `at`, which is in it already, unless it has the payload's end. false: it begins there already, and no more fits. */
static __always_inline bool window_renew(struct __sk_buff *skb, struct work *w, __u32 at, window_filler *fill)
{
	if (w->window.at + w->window.length == w->packet.segment.len)
		return true;
	return at != w->window.at && fill(skb, w, at);
}

/* For the reading on from `at`, after so many windows. false: there is nothing more that could be had at once. */
static __always_inline bool window_goes_on(struct __sk_buff *skb, struct work *w, __u32 at, int windows,
					   window_filler *fill)
{
	if (!window_has(w, at))
		return fill(skb, w, at);
	return windows ? window_renew(skb, w, at, fill) : true;
}

/* The byte at offset `at` of the payload, which the window has. */
static __always_inline __u8 window_at(const struct work *w, __u32 at)
{
	return w->window.bytes[(at - w->window.at) & (WEIR_WINDOW - 1)];
}

/* The byte at offset `at` of the payload, which is longer; negative: it cannot be had. */
static __always_inline int window_byte(struct __sk_buff *skb, struct work *w, __u32 at)
{
	return window_has(w, at) || window_load(skb, w, at) ? window_at(w, at) : -1;
}

/* The next eight bytes of payload from offset `at` on, as far as they are in the window; the first one lowest. */
static __always_inline __u64 word_ahead(const struct work *w, __u32 at)
{
	__u32 index = at - w->window.at, left = w->window.length - index;
	__u64 word;

	if (index >= w->window.length)
		return 0;
	word = weir_window_word(&w->window, index);
	return left < 8 ? weir_run_only(word, left) : word;
}

/* How many whole words of text (run.h) there are from offset `at` on, in bytes; as far as the window goes. */
static __always_inline __u32 text_ahead(const struct work *w, __u32 at)
{
	__u32 from = at - w->window.at, index = from;

#pragma clang loop unroll(disable)
	for (int n = 0; n < WEIR_RUN_WORDS; n++) {
		if (index > WEIR_WINDOW - 8 || index + 8 > w->window.length ||
		    !weir_run_is_text(*(const __u64 *)&w->window.bytes[index & (WEIR_WINDOW - 1)]))
			break;
		index += 8;
	}
	return index - from;
}

#endif
