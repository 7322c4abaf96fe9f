// SPDX-License-Identifier: GPL-2.0

// Package request has the shapes of Kubernetes' package of this name, as far as weir reads them.
package request

import (
	"context"

	"k8s.io/apiserver/pkg/authentication/user"
)

type RequestInfo struct {
	IsResourceRequest bool
	Path              string
	Verb              string
	APIPrefix         string
	APIGroup          string
	APIVersion        string
	Namespace         string
	Resource          string
	Subresource       string
	Name              string
	Parts             []string
}

type key int

const (
	infoKey key = iota
	userKey
)

func With(ctx context.Context, info *RequestInfo, who user.Info) context.Context {
	return WithUser(context.WithValue(ctx, infoKey, info), who)
}

func WithUser(ctx context.Context, who user.Info) context.Context {
	return context.WithValue(ctx, userKey, who)
}

func UserFrom(ctx context.Context) (user.Info, bool) {
	who, ok := ctx.Value(userKey).(user.Info)
	return who, ok
}

func From(ctx context.Context) (*RequestInfo, user.Info) {
	info, _ := ctx.Value(infoKey).(*RequestInfo)
	who, _ := UserFrom(ctx)
	return info, who
}
