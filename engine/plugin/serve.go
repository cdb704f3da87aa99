// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// ServeMain is `unwindd plugin serve NAME [flags]`: this process is the plugin of a
// bundled architecture. It returns when the engine is gone, and at once, with
// an error, when there is no architecture of that name.
//
// With --report-fd N the engine has started the process, on a thread that had been
// confined: the process confines itself before it does anything else, writes to
// descriptor N what of that this system lacks, an execReport, and closes it.
func ServeMain(args []string, bundled []Bundled) error {
	f := flag.NewFlagSet("plugin serve", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	report := f.Int("report-fd", 0, "")
	name := ""
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	if err := f.Parse(args); err != nil || f.NArg() > 0 {
		return fmt.Errorf("plugin serve: %w: expected NAME", ErrUsage)
	}
	var names []string
	for _, b := range bundled {
		if b.Name == name {
			if *report != 0 {
				if err := confineReported(*report); err != nil {
					return fmt.Errorf("plugin serve: %w", err)
				}
			}
			sdk.Serve(b.New())
			return nil
		}
		names = append(names, b.Name)
	}
	return fmt.Errorf("plugin serve: %w: no architecture %q is bundled, expected one of %s", ErrUsage, name, strings.Join(names, ", "))
}

// confineReported confines this process and reports that.
func confineReported(fd int) error {
	out, err := reportFile(fd)
	if err != nil {
		return err
	}
	defer out.Close()
	r := execReport{}
	if r.Missing, err = confineSelf(); err != nil {
		r.Error = err.Error()
	}
	if len(r.Missing) > 0 || err != nil {
		line, _ := json.Marshal(r) // text has no value that JSON has not
		_, _ = out.Write(append(line, '\n'))
	}
	return err
}
