// SPDX-License-Identifier: GPL-2.0

// Package filters has functions that are called as those of Kubernetes' package of this name are.
package filters

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

type key int

const attributesKey key = 0

// WithRequest keeps what a request is about: /VERB/NAMESPACE/RESOURCE/NAME, whose user a header names.
func WithRequest(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		part := strings.Split(req.URL.Path+"////", "/")
		record := &authorizer.AttributesRecord{Verb: part[1], Namespace: part[2], Resource: part[3], Name: part[4],
			ResourceRequest: part[3] != "", Path: req.URL.Path}
		name := req.Header.Get("X-User")
		if name == "other" {
			record.User = &user.Other{DefaultInfo: user.DefaultInfo{Name: name}}
		} else {
			record.User = &user.DefaultInfo{Name: name, Groups: []string{"all"}}
		}
		handler.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), attributesKey, record)))
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
	return record, nil
}
