// SPDX-License-Identifier: Apache-2.0

package trace

// ProfileSelection is the part of a profile that is shown. The zero value selects all of it.
// A sample is selected where each member selects it.
type ProfileSelection struct {
	// Processes and Threads select samples by their process and their thread: by ID, by name, or,
	// where none has the name, by a regular expression for names. One of each has to match.
	Processes, Threads []string
	// CPUs selects samples by the processor that they were taken on: "0,2-3".
	CPUs string
	// Time selects samples by their time: "FROM,TO", each of them seconds since the first sample
	// ("1.5"), a duration ("200ms") or a part of the whole time ("10%"). Without FROM it begins
	// with the first sample, without TO it ends with the last.
	Time string
	// Focus selects samples with a function that matches, for each regular expression; Ignore
	// selects those without a function that matches any.
	Focus, Ignore []string
	// Hide removes the functions that match any of these regular expressions from all stacks.
	Hide []string
	// Callers selects samples with a function, and removes what it called: stacks end at its
	// innermost call. It is named as in ProfileOptions.Annotate, or by a regular expression.
	Callers string
}

// IsZero reports whether all of a profile is selected.
func (s *ProfileSelection) IsZero() bool {
	return len(s.Processes)+len(s.Threads)+len(s.Focus)+len(s.Ignore)+len(s.Hide) == 0 && s.CPUs == "" && s.Time == "" && s.Callers == ""
}
