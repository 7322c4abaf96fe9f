// SPDX-License-Identifier: GPL-2.0

// A net/http server on 127.0.0.1, port in the first argument: / answers at once, /work after some work for the CPU, as
// an API server's answers cost: a list is made into JSON.
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
)

type item struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
	Size   int               `json:"size"`
}

func items() []item {
	list := make([]item, 60)
	for i := range list {
		name := "item-" + strconv.Itoa(i)
		list[i] = item{name, map[string]string{"app": name, "tier": "bench"}, i}
	}
	return list
}

func main() {
	list := items()
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "ok\n")
	})
	http.HandleFunc("/work", func(w http.ResponseWriter, r *http.Request) {
		text, err := json.Marshal(list)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.Write(text)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
