// SPDX-License-Identifier: GPL-2.0

// Package filters has a filter that is called as that of Kubernetes' package of this name is.
package filters

import (
	"net/http"
	"reflect"
	"time"
	"unsafe"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol"
)

const unmapped = 1 << 46 // an address where a process of Linux can have nothing

// What Handle is told of it. A verb that is not in memory, if its name says so.
func told(info *request.RequestInfo) *request.RequestInfo {
	if info.Name != "unread" {
		return info
	}
	other := *info
	header := reflect.StringHeader{Data: unmapped, Len: len(info.Verb)}
	other.Verb = *(*string)(unsafe.Pointer(&header))
	return &other
}

// WithPriorityAndFairness lets logs by. Of watches, another goroutine is asked whether they may begin, as in newer versions.
//
//go:noinline
func WithPriorityAndFairness(handler http.Handler, control flowcontrol.Interface) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, who := request.From(req.Context())
		user.GoAway(who)
		if info.Subresource == "log" {
			handler.ServeHTTP(w, req)
			return
		}
		if info.Name == "late" { // as where a server waits for a CPU
			time.Sleep(1500 * time.Millisecond)
		}
		served := false
		level := ""
		note := func(name string) { level += name }
		queued := func(inQueue bool) {
			if inQueue {
				level += " (queued)"
			}
		}
		digest := flowcontrol.RequestDigest{RequestInfo: told(info), User: who}
		if info.Verb == "watch" {
			handled := make(chan struct{})
			go func() {
				flowcontrol.Ask(control, req.Context(), digest, note, queued, func() { served = true })
				close(handled)
			}()
			<-handled
			if served {
				handler.ServeHTTP(w, req)
			}
		} else {
			flowcontrol.Ask(control, req.Context(), digest, note, queued, func() {
				served = true
				handler.ServeHTTP(w, req)
			})
		}
		if !served {
			flowcontrol.Dropped(level)
			w.Header().Set("Retry-After", "1")
			w.Header().Set("X-Level", level) // none where Handle was skipped
			http.Error(w, "too many requests", http.StatusTooManyRequests)
		}
	})
}

// UnlessUnfair has requests for ?unfair go on as where API Priority and Fairness is switched off.
func UnlessUnfair(fair, unfair http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.RawQuery == "unfair" {
			_, who := request.From(req.Context())
			user.GoAway(who)
			unfair.ServeHTTP(w, req)
			return
		}
		fair.ServeHTTP(w, req)
	})
}
