// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// largeBytes is how large the large PDB file is, at least.
const largeBytes = 1 << 30

// measureLarge compares the cost of names by a large PDB file with llvm-symbolizer's, in one run: of one
// address, and of many all over the code. unwindd may take half of the time and of the memory.
func (r *rig) measureLarge() error {
	if r.isQuick {
		return nil // making it takes minutes
	}
	image, err := r.makeLarge()
	if err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(filepath.Dir(image), "a.pdb"))
	if err != nil {
		return err
	}
	fmt.Printf("a PDB file of %.2f GB\n", float64(info.Size())/1e9)
	_, code, err := codeOf(image)
	if err != nil {
		return err
	}
	for _, count := range []uint64{1, 100, 10_000} {
		list := filepath.Join(r.dir, "addresses")
		var text bytes.Buffer
		addresses := addressesOf(code, count)
		for _, a := range addresses {
			fmt.Fprintf(&text, "%#x\n", a)
		}
		if err := os.WriteFile(list, text.Bytes(), 0o600); err != nil {
			return err
		}
		var ours, theirs *cost.Cost
		for range 3 {
			own, err := (&cost.Command{Argv: []string{r.unwindd, "symbolize", "--obj=" + image}, Stdin: list}).Of(nil)
			if err != nil {
				return err
			}
			other, err := (&cost.Command{Argv: []string{"llvm-symbolizer-22", "--obj=" + image}, Stdin: list}).Of(nil)
			if err != nil {
				return err
			}
			ours, theirs = own.Best(ours), other.Best(theirs)
		}
		fmt.Printf("%d addresses: %.2f s and %d MiB (%d with pages of files); llvm-symbolizer %.2f s and %d MiB (%d): %.2f of the processors' time, %.2f of the memory\n",
			len(addresses), ours.CPU.Seconds(), ours.Own>>10, ours.All>>10, theirs.CPU.Seconds(), theirs.Own>>10, theirs.All>>10,
			ours.CPU.Seconds()/theirs.CPU.Seconds(), float64(ours.All)/float64(theirs.All))
		if 2*ours.CPU > theirs.CPU || 2*ours.All > theirs.All {
			r.fail("the large file, %d addresses: more than half of the time or of the memory of llvm-symbolizer", len(addresses))
		}
		if err := r.compareAnswers(fmt.Sprintf("the large file, %d addresses", len(addresses)), image, image, addresses, 0); err != nil {
			return err
		}
	}
	return nil
}

// makeLarge makes a program with a large PDB file: the same object many times, in which all functions
// are static.
func (r *rig) makeLarge() (string, error) {
	dir := filepath.Join(r.dir, "large")
	image := filepath.Join(dir, "a.exe")
	if isFile(image) {
		return image, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	var b bytes.Buffer
	b.WriteString("volatile int sink;\ntemplate <int N> struct at { int x[2]; __forceinline int sum(int y) const { int s = y; for (int v : x) s += v * sink; return s + at<N / 2>{}.sum(s); } };\ntemplate <> struct at<0> { __forceinline int sum(int y) const { return y; } };\n")
	const functions = 1500
	for i := range functions {
		fmt.Fprintf(&b, "__attribute__((noinline, used)) static int f%d(int a, int b) { at<%d> here{}; int c = here.sum(a) + b; if (c > %d) { int d = c * a; sink = d; return here.sum(d) ^ b; } return c; }\n", i, i+1, i)
	}
	b.WriteString("extern \"C\" int START() { return f1(1, 2) + f2(3, 4); }\n")
	if err := os.WriteFile(filepath.Join(dir, "large.cc"), b.Bytes(), 0o600); err != nil {
		return "", err
	}
	link := []string{"/debug", "/entry:start0", "/nodefaultlib", "/subsystem:console", "/pdb:a.pdb", "/out:a.exe", "/pdbpagesize:8192", "/force:multiple"}
	size := int64(0)
	for i := 0; size < largeBytes; i++ {
		object := fmt.Sprintf("%d.obj", i)
		if i == 0 {
			err := cost.Run(dir, "clang-cl-22", "--target=x86_64-pc-windows-msvc", "/c", "/Z7", "/O2", "/GS-", "-gcolumn-info", "/clang:-Wno-everything", "/DSTART=start0", "/Fo"+object, "--", "large.cc")
			if err != nil {
				return "", err
			}
		} else if err := cost.Run(dir, "cp", "0.obj", object); err != nil { // the linker takes a file of several names once
			return "", err
		}
		info, err := os.Stat(filepath.Join(dir, object))
		if err != nil {
			return "", err
		}
		size += info.Size() * 3 / 5 // the rest is code and types, which are merged
		defer os.Remove(filepath.Join(dir, object))
		link = append(link, object)
	}
	return image, cost.Run(dir, "lld-link-22", link...)
}
