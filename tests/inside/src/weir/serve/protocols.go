// SPDX-License-Identifier: GPL-2.0

//go:build go1.24

package serve

import "net/http"

func init() {
	protocols = func(server *http.Server) {
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
	}
}
