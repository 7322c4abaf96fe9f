// SPDX-License-Identifier: GPL-2.0

//go:build !modern

package flowcontrol

import "context"

type Interface interface {
	Handle(ctx context.Context, digest RequestDigest, note func(level string), queued func(inQueue bool), execute func())
}

// Handle has all of its arguments in registers.
//
//go:noinline
func (c *configController) Handle(ctx context.Context, digest RequestDigest, note func(level string),
	queued func(inQueue bool), execute func()) {
	note(c.level)
	queued(false)
	if !rejects(digest) {
		execute()
	}
}

// Ask has Handle decide.
func Ask(c Interface, ctx context.Context, digest RequestDigest, note func(level string), queued func(inQueue bool), execute func()) {
	c.Handle(ctx, digest, note, queued, execute)
}

// Dropped is told of what was rejected.
func Dropped(level string) {}
