// SPDX-License-Identifier: GPL-2.0

// A server that handles requests of its own, as `apiserver` handles those of clients: `loop ADDR:PORT`, and on each line of input
//
//	again N     N requests, one after the other: what looks into the server is most of what they take
//	cold N MB   the same, and before each so much memory is written that it drives all else out of the CPU's caches
//	deep N      N requests, each in a goroutine of its own that is a call deeper: somewhere its stack has to grow
//
// For each line the nanoseconds of one request.
package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"k8s.io/apiserver/pkg/endpoints/filters"
	fairness "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/util/flowcontrol"
)

type nowhere struct{ header http.Header }

func (w *nowhere) Header() http.Header         { return w.header }
func (w *nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (w *nowhere) WriteHeader(int)             {}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var calls, returned int

const (
	line        = 64
	megabyte    = 1 << 20
	mostMemory  = 256
	noHugePages = 15 // MADV_NOHUGEPAGE
)

// In as many pages as it may have: their addresses are driven out, too.
func otherMemory() []byte {
	memory, err := syscall.Mmap(-1, 0, mostMemory*megabyte, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	check(err)
	check(syscall.Madvise(memory, noHugePages))
	return memory
}

//go:noinline
func write(memory []byte) {
	for at := 0; at < len(memory); at += line {
		memory[at]++
	}
}

//go:noinline
func below(calls int, call func()) {
	if calls == 0 {
		call()
	} else {
		below(calls-1, call)
	}
	returned++ // it is no tail call
}

// deeper calls the handler so many calls deeper: those before it have not made the stack grow already.
func deeper(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		below(calls, func() { handler.ServeHTTP(w, req) })
	})
}

func request() *http.Request {
	req, err := http.NewRequest("GET", "/list/dev/pods", nil)
	check(err)
	req.Header.Set("X-User", "alice")
	req.RequestURI, req.RemoteAddr = "/list/dev/pods", "192.0.2.7:40000"
	req.ProtoMajor, req.TLS = 2, &tls.ConnectionState{}
	return req
}

func main() {
	listener, err := net.Listen("tcp", os.Args[1])
	check(err)
	defer listener.Close()
	served := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	fair := fairness.WithPriorityAndFairness(deeper(filters.WithAuthorization(served, "secrets")), flowcontrol.New())
	handler := filters.WithRequest(filters.WithAudit(fair))
	req, w := request(), &nowhere{http.Header{}}
	other := otherMemory()
	one := func() { handler.ServeHTTP(w, req) }
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var how string
		var times, megabytes int
		_, err := fmt.Sscan(lines.Text(), &how, &times)
		check(err)
		if how == "cold" {
			_, err = fmt.Sscan(lines.Text(), &how, &times, &megabytes)
			check(err)
		}
		start := time.Now()
		for i := 0; i < times; i++ {
			write(other[:megabytes*megabyte])
			if how != "deep" {
				one()
				continue
			}
			calls = i
			done := make(chan struct{})
			go func() {
				one()
				close(done)
			}()
			<-done
		}
		calls = 0
		fmt.Println(time.Since(start).Nanoseconds() / int64(times))
	}
}
