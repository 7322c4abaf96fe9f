// SPDX-License-Identifier: GPL-2.0

// Package serve has an HTTPS server with HTTP/2, and a client of it.
package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func certificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	bytes, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(err)
	return tls.Certificate{Certificate: [][]byte{bytes}, PrivateKey: key}
}

// Echo answers with the request's protocol and URI. A URI that ends with ?wait is answered when the client goes, with ?hang
// never; one with ?panic and ?exit ends its handler in the middle, with ?recovered its handler goes on from a panic. At ?exec the
// process executes its program once more.
func Echo(w http.ResponseWriter, req *http.Request) {
	switch req.URL.RawQuery {
	case "wait":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-req.Context().Done()
	case "hang":
		select {}
	case "panic":
		panic(http.ErrAbortHandler)
	case "exit":
		runtime.Goexit()
	case "recovered":
		recovers()
	case "exec":
		check(syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
	}
	fmt.Fprintf(w, "%s %s\n", req.Proto, req.RequestURI)
}

func recovers() {
	defer func() { _ = recover() }()
	panic("to be recovered")
}

func get(url, user string, http2 bool) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: http2}
	client := &http.Client{Transport: transport}
	for range os.Args[4:] {
		req, err := http.NewRequest("GET", url, nil)
		check(err)
		req.Header.Set("X-User", user)
		answer, err := client.Do(req)
		check(err)
		body, err := io.ReadAll(answer.Body)
		check(err)
		fmt.Println(strings.TrimSpace(fmt.Sprintf("%d %s", answer.StatusCode, body)))
		answer.Body.Close()
	}
}

// protocols is where HTTP/2 without TLS is switched on, where there is such a switch (Go 1.24).
var protocols = func(*http.Server) {}

func serve(server *http.Server, address string) {
	listener, err := net.Listen("tcp", address)
	check(err)
	check(server.ServeTLS(listener, "", ""))
}

// Main is `serve ADDR:PORT...`, `serve-plain ADDR:PORT` without TLS, `serve-away ADDR:PORT` with an away listener, `serve-inherited` of
// the socket that is descriptor 3, or `http1|http2 URL USER TIMES...`: a request for each word.
func Main(handler http.Handler) {
	server := &http.Server{Handler: handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate()}}}
	switch os.Args[1] {
	case "serve":
		for _, address := range os.Args[3:] {
			go serve(server, address)
		}
		serve(server, os.Args[2])
	case "serve-plain":
		server.Addr = os.Args[2]
		protocols(server)
		check(server.ListenAndServe())
	case "serve-away":
		listener, err := net.Listen("tcp", os.Args[2])
		check(err)
		check(server.ServeTLS(away{listener}, "", ""))
	case "serve-inherited":
		listener, err := net.FileListener(os.NewFile(3, "listener"))
		check(err)
		check(server.ServeTLS(listener, "", ""))
	default:
		get(os.Args[2], os.Args[3], os.Args[1] == "http2")
	}
}
