// SPDX-License-Identifier: GPL-2.0
// A small net/http server, to be read by test_golang_server.
package main

import (
	"io"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RemoteAddr) })
	panic(http.ListenAndServe(os.Args[1], nil))
}
