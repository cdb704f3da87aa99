// Go's types, in frames of calls, and a loop without an end.
package main

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"
)

type color int

const (
	red color = iota
	green
)

type point struct{ X, Y int }

type named struct {
	point
	*strings.Builder
	Name string
	next *named
	tag  [2]byte
	_    int
}

type shape interface{ area(depth int) float64 }

type circle struct{ r float64 }

type stack[T any] struct {
	items []T
	top   *T
}

var (
	globalMap   = map[string]int{"a": 1}
	globalPoint = point{3, 4}
	sink        any
)

func (p point) area(depth int) float64 {
	local := depth + p.X
	keep(&local)
	return spin(float64(local), p)
}

func (c *circle) area(depth int) float64 { return c.r }

//go:noinline
func keep(a ...any) { sink = a }

//go:noinline
func spin(x float64, at point) float64 {
	here := x + float64(at.Y)
	keep(&here)
	fmt.Println("ready")
	for {
		here++
	}
}

func inlined(s shape, n int) float64 {
	twice := n * 2
	return s.area(twice)
}

//go:noinline
func results(s shape, n int) (first float64, err error) {
	defer func() { keep(&first, &err) }()
	first = inlined(s, n)
	return first, nil
}

//go:noinline
func closures(n int) float64 {
	captured, text := n*3, "captured"
	add := func(x int) float64 {
		inside := x + captured
		keep(&inside, text)
		r, _ := results(point{inside, 7}, inside)
		captured++
		return r
	}
	var nothing func()
	method := point{1, 2}.area
	keep(&add, &nothing, &method)
	return add(n)
}

//go:noinline
func maps(n int) float64 {
	var none map[string]int
	empty := map[string]int{}
	one := map[string]int{"only": 1}
	eight := map[int]string{}
	for i := range 8 {
		eight[i] = fmt.Sprint("v", i)
	}
	thousand := map[int]float64{}
	for i := range n {
		thousand[i] = float64(i) / 2
	}
	removed := map[int]int{}
	for i := range 100 {
		removed[i] = i
	}
	for i := range 90 {
		delete(removed, i)
	}
	structs := map[point][]string{{1, 2}: {"a", "b"}, {3, 4}: nil}
	interfaces := map[any]any{1: "one", "two": 2, 3.5: point{5, 6}}
	nested := map[string]map[string]bool{"x": {"y": true}}
	set := map[[2]int]struct{}{{1, 2}: {}}
	large := map[int][200]byte{7: {1, 2, 3}}
	keep(&none, &empty, &one, &eight, &thousand, &removed, &structs, &interfaces, &nested, &set, &large)
	return closures(n)
}

//go:noinline
func interfaces(any0 any, s shape, err error) float64 {
	var nilShape shape
	var nilCircle shape = (*circle)(nil)
	byPointer := shape(&circle{2.5})
	number, text := any(5), any("text in an interface")
	structure, pointer := any(point{7, 8}), any(&point{9, 10})
	function := any(keep)
	wrapped := fmt.Errorf("wrapped: %w", err)
	slice := []any{1, "a", nil, 2.5, point{1, 1}, []int{1}}
	keep(&nilShape, &nilCircle, &byPointer, &number, &text, &structure, &pointer, &function, &wrapped, &slice)
	return maps(1000)
}

//go:noinline
func references(s string, b []byte, p *point, f func(int) float64, c chan int, array [3]int16, v ...string) float64 {
	var nilSlice []int
	emptySlice := []int{}
	slice := append(make([]int, 0, 10), 1, 2, 3)
	thousand := make([]int32, 1000)
	for i := range thousand {
		thousand[i] = int32(i * i)
	}
	strs := []string{"", "short", strings.Repeat("long ", 30)}
	points := []point{{1, 2}, {3, 4}}
	pointers := []*point{p, nil}
	matrix := [2][3]int8{{1, 2, 3}, {4, 5, 6}}
	slices := [][]int{{1}, nil, {2, 3}}
	empty, unicode, escapes := "", "h€llo 😀", "a\tb\"c\\d\x00e\xff"
	long := strings.Repeat("x", 1000)
	var nilPointer *point
	pointerPointer := &p
	embedded := named{point: point{5, 6}, Name: "embedded"}
	embedded.next = &embedded
	anonymous := struct {
		A int
		B struct{ C string }
	}{1, struct{ C string }{"c"}}
	nothing := struct{}{}
	generic := stack[string]{items: []string{"g"}}
	buffered := make(chan string, 3)
	buffered <- "first"
	buffered <- "second"
	unbuffered := make(chan struct{})
	var nilChan chan int
	receive := (<-chan string)(buffered)
	raw := unsafe.Pointer(p)
	uintptr_ := uintptr(0xdead)
	var mu sync.Mutex
	mu.Lock()
	when := time.Unix(1, 0).UTC()
	keep(&s, &b, &p, &f, &c, &array, &v, &nilSlice, &emptySlice, &slice, &thousand, &strs, &points, &pointers, &matrix, &slices, &empty, &unicode, &escapes)
	keep(&long, &nilPointer, &pointerPointer, &embedded, &anonymous, &nothing, &generic, &buffered, &unbuffered, &nilChan, &receive, &raw, &uintptr_, &mu, &when)
	return interfaces(42, point{1, 2}, errors.New("an error"))
}

//go:noinline
func scalars(flag bool, c color) float64 {
	i8, i16, i32, i64, i := int8(-128), int16(-32768), int32(math.MinInt32), int64(math.MinInt64), -1
	u8, u16, u32, u64, u := uint8(255), uint16(65535), uint32(math.MaxUint32), uint64(math.MaxUint64), uint(7)
	f32, f64, nan, inf := float32(1.5), -2.25, math.NaN(), math.Inf(-1)
	c64, c128 := complex64(complex(1, -2)), complex(0.5, 1e10)
	r, b := 'r', byte('b')
	enum, duration := green, 90*time.Second
	const constant = 12
	x := 1
	keep(&x)
	{
		x := "hidden"
		keep(&x)
		if x := 2.5; x > 1 {
			keep(&x)
			keep(&i8, &i16, &i32, &i64, &i, &u8, &u16, &u32, &u64, &u, &f32, &f64, &nan, &inf, &c64, &c128, &r, &b, &enum, &duration, &flag, &c)
			return references("parameter", []byte("bytes"), &point{1, 2}, nil, nil, [3]int16{1, -2, 3}, "v0", "v1")
		}
	}
	return f64 + float64(c)
}

func main() {
	runtime.LockOSThread()
	keep(globalMap, globalPoint, red)
	fmt.Println(scalars(true, green))
}
