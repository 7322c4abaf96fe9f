// SPDX-License-Identifier: GPL-2.0

// A server that authorizes requests as a Kubernetes API server does.
package main

import (
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/filters"

	"weir/serve"
)

func main() {
	handler := filters.WithAuthorization(http.HandlerFunc(serve.Echo), "secrets")
	serve.Main(filters.WithRequest(filters.WithAudit(handler)))
}
