// SPDX-License-Identifier: GPL-2.0

// A net/http server as any other.
package main

import (
	"net/http"

	"weir/serve"
)

func main() {
	serve.Main(http.HandlerFunc(serve.Echo))
}
