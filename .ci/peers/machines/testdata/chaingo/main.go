// SPDX-License-Identifier: Apache-2.0

// Chaingo ends as its argument says, and prints the stacks of its goroutines.
package main

import (
	"os"
	"runtime/debug"
	"sort"
	"sync"
	"syscall"
	"time"
)

type node struct {
	next  *node
	value int
}

//go:noinline
func (n *node) get(depth int) int {
	if depth == 0 {
		return n.next.next.value
	}
	return n.get(depth-1) + 1
}

//go:noinline
func step(left int, end func(int) int) int {
	var room [40]int
	room[left] = left
	if left > 0 {
		return step(left-1, end) + room[left]
	}
	return end(left) + room[left]
}

//go:noinline
func overflow(n int) int {
	var room [60]int
	room[n%60] = n
	return overflow(n+1) + room[n%60]
}

var ways = map[string]func(int) int{
	"nil":   (&node{}).get,
	"index": func(n int) int { return []int{1, 2, 3}[n+len(os.Args)+5] },
	"null":  func(int) int { var f func(int) int; return f(1) },
	"quit": func(int) int {
		// The handler of a signal that was sent ends the program on a stack of its own.
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGQUIT)
		time.Sleep(time.Hour)
		return 0
	},
	"spin": func(n int) int {
		go func() {
			time.Sleep(50 * time.Millisecond)
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGQUIT)
		}()
		for i := 0; ; i++ {
			n = n*31 + i
			if n == -1 {
				return n
			}
		}
	},
	"sort": func(n int) int {
		list := []int{3, 1, 2}
		sort.Slice(list, func(i, j int) bool { return (&node{}).get(3) == list[i+j] })
		return list[0]
	},
	"fatal":    func(int) int { m := map[int]int{}; var mu sync.Mutex; mu.Unlock(); return m[1] },
	"overflow": overflow,
}

func main() {
	debug.SetMaxStack(1 << 20)
	go func() { select {} }()
	go func() { time.Sleep(time.Hour) }()
	ready := make(chan int)
	go func() {
		step(3, ways[os.Args[1]])
		close(ready)
	}()
	<-ready
}
