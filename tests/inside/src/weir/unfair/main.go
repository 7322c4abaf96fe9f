// SPDX-License-Identifier: GPL-2.0

// A server that authorizes requests as a Kubernetes API server does, and has no API Priority and Fairness.
package main

import (
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/filters"

	"weir/serve"
)

func main() {
	serve.Main(filters.WithRequest(filters.WithAudit(filters.WithAuthorization(http.HandlerFunc(serve.Echo), "secrets"))))
}
