// SPDX-License-Identifier: GPL-2.0

// Package filters has a filter that is called as that of Kubernetes' package of this name is.
package filters

import (
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol"
)

// WithPriorityAndFairness lets watches and logs by.
//
//go:noinline
func WithPriorityAndFairness(handler http.Handler, control flowcontrol.Interface) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, who := request.From(req.Context())
		if info.Verb == "watch" || info.Subresource == "log" {
			handler.ServeHTTP(w, req)
			return
		}
		served := false
		level := ""
		execute := func() {
			served = true
			handler.ServeHTTP(w, req)
		}
		control.Handle(req.Context(), flowcontrol.RequestDigest{RequestInfo: info, User: who},
			func(name string) { level += name },
			func(inQueue bool) {
				if inQueue {
					level += " (queued)"
				}
			}, execute)
		if !served {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests: "+level, http.StatusTooManyRequests)
		}
	})
}
