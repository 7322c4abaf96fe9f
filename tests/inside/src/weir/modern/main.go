// SPDX-License-Identifier: GPL-2.0

// The same as apiserver, as Kubernetes is from 1.28 on: built with the tag `modern`.
package main

import (
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/filters"
	fairness "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/util/flowcontrol"

	"weir/serve"
)

func main() {
	authorized := filters.WithAuthorization(http.HandlerFunc(serve.Echo), "secrets")
	fair := fairness.WithPriorityAndFairness(authorized, flowcontrol.New())
	serve.Main(filters.WithRequest(filters.WithAudit(fairness.UnlessUnfair(fair, authorized))))
}
