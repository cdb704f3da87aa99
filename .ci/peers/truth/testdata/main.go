// SPDX-License-Identifier: Apache-2.0

// Command main grows its stack, panics, and collects garbage, on one thread.
package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sort"
	"strings"
)

func init() { runtime.LockOSThread() }

type shape interface{ area() float64 }
type square struct{ side float64 }
type circle struct{ radius float64 }

func (s square) area() float64  { return s.side * s.side }
func (c *circle) area() float64 { return c.radius * c.radius * math.Pi }

//go:noinline
func deep(n int, data [64]int) int {
	data[n%64] = n
	if n == 0 {
		return data[5]
	}
	return deep(n-1, data) + data[3]
}

//go:noinline
func fails(n int, list []int) int {
	if n == 0 {
		return list[len(list)]
	}
	defer func() { list[0]++ }()
	return fails(n-1, list) + 1
}

//go:noinline
func recovers() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("recovered: %w", r.(error))
		}
	}()
	fails(3, []int{1, 2, 3})
	return nil
}

type node struct {
	left, right *node
	text        string
}

func grow(n int) *node {
	if n == 0 {
		return nil
	}
	return &node{grow(n - 1), grow(n - 2 + n%2), strings.Repeat("x", n)}
}

func main() {
	fmt.Println(deep(3, [64]int{}), deep(200, [64]int{}))
	counts := map[string]int{}
	for _, w := range strings.Fields("the quick brown fox jumps over the lazy dog") {
		counts[w] += len(w)
	}
	var list []string
	for w := range counts {
		list = append(list, w)
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	fmt.Println(list, grow(6).text)
	sum := 0.0
	for _, s := range []shape{square{2}, &circle{1}} {
		sum += s.area()
	}
	fmt.Printf("%.3f %v\n", sum, recovers())
	done := make(chan int)
	go func() { done <- deep(9, [64]int{}) }()
	fmt.Println(<-done)
	runtime.GC()
	_, err := os.Open("/nowhere")
	fmt.Println(errors.Is(err, os.ErrNotExist))
}
