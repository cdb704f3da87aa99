// The types of Go, for the tests of their forms.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

type point struct {
	A int
	B string
}

type counts map[string]int

type shape interface{ Area() float64 }

type square struct{ W float64 }

func (s square) Area() float64 { return s.W * s.W }

type single struct{ p *int }

//go:noinline
func others(f func(int) int) {
	text := "héllo\n"
	var empty string
	long := strings.Repeat("x", 1000)
	slice := []int{1, 2, 3}
	var nilSlice []string
	emptySlice := []int{}
	points := []point{{1, "x"}, {2, "y"}}
	bytes := []byte("bytes")
	nested := [][]string{{"a"}, nil, {"b", "c"}}
	small := map[string]int{"a": 1, "b": 2, "c": 3}
	var nilMap map[int]bool
	emptyMap := map[int]bool{}
	big := map[int]string{}
	for i := 0; i < 1000; i++ {
		big[i] = fmt.Sprint(i)
	}
	deleted := map[int]int{}
	for i := 0; i < 100; i++ {
		deleted[i] = i
	}
	for i := 1; i < 100; i++ {
		delete(deleted, i)
	}
	named := counts{"q": 9}
	structs := map[point][]int{{1, "k"}: {4, 5}}
	huge := map[[200]byte]int{{1}: 7}
	var err error = errors.New("bad")
	var noError error
	var number any = 42
	var pointer any = &point{5, "p"}
	var object shape = square{3}
	n := 8
	var direct any = single{&n}
	var mapped any = small
	ch := make(chan int, 5)
	ch <- 1
	ch <- 2
	<-ch
	ch <- 3
	unbuffered := make(chan string)
	var nilChan chan string
	pt := &point{7, "pt"}
	array := [3]string{"a", "b", "c"}
	closure := func(x int) int { return x + len(slice) }
	var nilFunc func()
	both := struct {
		X any
		E error
	}{3.5, err}
	duration := 5 * time.Second
	if len(os.Args) > 5 {
		fmt.Println(text, empty, long, slice, nilSlice, emptySlice, points, bytes, nested, small, nilMap, emptyMap, big, deleted, named, structs,
			huge, err, noError, number, pointer, object, direct, mapped, unbuffered, nilChan, pt, array, nilFunc, both, duration, f)
	}
	var fault *int
	*fault = closure(len(slice)) + len(small)
	fmt.Println(text, empty, long, slice, nilSlice, emptySlice, points, bytes, nested, small, nilMap, emptyMap, big, deleted, named, structs,
		huge, err, noError, number, pointer, object, direct, mapped, ch, unbuffered, nilChan, pt, array, nilFunc == nil, both, duration, f)
}

func main() { others(func(i int) int { return i }) }
