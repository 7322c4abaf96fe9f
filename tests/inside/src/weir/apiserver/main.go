// SPDX-License-Identifier: GPL-2.0

// A server that handles and authorizes requests as a Kubernetes API server does.
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
