// SPDX-License-Identifier: GPL-2.0

// A client that counts its answers. It asks `n` times in all, for one URL after the other, on so many connections with
// so many requests at a time on each. Its counts are one line of JSON: answers by status, with "errors" and "retry_after".
// With -tell it says what it has counted so far, too, for each line that it reads.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type headers []string

func (h *headers) String() string         { return strings.Join(*h, ", ") }
func (h *headers) Set(value string) error { *h = append(*h, value); return nil }

var (
	authority   = flag.String("ca", "", "file of the certificate that the server's is signed by")
	certificate = flag.String("cert", "", "file of the client's certificate")
	key         = flag.String("key", "", "file of its key")
	token       = flag.String("token", "", "bearer token")
	http1       = flag.Bool("http1", false, "HTTP/1.1 instead of HTTP/2")
	method      = flag.String("method", "GET", "method")
	body        = flag.String("body", "", "body of each request; %d in it is its number")
	connections = flag.Int("connections", 1, "connections")
	streams     = flag.Int("streams", 1, "requests at a time on each connection")
	times       = flag.Int64("n", 1, "requests in all")
	qps         = flag.Float64("qps", 0, "at most so many a second in all; 0: as many as can be")
	from        = flag.String("from", "", "the client's address")
	telling     = flag.Bool("tell", false, "for each line that is read, the counts so far")
	named       headers

	asked   int64
	dialed  int64
	mutex   sync.Mutex
	counts  = map[string]int{}
	said    = map[string]bool{}
	started time.Time
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func client() *http.Client {
	config := &tls.Config{InsecureSkipVerify: *authority == ""}
	if *authority != "" {
		pem, err := os.ReadFile(*authority)
		check(err)
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(pem)
	}
	if *certificate != "" {
		pair, err := tls.LoadX509KeyPair(*certificate, *key)
		check(err)
		config.Certificates = []tls.Certificate{pair}
	}
	dialer := &net.Dialer{}
	if *from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(*from)}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: !*http1, MaxConnsPerHost: 0,
		MaxIdleConnsPerHost: *streams, DisableCompression: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			atomic.AddInt64(&dialed, 1)
			return dialer.DialContext(ctx, network, address)
		}}
	if *http1 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return &http.Client{Transport: transport}
}

func count(what string, more string) {
	mutex.Lock()
	defer mutex.Unlock()
	counts[what]++
	if more != "" {
		counts[more]++
	}
}

func complain(err error) {
	mutex.Lock()
	defer mutex.Unlock()
	counts["errors"]++
	if text := err.Error(); len(said) < 5 && !said[text] {
		said[text] = true
		fmt.Fprintln(os.Stderr, text)
	}
}

func ask(c *http.Client, url string, i int64) {
	text := strings.ReplaceAll(*body, "%d", fmt.Sprint(i))
	req, err := http.NewRequest(*method, strings.ReplaceAll(url, "%d", fmt.Sprint(i)), bytes.NewBufferString(text))
	check(err)
	for _, header := range named {
		name, value, _ := strings.Cut(header, "=")
		values := strings.Split(value, "|")
		req.Header.Add(name, values[i%int64(len(values))])
	}
	if *token != "" {
		req.Header.Set("Authorization", "Bearer "+*token)
	}
	if *body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.Do(req)
	if err != nil {
		complain(err)
		return
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		complain(err)
		return
	}
	more := ""
	if answer.Header.Get("Retry-After") != "" {
		more = "retry_after"
	}
	count(fmt.Sprint(answer.StatusCode), more)
}

// The turn of request i, where there are so many a second.
func wait(i int64) {
	if *qps > 0 {
		time.Sleep(time.Until(started.Add(time.Duration(float64(i) / *qps * float64(time.Second)))))
	}
}

// Asks for the next URL. False: it was asked often enough.
func turn(c *http.Client, urls []string) bool {
	i := atomic.AddInt64(&asked, 1) - 1
	if i >= *times {
		return false
	}
	wait(i)
	ask(c, urls[i%int64(len(urls))], i)
	return true
}

// The first request goes alone: those that come while there is no connection would each make one.
func connection(urls []string) {
	var all sync.WaitGroup
	c := client()
	turn(c, urls)
	for i := 0; i < *streams; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for turn(c, urls) {
			}
		}()
	}
	all.Wait()
}

func tell() {
	mutex.Lock()
	defer mutex.Unlock()
	counts["connections"] = int(atomic.LoadInt64(&dialed))
	check(json.NewEncoder(os.Stdout).Encode(counts))
}

func tellWhenAsked() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		tell()
	}
}

func main() {
	flag.Var(&named, "header", "NAME=VALUE, or NAME=VALUE|VALUE... by turns; more than once")
	flag.Parse()
	var all sync.WaitGroup
	if *telling {
		go tellWhenAsked()
	}
	started = time.Now()
	for i := 0; i < *connections; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			connection(flag.Args())
		}()
	}
	all.Wait()
	tell()
}
