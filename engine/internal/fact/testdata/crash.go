// crash KIND fails in the way of the table at the end. It is run with
// GOTRACEBACK=crash.
package main

import (
	"errors"
	"fmt"
	"os"
)

var (
	nothing *struct{ room, value int }
	list    = []int{1, 2}
	seven   = 7
	zero    int
	names   map[string]int
)

//go:noinline
func index(i int) int { return list[i] }

//go:noinline
func divide(n int) int { return n / zero }

//go:noinline
func member() int { return nothing.value }

func main() {
	map[string]func(){
		"text":      func() { panic("a text of my own") },
		"error":     func() { panic(errors.New("an error of my own")) },
		"number":    func() { panic(seven * 6) },
		"formatted": func() { panic(fmt.Errorf("number %d is bad: %w", seven, errors.New("an error of my own"))) },
		"index":     func() { println(index(seven)) },
		"divide":    func() { println(divide(seven)) },
		"nil":       func() { println(member()) },
		"map":       func() { names["a"] = 1 },
		"deadlock":  func() { select {} },
	}[os.Args[1]]()
}
