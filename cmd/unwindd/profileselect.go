// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine/service/job"
)

// addSelectionFlags adds the flags that select a part of a profile.
func addSelectionFlags(flags *pflag.FlagSet, j *job.Profile) {
	flags.StringArrayVar(&j.Process, "process", nil, "only the samples of the process `ID|NAME`, or of those whose names match a regular expression; may be repeated")
	if flags.Lookup("thread") == nil { // `unwindd submit` has the flag for stacks, too
		flags.StringArrayVar(&j.Thread, "thread", nil, "only the samples of the thread `ID|NAME`, or of those whose names match a regular expression; may be repeated")
	}
	flags.StringVar(&j.Cpu, "cpu", "", "only the samples of the processors `LIST`, as 0,2-3")
	flags.StringVar(&j.Time, "time", "", "only the samples of a time, `FROM,TO`: seconds since the first sample, or as 10%,20%")
	flags.StringArrayVar(&j.Focus, "focus", nil, "only the samples with a function that matches the regular expression `RE`; repeated: with one for each")
	flags.StringArrayVar(&j.Ignore, "ignore", nil, "leave out the samples with a function that matches `RE`; may be repeated")
	flags.StringArrayVar(&j.Hide, "hide", nil, "leave the functions that match `RE` out of all stacks; may be repeated")
	flags.StringVar(&j.Callers, "callers", "", "only the samples with `FUNCTION`, and who calls it: trees of text and folded stacks lead from it to its callers")
}
