// SPDX-License-Identifier: GPL-2.0

// What golang.org/x/time/rate decides about a trace (bucket_trace.c makes them): standard input to standard output.
//
//	rate QPS BURST     a new trace: a bucket that no one has asked yet
//	set NS QPS BURST   SetLimitAt, SetBurstAt
//	take NS            AllowN(NS, 1): prints "pass", or how long ReserveN would wait in ns, or "never"
package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"golang.org/x/time/rate"
)

type bucket struct {
	qps     float64
	burst   int
	limiter *rate.Limiter // nil until a token was taken
	latest  time.Time     // of a token taken or a rate set
}

func instant(text string) time.Time {
	return time.Unix(0, integer(text))
}

// A limiter that was never asked is not yet full when it is very slow (older versions of the package count from the
// year 1), so it is filled at a rate of one token a ns. Limit 0 loses the tokens in those versions when it is set and
// not there from the beginning; below 0 it means the same in all of them: nothing comes back.
func (b *bucket) fill(at time.Time) *rate.Limiter {
	if b.qps == 0 && b.latest.IsZero() {
		return rate.NewLimiter(0, b.burst)
	}
	limiter := rate.NewLimiter(1e9, b.burst)
	limiter.SetLimitAt(at, b.limit())
	return limiter
}

func (b *bucket) limit() rate.Limit {
	if b.qps == 0 {
		return -1
	}
	return rate.Limit(b.qps)
}

func (b *bucket) set(at time.Time, qps float64, burst int) {
	b.qps, b.burst, b.latest = qps, burst, at
	if b.limiter != nil {
		b.limiter.SetLimitAt(at, b.limit())
		b.limiter.SetBurstAt(at, burst)
	}
}

// An earlier time counts as no time: the one difference that bucket.h has on purpose.
func (b *bucket) take(asked time.Time) string {
	at := asked
	if at.Before(b.latest) {
		at = b.latest
	}
	limiter := b.limiter
	if limiter == nil {
		limiter = b.fill(at)
	}
	if limiter.AllowN(at, 1) {
		b.limiter, b.latest = limiter, at
		return "pass"
	}
	probe := *limiter // a reservation changes a limiter: of a copy, that no one else knows
	wait := probe.ReserveN(at, 1).DelayFrom(at)
	if wait == math.MaxInt64 {
		return "never"
	}
	return strconv.FormatInt(int64(wait+at.Sub(asked)), 10)
}

func main() {
	var b bucket
	answer(func(words []string, output io.Writer) bool {
		switch {
		case len(words) == 3 && words[0] == "rate":
			b = bucket{qps: number(words[1]), burst: int(number(words[2]))}
		case len(words) == 4 && words[0] == "set":
			b.set(instant(words[1]), number(words[2]), int(number(words[3])))
		case len(words) == 2 && words[0] == "take":
			fmt.Fprintln(output, b.take(instant(words[1])))
		default:
			return false
		}
		return true
	})
}
