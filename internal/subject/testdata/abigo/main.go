// SPDX-License-Identifier: Apache-2.0

// Command abigo reads at null below calls, while another goroutine waits.
package main

import "sync"

//go:noinline
func leaf(p *int, n int) int { return *p + n }

//go:noinline
func step(n int, p *int) int {
	if n == 0 {
		return leaf(p, n) + 1
	}
	return step(n-1, p) + n
}

func main() {
	var all sync.WaitGroup
	all.Add(1)
	block := make(chan int)
	go func() {
		defer all.Done()
		<-block
	}()
	println(step(3, nil))
	all.Wait()
}
