// Gosubject is a Go program to take cores of. Its mode says how it ends: wait
// prints a line and waits for a signal, panic fails in a goroutine, fatal has the runtime
// end the program, which it does on another stack.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"sync"
	"time"
)

type tree struct {
	left, right *tree
	value       int
}

func (t *tree) insert(v int) *tree {
	if t == nil {
		return &tree{value: v}
	}
	if v < t.value {
		t.left = t.left.insert(v)
	} else {
		t.right = t.right.insert(v)
	}
	return t
}

//go:noinline
func (t *tree) fail(depth int) int {
	if depth == 0 {
		return t.left.right.value
	}
	return t.fail(depth-1) + 1
}

//go:noinline
func spin(stop *bool) int {
	var t *tree
	x := 1
	for i := 0; !*stop; i++ {
		x = x*1103515245 + 12345
		t = t.insert(x & 0xffff)
		if i%1000 == 0 {
			t = nil
		}
	}
	return x
}

//go:noinline
func inner(depth int) int {
	if depth > 0 {
		return inner(depth-1) + 1
	}
	words := []string{"row", "frame", "lane", "place"}
	sort.Slice(words, func(i, j int) bool {
		if words[i] == "row" || words[j] == "row" {
			if os.Args[1] == "fatal" {
				new(sync.Mutex).Unlock()
			}
			return new(tree).fail(3) > 0
		}
		return words[i] < words[j]
	})
	return len(words)
}

func main() {
	var stop bool
	var wg sync.WaitGroup
	for i := 0; i < 2; i++ {
		wg.Add(1)
		go func() {
			runtime.LockOSThread()
			defer wg.Done()
			spin(&stop)
		}()
	}
	time.Sleep(50 * time.Millisecond)
	if len(os.Args) > 1 && os.Args[1] != "wait" {
		inner(5)
	}
	fmt.Println("ready", os.Getpid())
	for {
		time.Sleep(time.Second)
	}
}
