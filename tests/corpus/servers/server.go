// SPDX-License-Identifier: GPL-2.0
// Go's server, and a log of what it served: server.go DIRECTORY PORT
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
)

func escaped(text string) string {
	var b strings.Builder

	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' || c == '\\' {
			fmt.Fprintf(&b, "\\x%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func main() {
	var lock sync.Mutex
	log, err := os.Create(os.Args[1] + "/strict.log")
	if err != nil {
		panic(err)
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		_, port, _ := net.SplitHostPort(r.RemoteAddr)
		lock.Lock()
		fmt.Fprintf(log, "%s\t%s\t%s\t%s\n", port, r.Method, escaped(r.URL.Path), escaped(r.RequestURI))
		lock.Unlock()
		io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(204)
		case "/304":
			w.WriteHeader(304)
		default:
			fmt.Fprintln(w, "served")
		}
	}
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[2], http.HandlerFunc(handler)))
}
