// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// Bundled is an architecture that an executable has compiled in.
type Bundled struct {
	Name string
	New  func() sdk.Architecture
	// Description is the same as New().Describe answers. It is compiled in, so that a
	// process is started only when a call needs it. The process's own description must be
	// equal: that is checked where it executes another file than the engine's process.
	Description func() *sdk.Description
	// Recognises reports whether a file that begins so has one of the architecture's formats
	// beside ELF, and Nested lists the code objects inside such a file; nil: there are no such
	// formats. They need no process.
	Recognises func(start []byte) bool
	Nested     func(data []byte) ([]sdk.NestedObject, error)
}

// BundledRuntime is a language runtime that an executable has compiled in. Its Description
// is a Bundled's.
type BundledRuntime struct {
	Name        string
	New         func() sdk.Runtime
	Description func() *sdk.RuntimeDescription
}

// ServeMain is `unwindd plugin serve NAME [flags]`: this process is the plugin of a
// bundled architecture or runtime. It returns when the engine is gone, and at once, with
// an error, when there is none of that name.
//
// With --report-fd N the engine has started the process, on a thread that had been
// confined: the process confines itself before it does anything else, writes to
// descriptor N a Report of the parts that this system lacks, and closes it.
func ServeMain(args []string, architectures []Bundled, runtimes []BundledRuntime) error {
	f := flag.NewFlagSet("plugin serve", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	report := f.Int("report-fd", 0, "")
	build := f.String("build", "", "")
	name := ""
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	if err := f.Parse(args); err != nil || f.NArg() > 0 {
		return fmt.Errorf("plugin serve: %w: expected NAME", ErrUsage)
	}
	serve, names := find(name, architectures, runtimes)
	if serve == nil {
		return fmt.Errorf("plugin serve: %w: no plugin %q is bundled, expected one of %s", ErrUsage, name, strings.Join(names, ", "))
	}
	if *report != 0 {
		if err := confineReported(*report, *build); err != nil {
			return fmt.Errorf("plugin serve: %w", err)
		}
	}
	serve()
	return nil
}

// find returns the main function of a bundled plugin, and the names of all; nil: there is
// none of that name.
func find(name string, architectures []Bundled, runtimes []BundledRuntime) (serve func(), names []string) {
	for _, b := range architectures {
		if names = append(names, b.Name); b.Name == name {
			serve = func() { sdk.Serve(b.New()) }
		}
	}
	for _, b := range runtimes {
		if names = append(names, b.Name); b.Name == name {
			serve = func() { sdk.ServeRuntime(b.New()) }
		}
	}
	return serve, names
}

// confineReported confines this process, if it is of the expected build, and reports
// that.
func confineReported(fd int, build string) error {
	out, err := reportFile(fd)
	if err != nil {
		return err
	}
	defer out.Close()
	r := Report{}
	if err = checkBuild(build); err == nil {
		r.Missing, err = confineSelf()
	}
	if err != nil {
		r.Error = err.Error()
	}
	if len(r.Missing) > 0 || err != nil {
		line, _ := json.Marshal(r) // text can always be written as JSON
		_, _ = out.Write(append(line, '\n'))
	}
	return err
}
