// SPDX-License-Identifier: GPL-2.0

// Package flowcontrol is called as Kubernetes' package of this name is.
package flowcontrol

import (
	"context"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

type RequestDigest struct {
	RequestInfo *request.RequestInfo
	User        user.Info
}

type Interface interface {
	Handle(ctx context.Context, digest RequestDigest, note func(level string), queued func(inQueue bool), execute func())
}

type configController struct{ level string }

func New() Interface { return &configController{level: "all"} }

// Handle rejects what is to be rejected by its name.
//
//go:noinline
func (c *configController) Handle(ctx context.Context, digest RequestDigest, note func(level string),
	queued func(inQueue bool), execute func()) {
	note(c.level)
	queued(false)
	if digest.RequestInfo.Name != "rejected" {
		execute()
	}
}
