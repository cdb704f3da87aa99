// SPDX-License-Identifier: Apache-2.0

package symbolize_test

import (
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/unwindd/unwindd/engine/symbolize"
)

// The functions at an address, as llvm-symbolizer prints them.
func Example() {
	s := symbolize.New(symbolize.Options{})
	defer s.Close()
	session := symbolize.Session{
		Symbolizer: s, Object: "../internal/symbol/dwarf/testdata/small5", Inlines: true,
		Output: symbolize.WriterOptions{Demangle: true},
	}
	if err := session.Run(os.Stdout, []string{"0x4000b0"}, nil); err != nil {
		log.Println(err)
	}
	// Output:
	// mix
	// /src/small.cc:11:3
	// c_name
	// /src/small.cc:14:68
}

// Questions of a program that starts addr2line, and what it would answer.
func ExampleAddr2line() {
	s := symbolize.New(symbolize.Options{})
	defer s.Close()
	a := symbolize.Addr2line{
		Symbolizer: s, File: "../internal/symbol/dwarf/testdata/small5", Inlines: true,
		Output: symbolize.WriterOptions{Style: symbolize.StyleAddr2line, Pretty: true},
	}
	if err := a.Run(os.Stdout, nil, strings.NewReader("4000b0\n1\n")); err != nil {
		log.Println(err)
	}
	// Output:
	// mix at /src/small.cc:11
	//  (inlined by) c_name at /src/small.cc:14
	// ?? ??:0
}

// The frames at an address in the manner of either tool.
func ExampleFile() {
	s := symbolize.New(symbolize.Options{})
	defer s.Close()
	f, err := s.Open("../internal/symbol/dwarf/testdata/small5")
	if err != nil {
		log.Println(err)
		return
	}
	for _, frame := range f.FramesLLVM(nil, 0x4000d0, true) {
		fmt.Println(frame.LinkageName, frame.File, frame.Line)
	}
	// Output:
	// _ZN5outer4workEi /src/small.cc 18
}
