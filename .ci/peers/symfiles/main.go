// Command symfiles holds the symbol files that unwindd writes against the files that they
// are made of.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/unwindd/unwindd/engine/symbolize"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "symfiles:", err)
		os.Exit(1)
	}
}

func run() error {
	details := flag.Int("details", 0, "list `N` differences of each kind")
	dumpSyms := flag.String("dump_syms", "", "compare with Breakpad's dump_syms at `PATH`")
	sysroot := flag.String("sysroot", "", "")
	debugDir := flag.String("debug-dir", "", "")
	most := flag.Uint64("most", 50_000, "ask for about `N` addresses of a file")
	flag.Parse()
	dir, err := os.MkdirTemp("", "symfiles-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var all comparison
	for _, t := range []*tally{&all.functions, &all.lines, &all.inlines, &all.publics, &all.cfi} {
		t.details = *details
	}
	names, rows := tally{details: *details}, tally{details: *details}
	for _, path := range flag.Args() {
		o := symbolize.Options{Sysroot: *sysroot}
		if *debugDir != "" {
			o.DebugDirs = []string{*debugDir}
		}
		s := symbolize.New(o)
		p, err := write(s, path, dir)
		if err != nil {
			fmt.Println(path, err)
			continue
		}
		n, r := tally{details: *details}, tally{details: *details}
		if err := guarded(func() { p.readBack(*most, &n); p.rows(&r) }); err != nil {
			return err
		}
		fmt.Printf("%s: %+v; %d/%d; rows %d/%d %v\n", path, p.sym.Counts(), n.equal, n.different(), r.equal, r.different(), p.file.Problems())
		if *dumpSyms != "" {
			if err := dumped(&all, *dumpSyms, path, p); err != nil {
				return err
			}
		}
		names.merge(&n)
		rows.merge(&r)
		_ = p.sym.Close()
		_ = os.Remove(p.path)
		_ = s.Close()
	}
	names.print(os.Stdout, "names")
	rows.print(os.Stdout, "rows")
	all.functions.print(os.Stdout, "FUNC")
	all.lines.print(os.Stdout, "lines")
	all.inlines.print(os.Stdout, "INLINE")
	all.publics.print(os.Stdout, "PUBLIC")
	all.cfi.print(os.Stdout, "STACK CFI")
	return nil
}

// dumped compares with what dump_syms writes of the same file.
func dumped(c *comparison, tool, path string, p *pair) error {
	args := []string{"-d", "-m", path}
	if p.file.Debug != nil {
		// It is linked to from a folder of the name that .gnu_debuglink has.
		if target, err := os.Readlink(p.file.Debug.Path()); err == nil {
			_ = target
		}
		args = append(args, filepath.Dir(p.file.Debug.Path()))
	}
	out, err := exec.Command(tool, args...).Output()
	if err != nil {
		fmt.Printf("%s: dump_syms: %v\n", path, err)
		return nil
	}
	theirs, err := read(bytes.NewReader(out))
	if err != nil {
		return err
	}
	from, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer from.Close()
	ours, err := read(from)
	if err != nil {
		return err
	}
	if ours.module != theirs.module || ours.codeID != theirs.codeID {
		fmt.Printf("%s: %s, %s; dump_syms %s, %s\n", path, ours.module, ours.codeID, theirs.module, theirs.codeID)
	}
	c.compare(filepath.Base(path), ours, theirs)
	return nil
}
