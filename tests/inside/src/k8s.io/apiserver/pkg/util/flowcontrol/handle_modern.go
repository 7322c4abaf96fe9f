// SPDX-License-Identifier: GPL-2.0

//go:build modern

package flowcontrol

import "context"

type Interface interface {
	Handle(ctx context.Context, digest RequestDigest, note func(level string), width func() int, queued func(inQueue bool),
		execute func())
}

// Handle has one argument more than there are registers.
//
//go:noinline
func (c *configController) Handle(ctx context.Context, digest RequestDigest, note func(level string), width func() int,
	queued func(inQueue bool), execute func()) {
	note(c.level)
	queued(width() > 1)
	if !rejects(digest) {
		execute()
	}
}

// Ask has Handle decide.
func Ask(c Interface, ctx context.Context, digest RequestDigest, note func(level string), queued func(inQueue bool), execute func()) {
	c.Handle(ctx, digest, note, func() int { return 1 }, queued, execute)
}

type droppedRequestsTracker struct{ levels map[string]bool }

var tracker = &droppedRequestsTracker{map[string]bool{"all": true}}

// RecordDroppedRequest panics, as that of Kubernetes 1.28 does, where Handle has noted no level.
//
//go:noinline
func (t *droppedRequestsTracker) RecordDroppedRequest(level string) {
	if !t.levels[level] {
		panic("no level " + level)
	}
}

// Dropped is told of what was rejected.
func Dropped(level string) { tracker.RecordDroppedRequest(level) }
