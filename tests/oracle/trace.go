// SPDX-License-Identifier: GPL-2.0

// What the oracles have in common: a trace on standard input, a line at a time, and their answers on standard output.
package main

import (
	"bufio"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
)

func integer(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func number(text string) float64 {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// Gives the words of each line to take, which prints what it has to say; false: the line is none of a trace.
func answer(take func(words []string, output io.Writer) bool) {
	input := bufio.NewScanner(os.Stdin)
	output := bufio.NewWriter(os.Stdout)
	for input.Scan() {
		if !take(strings.Fields(input.Text()), output) {
			log.Fatalf("not a trace: %q", input.Text())
		}
	}
	if err := input.Err(); err != nil {
		log.Fatal(err)
	}
	if err := output.Flush(); err != nil {
		log.Fatal(err)
	}
}
