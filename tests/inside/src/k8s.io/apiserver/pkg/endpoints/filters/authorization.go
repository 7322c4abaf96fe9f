// SPDX-License-Identifier: GPL-2.0

// Package filters has functions that are called as those of Kubernetes' package of this name are.
package filters

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"unsafe"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

type key int

const (
	attributesKey key = iota
	besideKey
)

const unmapped = 1 << 46 // an address where a process of Linux can have nothing

// A string that nothing here ever reads: weir has to find out by itself that it is none.
func lie(address uintptr, length int) string {
	header := reflect.StringHeader{Data: address, Len: length}
	return *(*string)(unsafe.Pointer(&header))
}

func userOf(name string) user.Info {
	switch name {
	case "other":
		return &user.Other{DefaultInfo: user.DefaultInfo{Name: name}}
	case "nobody":
		return nil
	case "nil":
		return (*user.DefaultInfo)(nil)
	case "unmapped":
		return &user.DefaultInfo{Name: lie(unmapped, 5)}
	case "in the kernel":
		return &user.DefaultInfo{Name: lie(1<<64-1<<40, 5)}
	case "endless":
		return &user.DefaultInfo{Name: lie(unmapped, 1<<62)}
	case "negative":
		return &user.DefaultInfo{Name: lie(unmapped, -1)}
	case user.Away:
		return user.NewAway()
	case user.Never:
		return user.NewNever()
	}
	return &user.DefaultInfo{Name: name, Groups: []string{"all"}}
}

// "alice>bob": who was authenticated, and who is impersonated. "alice+bob": another user, whom somebody keeps for himself.
func withUsers(ctx context.Context, names string) context.Context {
	names, beside, isBeside := strings.Cut(names, "+")
	for _, name := range strings.Split(names, ">") {
		ctx = request.WithUser(ctx, userOf(name))
	}
	if isBeside {
		ctx = context.WithValue(ctx, besideKey, userOf(beside))
	}
	return ctx
}

// As in Kubernetes, most verbs are constants, whatever the path is.
func verbOf(name string) string {
	switch name {
	case "get":
		return "get"
	case "list":
		return "list"
	case "watch":
		return "watch"
	case "create":
		return "create"
	}
	return name
}

// WithRequest keeps what a request is about: /VERB/NAMESPACE/RESOURCE/NAME/SUBRESOURCE, whose user a header names.
func WithRequest(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		part := strings.Split(req.URL.Path+"/////", "/")
		record := &authorizer.AttributesRecord{Verb: verbOf(part[1]), Namespace: part[2], Resource: part[3], Name: part[4],
			Subresource:     part[5],
			ResourceRequest: part[3] != "", Path: req.URL.Path}
		info := &request.RequestInfo{Verb: verbOf(part[1]), Namespace: part[2], Resource: part[3], Name: part[4],
			Subresource: part[5], IsResourceRequest: part[3] != "", Path: req.URL.Path}
		ctx := withUsers(request.With(req.Context(), info, nil), req.Header.Get("X-User"))
		handler.ServeHTTP(w, req.WithContext(context.WithValue(ctx, attributesKey, record)))
	})
}

// WithAudit asks for the attributes before the authorization does.
func WithAudit(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, err := GetAuthorizerAttributes(req.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		handler.ServeHTTP(w, req)
	})
}

//go:noinline
func WithAuthorization(handler http.Handler, forbidden string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		attributes, err := GetAuthorizerAttributes(req.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if attributes.GetResource() == forbidden {
			http.Error(w, "forbidden", http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, req)
	})
}

//go:noinline
func GetAuthorizerAttributes(ctx context.Context) (authorizer.Attributes, error) {
	record, ok := ctx.Value(attributesKey).(*authorizer.AttributesRecord)
	if !ok {
		return nil, errors.New("no attributes")
	}
	record.User, _ = request.UserFrom(ctx)
	return record, nil
}
