// Program says what the runtime knows of addresses in it. It reads offsets from
// main.main, one a line, and prints the frames at each, innermost first, as
// "FUNCTION\tFILE\tLINE", and an empty line.
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
)

type point[T any] struct{ x, y T }

func (p point[T]) flip() point[T] { return point[T]{p.y, p.x} }

func twice(s string) string { return strings.ToUpper(s) + strings.Repeat(s, len(s)) }

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	base := reflect.ValueOf(main).Pointer()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var offset int64
		if _, err := fmt.Sscan(in.Text(), &offset); err != nil {
			panic(twice(err.Error()) + fmt.Sprint(point[int]{1, 2}.flip()))
		}
		// One more: it takes addresses for return addresses. And one frame after
		// them: inlined calls are found in frames that have a caller.
		frames := runtime.CallersFrames([]uintptr{base + uintptr(offset) + 1, base})
		for f, more := frames.Next(); more; f, more = frames.Next() {
			fmt.Fprintf(out, "%s\t%s\t%d\n", f.Function, f.File, f.Line)
		}
		fmt.Fprintln(out)
	}
}
