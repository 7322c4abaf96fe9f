// SPDX-License-Identifier: GPL-2.0

// What client-go's rate limiters say to a trace (backoff_trace.c makes them): standard input to standard output.
//
//	policy BASE MAX FAST SLOW ATTEMPTS QPS BURST MAX-WAIT    a new trace; "-": without that part (durations in ns)
//	when NS ITEM      prints the delay in ns, or "never"
//	forget ITEM
//	requeues ITEM     prints NumRequeues
package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
)

var now time.Time

// BucketRateLimiter, but for where the time comes from: its When is Reserve().Delay(), by the system's clock.
type bucket struct {
	workqueue.BucketRateLimiter
}

func (b *bucket) When(item interface{}) time.Duration {
	return b.Limiter.ReserveN(now, 1).DelayFrom(now)
}

// WithMaxWaitRateLimiter, which Debian 12's client-go does not have yet.
type maxWait struct {
	workqueue.RateLimiter
	longest time.Duration
}

func (w *maxWait) When(item interface{}) time.Duration {
	delay := w.RateLimiter.When(item)
	if delay > w.longest {
		return w.longest
	}
	return delay
}

func duration(text string) time.Duration {
	return time.Duration(integer(text))
}

func policy(words []string) workqueue.RateLimiter {
	limiter := workqueue.NewMaxOfRateLimiter()
	add := func(part workqueue.RateLimiter) {
		limiter = workqueue.NewMaxOfRateLimiter(limiter, part)
	}
	if words[0] != "-" {
		add(workqueue.NewItemExponentialFailureRateLimiter(duration(words[0]), duration(words[1])))
	}
	if words[2] != "-" {
		add(workqueue.NewItemFastSlowRateLimiter(duration(words[2]), duration(words[3]), int(integer(words[4]))))
	}
	if words[5] != "-" {
		tokens := rate.NewLimiter(rate.Limit(number(words[5])), int(integer(words[6])))
		add(&bucket{workqueue.BucketRateLimiter{Limiter: tokens}})
	}
	if words[7] != "-" {
		limiter = &maxWait{limiter, duration(words[7])}
	}
	return limiter
}

func main() {
	var limiter workqueue.RateLimiter
	answer(func(words []string, output io.Writer) bool {
		switch {
		case len(words) == 9 && words[0] == "policy":
			limiter = policy(words[1:])
		case len(words) == 3 && words[0] == "when":
			now = time.Unix(0, integer(words[1]))
			if delay := limiter.When(words[2]); delay == math.MaxInt64 {
				fmt.Fprintln(output, "never")
			} else {
				fmt.Fprintln(output, int64(delay))
			}
		case len(words) == 2 && words[0] == "forget":
			limiter.Forget(words[1])
		case len(words) == 2 && words[0] == "requeues":
			fmt.Fprintln(output, limiter.NumRequeues(words[1]))
		default:
			return false
		}
		return true
	})
}
